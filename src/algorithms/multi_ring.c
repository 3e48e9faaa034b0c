/* SPDX-License-Identifier: Apache-2.0
 * Several rings at the same time, each in both directions. Each ring carries its share of the data
 * on a channel of its own, and works as in ring.c. The two algorithms differ only in the cycles
 * that the rings follow.
 *
 * multi_ring takes the cyclic orders in shape->places:
 *
 *   orders 0 1 2 3 4 and 0 2 4 1 3       four directed rings, a quarter of every block each
 *
 *     ring 0   0 > 1 > 2 > 3 > 4 > 0     ring 2   0 > 2 > 4 > 1 > 3 > 0
 *     ring 1   0 < 1 < 2 < 3 < 4 < 0     ring 3   0 < 2 < 4 < 1 < 3 < 0
 *
 * The bandwidth of orders that share no link adds up. If there are no orders, the cycles of
 * node_cycles.h are used, which leave nodes by all of their network ports. Option channels is the
 * number of directed rings to use; the default is all of them.
 *
 * walecki is for machines in which every rank has a link to every other rank. It takes Walecki's
 * Hamiltonian cycles, no two of which share a link. The last rank is the hub; the others form a
 * circle of m = p - 1. Cycle i goes from the hub to i and from there zigzags over the circle, to
 * i + 1, i - 1, i + 2, i - 2, ... In the end it returns to the hub:
 *
 *   p = 7, hub 6                      0
 *   cycle 0   6 0 1 5 2 4 3        5     1        i = 0: 0-1 across the circle, 1-5, 5-2, 2-4, 4-3
 *   cycle 1   6 1 2 0 3 5 4           6           i = 1: the same, turned by one
 *   cycle 2   6 2 3 1 4 0 5        4     2
 *                                     3
 *
 * Numbers that follow each other in cycle i add up to 2i or 2i + 1 (mod m). So no two of the cycles
 * i < m / 2 share a link. Odd p: these (p - 1) / 2 cycles use every link once each way. Even p: the
 * (p - 2) / 2 cycles leave one link of every rank unused. Two ranks have a cycle of one link.
 *
 * Option channels is the number of directed rings to use, two for each cycle, or all of them if
 * there are fewer.
 *
 * Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009, on several rings.
 * Walecki's cycles are in Lucas, "Récréations mathématiques", volume 2, 1883, and for even p in
 * Alspach, "The wonderful Walecki construction", 2008.
 */
#include "algorithms/node_cycles.h"
#include "algorithms/ranks.h"
#include "algorithms/ring.h"

#include <stdlib.h>

/* ---- along the given orders, or from node to node -------------------------------------------- */

static bool has_orders(const struct tutti_shape *shape)
{
    return shape->places != NULL && shape->places->nrings > 0;
}

/* Number of directed rings to use along `ncycles` cycles. */
static uint32_t count_directed(const struct tutti_shape *shape, uint32_t ncycles)
{
    uint32_t wanted = shape->options.value[TUTTI_CHANNELS];
    uint32_t most = ncycles < TUTTI_RINGS_MOST / 2 ? 2 * ncycles : TUTTI_RINGS_MOST;

    return wanted != 0 && wanted < most ? wanted : most;
}

static int make_given(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct tutti_node_cycles nodes = {.cycles = NULL};
    struct tutti_rings rings;
    int rc;

    if (has_orders(shape)) {
        rings = (struct tutti_rings){.cycles = shape->places->rings,
                                     .ndirected = count_directed(shape, shape->places->nrings)};
    } else {
        TUTTI_TRY(tutti_node_cycles_make(shape, &nodes));
        rings = (struct tutti_rings){.cycles = nodes.cycles,
                                     .ndirected = count_directed(shape, nodes.ncycles)};
    }
    rc = tutti_ring_moves(shape, &rings, moves);
    free(nodes.cycles);
    return rc;
}

/* Divide the counts, which are those of one level, between the levels. In each round a rank sends
 * once on each ring, out of its node on some of them. Ranks send within nodes and to other nodes at
 * the same time, so the levels overlap in all rounds. */
