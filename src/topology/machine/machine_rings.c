/* SPDX-License-Identifier: Apache-2.0
 * Computes the total rate of a machine's rings where its links are known. All rings run at the same
 * time and at the same rate. Rings that cross the same link share this link, and the fullest link
 * limits all rings. For example, on a full mesh of 80 GB/s links:
 *
 *   0 -> 1 -> 2 -> 3 -> 0   and   0 -> 2 -> 1 -> 3 -> 0
 *
 * Both rings cross the link from 3 to 0, at 40 GB/s each. Together they carry 80 GB/s, as much as
 * one of them alone.
 */
#include "topology/machine/machine_draft.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>

bool tutti_links_add_load(const struct tutti_machine *machine,
                          const struct tutti_machine_path *path, uint32_t from, uint32_t to,
                          double bytes, double *loads)
{
    struct tutti_machine_shift shift;

    if (path == NULL)
        return false;
    shift = tutti_machine_shift_of(&machine->links, from, to);
    for (uint32_t at = path->first; at < path->first + path->count; at++)
        loads[tutti_machine_shifted(&shift, machine->links.crossings[at].link)] +=
            bytes * machine->links.crossings[at].weight;
    return true;
}

/* Adds, to the load of each link, the bytes that cross this link when the ring carries one byte.
 * Directed ring 2 i is ring i forwards, and 2 i + 1 is ring i backwards. Each has the channel of
 * its number, as in algorithms/multi_ring.c. Returns false if two consecutive ranks have no
 * path. */
static bool add_ring_load(const struct tutti_machine *machine, uint32_t directed, double *loads)
{
    uint32_t nranks = machine->places.nranks;
    uint8_t channel = (uint8_t)directed; /* fewer than 256: TUTTI_MACHINE_ORDERS */
    const uint32_t *cycle = machine->places.rings + (size_t)(directed / 2) * nranks;

    for (uint32_t i = 0; i < nranks; i++) {
        uint32_t a = cycle[i], b = cycle[(i + 1) % nranks];
        uint32_t from = directed % 2 == 0 ? a : b, to = directed % 2 == 0 ? b : a;

        if (!tutti_links_add_load(machine, tutti_machine_channel_path(machine, from, to, channel),
                                  from, to, 1, loads))
            return false;
    }
    return true;
}

/* Returns the rate of each ring, which the fullest link limits; 0: no link limits the rings. */
static double slowest_rate(const struct tutti_machine_links *links, const double *loads)
{
    double rate = INFINITY;

    for (uint32_t i = 0; i < tutti_machine_link_count(links); i++)
        if (loads[i] > 0)
            rate = fmin(rate, tutti_machine_link(links, i)->bytes_per_s / loads[i]);
    return isinf(rate) ? 0 : rate;
}

int tutti_links_find_ring_rates(const struct tutti_machine *machine, const double **ret_rates)
{
    uint32_t ndirected = 2 * machine->places.nrings;
    double *rates = NULL, *loads;

    *ret_rates = NULL;
    if (ndirected == 0 || machine->links.npaths == 0)
        return TUTTI_OK;
    rates = calloc(ndirected, sizeof *rates);
    loads = calloc((size_t)tutti_machine_link_count(&machine->links) + 1, sizeof *loads);
    if (rates == NULL || loads == NULL) {
        free(rates);
        free(loads);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u rings of a machine", ndirected);
    }
    for (uint32_t i = 0; i < ndirected && add_ring_load(machine, i, loads); i++)
        rates[i] = (i + 1) * slowest_rate(&machine->links, loads);
    free(loads);
    *ret_rates = rates;
    return TUTTI_OK;
}

double tutti_machine_rings_rate(const struct tutti_machine *machine, uint32_t ndirected)
{
    if (machine->ring_rates == NULL || ndirected == 0 || ndirected > 2 * machine->places.nrings)
        return 0;
    return machine->ring_rates[ndirected - 1];
}
