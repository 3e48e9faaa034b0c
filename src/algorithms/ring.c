/* SPDX-License-Identifier: Apache-2.0
 * Ring: every rank sends only to the next rank and receives only from the previous rank.
 *
 * Reduce-scatter, round i: send the partial sum of block rank - 1 - i, and receive that of block
 * rank - 2 - i and add this rank's input to it. After p - 1 rounds block `rank` is complete here.
 *
 *          rank 0       rank 1       rank 2        p = 3, letters are blocks a, b, c
 *   i = 0  c ->         a ->         b ->          0 sends its c to 1, which adds its own
 *   i = 1  b ->         c ->         a ->          1 sends 0+1's c on to 2, which completes it
 *   ends   a            b            c
 *
 * All-gather, round i: send block rank - i, receive block rank - i - 1. All-reduce is both, one
 * after the other, with one block per rank. The volume is optimal; the latency is not, with p - 1
 * rounds each.
 *
 * The reduce-scatter is the all-gather of the opposite ring read backwards (moves.h), so both go
 * around in the same direction.
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
 */
#include "algorithms/ring.h"

#include "algorithms/ranks.h"
#include "algorithms/team.h"

#include <stdlib.h>

/* A ring from the point of view of one of its ranks. */
struct ring {
    const uint32_t *cycle;
    uint32_t place; /* place of this rank in the cycle */
    bool is_backward;
};

/* The rank `by` places before this one in the direction of the ring: 0 is this rank, and nranks - 1
 * is the next one. */
static uint32_t before(const struct ring *ring, uint32_t by, uint32_t nranks)
{
    return ring->cycle[ring->is_backward ? tutti_rank_after(ring->place, by, nranks)
                                         : tutti_rank_before(ring->place, by, nranks)];
}

static void find_rank_in_rings(const struct tutti_shape *shape, enum tutti_moves_use use,
                               const struct tutti_rings *rings, struct ring *around)
{
    bool is_reversed = use == TUTTI_MOVES_SCATTER || use == TUTTI_MOVES_ALLREDUCE_SCATTER;

    for (uint32_t i = 0; i < rings->ndirected; i++) {
        struct ring ring = {.cycle = rings->cycles + (size_t)(i / 2) * shape->nranks,
                            .is_backward = (i % 2 == 1) != is_reversed};

        while (ring.cycle[ring.place] != shape->rank)
            ring.place++;
        around[i] = ring;
    }
}

int tutti_ring_moves(const struct tutti_shape *shape, const struct tutti_rings *rings,
                     struct tutti_moves *moves)
{
    uint32_t n = shape->nranks, nrings = rings->ndirected;
    struct ring around[TUTTI_RINGS_MOST];

    tutti_assert(nrings >= 1 && nrings <= TUTTI_RINGS_MOST);
    find_rank_in_rings(shape, moves->use, rings, around);
    moves->nchunks = n * nrings;
    moves->own_first = shape->rank * nrings;
    moves->own_count = nrings;
    for (uint32_t round = 0; round + 1 < n; round++)
        for (uint32_t i = 0; i < nrings; i++) {
            const struct ring *ring = &around[i];
            uint32_t give = before(ring, round, n), take = before(ring, round + 1, n);

            moves->channel = (uint8_t)i;
            TUTTI_TRY(tutti_moves_send(moves, before(ring, n - 1, n), give * nrings + i, 1));
            TUTTI_TRY(tutti_moves_recv(moves, before(ring, 1, n), take * nrings + i, 1));
        }
    return TUTTI_OK;
}

void tutti_ring_cost(const struct tutti_shape *shape, uint32_t ndirected, double block_bytes,
                     struct tutti_cost *ret_cost)
{
    double others = shape->nranks - 1.0, messages = others * ndirected;

    if (shape->collective == TUTTI_ALLREDUCE) {
        double bytes = others / shape->nranks * block_bytes;

        tutti_cost_flat(shape, 2 * messages, 2 * bytes, bytes, 0, ret_cost);
    } else if (shape->collective == TUTTI_ALLGATHER) {
        tutti_cost_flat(shape, messages, others * block_bytes, 0, block_bytes, ret_cost);
    } else {
        tutti_cost_flat(shape, messages, others * block_bytes, others * block_bytes, 0, ret_cost);
    }
}

/* ---- one ring, in the order of the ranks --------------------------------------------- */

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct tutti_rings rings = {.ndirected = 1};
    uint32_t *ranks;
    int rc;

    TUTTI_TRY(tutti_team_list(shape->nranks, 0, &ranks));
    rings.cycles = ranks;
    rc = tutti_ring_moves(shape, &rings, moves);
    free(ranks);
    return rc;
}

/* If each node's ranks are consecutive, only one rank of a node has its next rank in another
 * node. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_ring_cost(shape, 1, block_bytes, ret_cost);
    ret_cost->is_alone = tutti_cost_is_block(shape);
}

const struct tutti_algorithm tutti_ring_allreduce = {
    .name = "ring",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_ring_reduce_scatter = {
    .name = "ring",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_ring_allgather = {
    .name = "ring",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .moves = make,
    .cost = cost,
};