static void divide_levels(const struct tutti_shape *shape, uint32_t smallest, uint32_t ndirected,
                          struct tutti_cost *cost)
{
    enum tutti_level outer = tutti_level_of_shape(shape);
    double leaving = (ndirected + smallest - 1) / smallest; /* rings on which a rank leaves */
    double staying = ndirected - ndirected / smallest;
    double rounds = cost->level[outer].rounds / ndirected, bytes = cost->level[outer].bytes;

    cost->level[outer].rounds = rounds;
    cost->level[outer].posted = rounds * (leaving - 1);
    cost->level[outer].bytes = bytes * leaving / ndirected;
    cost->level[TUTTI_LEVEL_NODE].posted = rounds * staying;
    cost->level[TUTTI_LEVEL_NODE].bytes = bytes * staying / ndirected;
    cost->segments = rounds;
    cost->is_alone = ndirected == 1;
}

static void cost_given(const struct tutti_shape *shape, double block_bytes,
                       struct tutti_cost *ret_cost)
{
    struct tutti_node_cycles nodes;
    uint32_t ndirected;

    if (has_orders(shape)) {
        ndirected = count_directed(shape, shape->places->nrings);
        tutti_ring_cost(shape, ndirected, block_bytes, ret_cost);
        return;
    }
    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_node_cycles_count(shape, &nodes) != TUTTI_OK)
        return;
    ndirected = count_directed(shape, nodes.ncycles);
    tutti_ring_cost(shape, ndirected, block_bytes, ret_cost);
    if (nodes.smallest > 1)
        divide_levels(shape, nodes.smallest, ndirected, ret_cost);
}

/* The usual value is 0, which stands for all directed rings. */
#define GIVEN_CHANNELS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_RINGS_MOST}}

const struct tutti_algorithm tutti_multi_ring_allreduce = {
    .name = "multi_ring",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_RINGS | TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = GIVEN_CHANNELS,
    .moves = make_given,
    .cost = cost_given,
};

const struct tutti_algorithm tutti_multi_ring_reduce_scatter = {
    .name = "multi_ring",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_RINGS | TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = GIVEN_CHANNELS,
    .moves = make_given,
    .cost = cost_given,
};

const struct tutti_algorithm tutti_multi_ring_allgather = {
    .name = "multi_ring",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_RINGS | TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = GIVEN_CHANNELS,
    .moves = make_given,
    .cost = cost_given,
};

/* ---- along Walecki's cycles ------------------------------------------------------------------ */

/* Number of directed rings along Walecki's cycles. */
static uint32_t count_walecki(const struct tutti_shape *shape)
{
    uint32_t wanted = shape->options.value[TUTTI_CHANNELS];
    uint32_t most = shape->nranks < 4 ? 2 : (shape->nranks - 1) / 2 * 2;

    return wanted < most ? wanted : most;
}

/* Write cycle number `index`, as the head of this file describes it. */
static void zigzag(uint32_t nranks, uint32_t index, uint32_t *cycle)
{
    uint32_t circle = nranks - 1, hub = nranks - 1;

    cycle[0] = hub;
    for (uint32_t i = 0; i < circle; i++) {
        uint32_t away = (i + 1) / 2;

        cycle[1 + i] = i % 2 == 1 ? tutti_rank_after(index, away, circle)
                                  : tutti_rank_before(index, away, circle);
    }
}

static int make_walecki(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    uint32_t n = shape->nranks;
    struct tutti_rings rings = {.ndirected = count_walecki(shape)};
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

static void cost_walecki(const struct tutti_shape *shape, double block_bytes,
                         struct tutti_cost *ret_cost)
{
    tutti_ring_cost(shape, count_walecki(shape), block_bytes, ret_cost);
}

#define WALECKI_CHANNELS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_RINGS_MOST, .usual = 4}}

const struct tutti_algorithm tutti_walecki_allreduce = {
    .name = "walecki",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .options = WALECKI_CHANNELS,
    .moves = make_walecki,
    .cost = cost_walecki,
};

const struct tutti_algorithm tutti_walecki_reduce_scatter = {
    .name = "walecki",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .options = WALECKI_CHANNELS,
    .moves = make_walecki,
    .cost = cost_walecki,
};

const struct tutti_algorithm tutti_walecki_allgather = {
    .name = "walecki",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .options = WALECKI_CHANNELS,
    .moves = make_walecki,
    .cost = cost_walecki,
};
