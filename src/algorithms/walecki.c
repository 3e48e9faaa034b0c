/* SPDX-License-Identifier: Apache-2.0
 * Rings for machines in which every rank has a link to every other rank: Walecki's Hamiltonian
 * cycles, no two of which share a link, each in both directions.
 *
 * The last rank is the hub; the others form a circle of m = p - 1. Cycle i goes from the hub to i,
 * zigzags over the circle, to i + 1, i - 1, i + 2, i - 2, ..., and returns to the hub:
 *
 *   p = 7, hub 6                      0
 *   cycle 0   6 0 1 5 2 4 3        5     1        i = 0: 0-1 across the circle, 1-5, 5-2, 2-4, 4-3
 *   cycle 1   6 1 2 0 3 5 4           6           i = 1: the same, turned by one
 *   cycle 2   6 2 3 1 4 0 5        4     2
 *                                     3
 *
 * Numbers that follow each other in cycle i add up to 2i or 2i + 1 (mod m), so no two of the cycles
 * i < m / 2 share a link. Odd p: these (p - 1) / 2 cycles use every link once each way. Even p: the
 * (p - 2) / 2 cycles leave one link of every rank unused. Two ranks have a cycle of one link.
 *
 * Option channels is the number of directed rings to use, two for each cycle, or all of them if
 * there are fewer. Each ring works as in ring.c.
 *
 * Source: the construction as in Lucas, "Récréations mathématiques", volume 2, 1883, who has it
 * from Walecki; for even p too as in Alspach, "The wonderful Walecki construction", 2008.
 */
#include "algorithms/ranks.h"
#include "algorithms/ring.h"

#include <stdlib.h>

static uint32_t count_rings(const struct tutti_shape *shape)
{
    uint32_t given = shape->options.value[TUTTI_CHANNELS];
    uint32_t most = shape->nranks < 4 ? 2 : (shape->nranks - 1) / 2 * 2;

    return given < most ? given : most;
}

static void zigzag(uint32_t nranks, uint32_t index, uint32_t *cycle)
{
    uint32_t circle = nranks - 1, hub = nranks - 1;

    cycle[0] = hub;
    for (uint32_t i = 0; i < circle; i++) {
        uint32_t away = (i + 1) / 2;

        cycle[1 + i] = i % 2 == 1 ? rank_after(index, away, circle)
                                  : rank_before(index, away, circle);
    }
}

static int make(const struct tutti_shape *shape, struct moves *moves)
{
    uint32_t n = shape->nranks;
    struct rings rings = {.ndirected = count_rings(shape)};
    uint32_t ncycles = (rings.ndirected + 1) / 2;
    uint32_t *cycles = malloc((size_t)ncycles * n * sizeof(*cycles));
    int rc;

    if (cycles == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u cycles of %u ranks", ncycles, n);
    for (uint32_t i = 0; i < ncycles; i++)
        zigzag(n, i, cycles + (size_t)i * n);
    rings.cycles = cycles;
    rc = tutti_ring_moves(shape, &rings, moves);
    free(cycles);
    return rc;
}

static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_ring_cost(shape, count_rings(shape), block_bytes, ret_cost);
}

#define CHANNELS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_RINGS_MOST, .usual = 4}}

const struct tutti_algorithm tutti_walecki_allreduce = {
    .name = "walecki",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_walecki_reduce_scatter = {
    .name = "walecki",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_walecki_allgather = {
    .name = "walecki",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};
