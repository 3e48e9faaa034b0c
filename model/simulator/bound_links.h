/* SPDX-License-Identifier: Apache-2.0
 * What the links carry over the border of a part of a machine, where pairs of ranks have paths.
 */
#ifndef TUTTI_SIMULATOR_BOUND_LINKS_H
#define TUTTI_SIMULATOR_BOUND_LINKS_H

#include "topology/machine/machine.h"

struct tutti_sim_border {
    double bytes_per_s[2]; /* out, in: upper bound for all messages along paths */
    /* Number of pairs with a path over the border, out and in: pairs within one node, and pairs of
     * different nodes. */
    uint64_t near[2], far[2];
};

/* Computes the borders of `nparts` parts; of[rank] is the part of each rank, and NULL makes each
 * rank its own part. ret_borders has room for nparts. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_borders(const struct tutti_machine *machine, const uint32_t *of, uint32_t nparts,
                      struct tutti_sim_border *ret_borders);

#endif
