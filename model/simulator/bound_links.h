/* SPDX-License-Identifier: Apache-2.0
 * Computes upper bounds on the rates at which data can enter and leave parts of a machine. A part
 * is a set of ranks. This is for machines that give the paths of pairs of ranks over links. The
 * bounds on rates give lower bounds on the times of collectives.
 */
#ifndef TUTTI_SIMULATOR_BOUND_LINKS_H
#define TUTTI_SIMULATOR_BOUND_LINKS_H

#include "topology/machine/machine.h"

struct tutti_sim_border {
    /* In each array, element 0 is for data that leaves the part, and element 1 for data that
     * enters. */
    double bytes_per_s[2]; /* upper bound on the rate of all messages along paths together */
    /* Number of pairs whose path crosses the border of the part. `near` counts pairs within one
     * node, and `far` counts pairs on different nodes. */
    uint64_t near[2], far[2];
};

/* Computes the borders of `nparts` parts. of[rank] is the number of the part that a rank belongs
 * to. If `of` is NULL, each rank is a part of its own, and `nparts` is the number of ranks. In a
 * machine of like parts (machine.h) there is no bound if a part here reaches beyond one of those.
 * ret_borders has room for `nparts` entries. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_borders(const struct tutti_machine *machine, const uint32_t *of, uint32_t nparts,
                      struct tutti_sim_border *ret_borders);

#endif
