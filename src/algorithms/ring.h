/* SPDX-License-Identifier: Apache-2.0
 * Collectives on cyclic orders of all ranks, one beside the other.
 */
#ifndef TUTTI_ALGORITHMS_RING_H
#define TUTTI_ALGORITHMS_RING_H

#include "algorithms/moves.h"

/* A step names its channel in a byte, and each directed ring has its own. */
#define TUTTI_RINGS_MOST 256

/* `ndirected` rings: the cycles one after the other, each first forwards, then backwards. Every
 * block is cut into as many chunks, and chunk i goes around ring i, on channel i. */
struct rings {
    const uint32_t *cycles; /* nranks numbers for each */
    uint32_t ndirected;     /* 1 .. TUTTI_RINGS_MOST */
};

int tutti_ring_moves(const struct tutti_shape *shape, enum moves_use use,
                     const struct rings *rings, struct moves *moves);

/* Costs of all-reduce, all-gather and reduce-scatter on so many rings. */
void tutti_ring_cost(const struct tutti_shape *shape, enum tutti_collective collective,
                     uint32_t ndirected, double block_bytes, struct tutti_cost *ret_cost);

#endif
