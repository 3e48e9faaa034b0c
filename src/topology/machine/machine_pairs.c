/* SPDX-License-Identifier: Apache-2.0
 * Computes the rate at which each rank exchanges bytes with all others at once, where the links of
 * the machine are known. All ranks send equally much to each other rank, along the paths of the
 * pairs, and the fullest link limits them. */
#include "topology/machine/machine_draft.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>

/* Adds, to the load of each link, the bytes that cross it when each rank sends one byte in all.
 * Returns false if two ranks have no path. */
static bool add_loads(const struct tutti_machine *machine, double *loads)
{
    uint32_t nranks = machine->places.nranks;

    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++) {
            const struct tutti_machine_path *path = tutti_machine_path(machine, from, to);
            struct tutti_machine_shift shift;

            if (from == to)
                continue;
            if (path == NULL)
                return false;
            shift = tutti_machine_shift_of(&machine->links, from, to);
            for (uint32_t at = path->first; at < path->first + path->count; at++)
                loads[tutti_machine_shifted(&shift, machine->links.crossings[at].link)] +=
                    machine->links.crossings[at].weight / (nranks - 1);
        }
    return true;
}

int tutti_machine_pairs_rate(const struct tutti_machine *machine, double *ret_bytes_per_s)
{
    uint32_t nlinks = tutti_machine_link_count(&machine->links);
    double *loads, rate = INFINITY;

    *ret_bytes_per_s = 0;
    if (machine->places.nranks < 2 || machine->links.npaths == 0)
        return TUTTI_OK;
    loads = calloc((size_t)nlinks + 1, sizeof *loads);
    if (loads == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the loads of %u links", nlinks);
    if (add_loads(machine, loads))
        for (uint32_t i = 0; i < nlinks; i++)
            if (loads[i] > 0)
                rate = fmin(rate, tutti_machine_link(&machine->links, i)->bytes_per_s / loads[i]);
    free(loads);
    if (isfinite(rate))
        *ret_bytes_per_s = rate;
    return TUTTI_OK;
}
