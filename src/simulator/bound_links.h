/* SPDX-License-Identifier: Apache-2.0
 * What links carry over the border of a part of a machine, where pairs of ranks have paths.
 */
#ifndef TUTTI_SIMULATOR_BOUND_LINKS_H
#define TUTTI_SIMULATOR_BOUND_LINKS_H

#include "topology/machine/machine.h"

struct sim_border {
    double bytes_per_s[2]; /* out, in: no set of messages along paths carries more */
    /* Pairs with a path over the border, out and in: of ranks of one node, of other ones. */
    uint64_t near[2], far[2];
};

/* Of parts that `of` says of each rank; NULL: each rank is one. TUTTI_ERR_SYSTEM. */
int tutti_sim_borders(const struct tutti_machine *machine, const uint32_t *of, uint32_t nparts,
                      struct sim_border *ret_borders);

#endif
