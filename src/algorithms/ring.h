/* SPDX-License-Identifier: Apache-2.0
 * Collectives on several rings at the same time. A ring is a cyclic order of all ranks; data passes
 * from each rank to the next one in this order.
 */
#ifndef TUTTI_ALGORITHMS_RING_H
#define TUTTI_ALGORITHMS_RING_H

#include "algorithms/moves.h"

/* A step's channel is a byte, and each directed ring has a channel of its own. */
#define TUTTI_RINGS_MOST 256

/* `ndirected` directed rings: each cycle in turn, first forwards, then backwards. Every block is
 * cut into `ndirected` chunks; chunk i goes around ring i, on channel i. */
struct tutti_rings {
    const uint32_t *cycles; /* nranks ranks per cycle; borrowed */
    uint32_t ndirected;     /* 1 .. TUTTI_RINGS_MOST */
};

/* List this rank's moves of the all-gather; moves->use says for which collective. An algorithm
 * calls this from its `moves` function. TUTTI_ERR_SYSTEM: no memory. */
int tutti_ring_moves(const struct tutti_shape *shape, const struct tutti_rings *rings,
                     struct tutti_moves *moves);

/* Cost of an all-reduce, all-gather or reduce-scatter on `ndirected` rings. */
void tutti_ring_cost(const struct tutti_shape *shape, uint32_t ndirected, double block_bytes,
                     struct tutti_cost *ret_cost);

#endif
