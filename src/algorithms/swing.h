/* SPDX-License-Identifier: Apache-2.0
 * The rounds of swing (swing.c): which places are partners, the order of the rounds on a torus, and
 * what they cost.
 */
#ifndef TUTTI_ALGORITHMS_SWING_H
#define TUTTI_ALGORITHMS_SWING_H

#include "algorithms/torus.h"

/* The distance between the partners of round s: rho(s) in the head of swing.c. */
int64_t tutti_swing_rho(uint32_t round);

/* Return the place at a distance from place x on a ring of d places: x + distance (mod d) if x is
 * even, x - distance (mod d) if x is odd. */
uint32_t tutti_swing_place(uint32_t x, int64_t distance, uint32_t d);

/* The number of places that take part in the rounds: d, rounded down to an even number. */
static inline uint32_t tutti_swing_even(uint32_t d)
{
    return d - d % 2;
}

/* What all ranks do at a time in one dimension. The place that an odd ring leaves out gives its
 * block to the place before it (JOIN), and gets all other blocks from there at the end (SERVE). */
enum tutti_swing_kind { TUTTI_SWING_JOIN, TUTTI_SWING_ROUND, TUTTI_SWING_SERVE };

struct tutti_swing_stage {
    uint32_t dim;
    enum tutti_swing_kind kind;
    uint32_t round; /* s */
};

/* All dimensions together have fewer than 32 rounds and one more in each dimension that is no power
 * of two; an odd ring has two more stages. */
#define TUTTI_SWING_STAGES (32 + 3 * TUTTI_TORUS_DIMS)

struct tutti_swing_stages {
    struct tutti_swing_stage list[TUTTI_SWING_STAGES];
    uint32_t count; /* the same for all parts */
};

/* List the stages of a part of the all-gather: odd rings one by one, then the rounds of all other
 * rings, alternating between them. */
void tutti_swing_stages(const struct tutti_torus *torus, uint32_t part,
                        struct tutti_swing_stages *ret_stages);

/* The cost function of swing. */
void tutti_swing_cost(const struct tutti_shape *shape, double block_bytes,
                      struct tutti_cost *ret_cost);

#endif
