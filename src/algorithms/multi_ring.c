/* SPDX-License-Identifier: Apache-2.0
 * Multi-ring: several rings at the same time, each around one of the cyclic orders in
 * shape->places, in both directions. Each ring carries its share of the data on a channel of its
 * own.
 *
 *   orders 0 1 2 3 4 and 0 2 4 1 3       four directed rings, a quarter of every block each
 *
 *     ring 0   0 > 1 > 2 > 3 > 4 > 0     ring 2   0 > 2 > 4 > 1 > 3 > 0
 *     ring 1   0 < 1 < 2 < 3 < 4 < 0     ring 3   0 < 2 < 4 < 1 < 3 < 0
 *
 * The bandwidth of orders that share no link adds up. If there are no orders, the order of rank
 * numbers is used. Option channels is the number of directed rings to use; the default is all of
 * them. Each ring works as in ring.c.
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009, on several rings.
 */
#include "algorithms/ranks.h"
#include "algorithms/ring.h"
#include "algorithms/team.h"

#include <stdlib.h>

static bool has_orders(const struct tutti_shape *shape)
{
    return shape->places != NULL && shape->places->nrings > 0;
}

static uint32_t count_rings(const struct tutti_shape *shape)
{
    uint32_t given = shape->options.value[TUTTI_CHANNELS];
    uint32_t cycles = has_orders(shape) ? shape->places->nrings : 1;
    uint32_t most = cycles < TUTTI_RINGS_MOST / 2 ? 2 * cycles : TUTTI_RINGS_MOST;

    return given != 0 && given < most ? given : most;
}

static int make(const struct tutti_shape *shape, struct moves *moves)
{
    struct rings rings = {.ndirected = count_rings(shape)};
    uint32_t *ranks = NULL;
    int rc;

    if (has_orders(shape)) {
        rings.cycles = shape->places->rings;
    } else {
        TUTTI_TRY(tutti_team_list(shape->nranks, 0, &ranks));
        rings.cycles = ranks;
    }
    rc = tutti_ring_moves(shape, &rings, moves);
    free(ranks);
    return rc;
}

static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_ring_cost(shape, count_rings(shape), block_bytes, ret_cost);
}

/* The usual value is the number of directed rings. */
#define CHANNELS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_RINGS_MOST}}

const struct tutti_algorithm tutti_multi_ring_allreduce = {
    .name = "multi_ring",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_RINGS,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_multi_ring_reduce_scatter = {
    .name = "multi_ring",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_RINGS,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_multi_ring_allgather = {
    .name = "multi_ring",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_RINGS,
    .options = CHANNELS,
    .moves = make,
    .cost = cost,
};
