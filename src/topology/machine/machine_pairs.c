/* SPDX-License-Identifier: Apache-2.0
 * Computes the rates at which all ranks exchange bytes at once, where the links of the machine are
 * known. The fullest link limits all of them. */
#include "topology/machine/machine_draft.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>

/* Adds the loads of the links when a rank sends `bytes` bytes to another. Returns false if the two
 * have no path. */
static bool add_load(const struct tutti_machine *machine, uint32_t from, uint32_t to, double bytes,
                     double *loads)
{
    return tutti_links_add_load(machine, tutti_machine_path(machine, from, to), from, to, bytes,
                                loads);
}

/* Adds the loads of all pairs. */
static bool add_pairs(const struct tutti_machine *machine, double *loads)
{
    uint32_t nranks = machine->places.nranks;

    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++)
            if (from != to && !add_load(machine, from, to, 1.0 / (nranks - 1), loads))
                return false;
    return true;
}

/* Adds the loads of a round in which each rank sends to the rank `skip` places after it. */
static bool add_round(const struct tutti_machine *machine, uint32_t skip, double *loads)
{
    uint32_t nranks = machine->places.nranks;

    for (uint32_t from = 0; from < nranks; from++)
        if (!add_load(machine, from, (from + skip) % nranks, 1, loads))
            return false;
    return true;
}

/* Returns the rate that the fullest link allows; INFINITY: there are no loads. */
static double slowest(const struct tutti_machine *machine, const double *loads)
{
    uint32_t nlinks = tutti_machine_link_count(&machine->links);
    double rate = INFINITY;

    for (uint32_t i = 0; i < nlinks; i++)
        if (loads[i] > 0)
            rate = fmin(rate, tutti_machine_link(&machine->links, i)->bytes_per_s / loads[i]);
    return rate;
}

int tutti_machine_exchange_rates(const struct tutti_machine *machine,
                                 struct tutti_machine_exchange *ret_rates)
{
    size_t nlinks = tutti_machine_link_count(&machine->links);
    double *loads, pairs = 0, rounds = INFINITY;
    bool is_known;

    *ret_rates = (struct tutti_machine_exchange){.pairs_bytes_per_s = 0};
    if (machine->places.nranks < 2 || machine->links.npaths == 0)
        return TUTTI_OK;
    loads = calloc(nlinks + 1, sizeof *loads);
    if (loads == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the loads of %zu links", nlinks);
    is_known = add_pairs(machine, loads);
    pairs = slowest(machine, loads);
    for (uint32_t skip = 1; skip < machine->places.nranks && is_known; skip *= 2) {
        for (size_t i = 0; i < nlinks; i++)
            loads[i] = 0;
        is_known = add_round(machine, skip, loads);
        rounds = fmin(rounds, slowest(machine, loads));
    }
    free(loads);
    if (is_known && isfinite(pairs))
        ret_rates->pairs_bytes_per_s = pairs;
    if (is_known && isfinite(rounds))
        ret_rates->rounds_bytes_per_s = rounds;
    return TUTTI_OK;
}
