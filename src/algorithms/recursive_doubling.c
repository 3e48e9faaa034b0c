/* SPDX-License-Identifier: Apache-2.0
 * Recursive doubling: in round i everyone exchanges all it has with the rank that differs in bit i.
 *
 *   numbers   0   1   2   3   4   5   6   7
 *   i = 0     +---+   +---+   +---+   +---+      sums of 2
 *   i = 1     +-------+ ...                      sums of 4 (0 with 2, 1 with 3, ...)
 *   i = 2     +---------------+ ...              sums of 8
 *
 * Fewest rounds, but the whole vector in each: for small ones. Ranks beyond the largest power of
 * two m <= p are folded in: of the first 2(p - m) ranks each even one gives its vector to the odd
 * one after it, sits out, and gets the result in the end. The order of the sum depends on p only,
 * neither on the size nor on the place of an element.
 *
 *   p = 5     0 -> 1   2   3   4        numbers of 1 2 3 4 in the rounds: 0 1 2 3
 *
 * It is the all-reduce of a team (team.h) that doubles as often as it can.
 *
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
 * in MPICH", 2005.
 */
#include "algorithms/team.h"

#define ALWAYS 32 /* more often than there are bits in a rank */

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    return tutti_team_allreduce_all(shape, build, ALWAYS);
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_team_cost_all(shape, block_bytes, ALWAYS, ret_cost);
}

const struct tutti_algorithm tutti_recursive_doubling_allreduce = {
    .name = "recursive_doubling",
    .collective = TUTTI_ALLREDUCE,
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};
