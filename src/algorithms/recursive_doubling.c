/* SPDX-License-Identifier: Apache-2.0
 * Recursive doubling: in round i every rank exchanges its whole sum with the rank whose number
 * differs in bit i.
 *
 *   numbers   0   1   2   3   4   5   6   7
 *   i = 0     +---+   +---+   +---+   +---+      sums of 2
 *   i = 1     +-------+ ...                      sums of 4 (0 with 2, 1 with 3, ...)
 *   i = 2     +---------------+ ...              sums of 8
 *
 * It has the fewest rounds but sends the whole vector in each, so it is for small vectors. Ranks
 * beyond the largest power of two m <= p are folded in. Of the first 2(p - m) ranks each even one
 * sends its vector to the odd one after it, sits out, and receives the result in the end. The order
 * of summation depends only on p, not on the size or the position of an element.
 *
 *   p = 5     0 -> 1   2   3   4        numbers of 1 2 3 4 in the rounds: 0 1 2 3
 *
 * This is the all-reduce of a team (team.h) with the most doublings.
 *
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
 * MPICH", 2005.
 */
#include "algorithms/team.h"

#define MOST_DOUBLINGS 32 /* as many as a rank number has bits, so never a limit */

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    return tutti_team_allreduce_all(shape, build, MOST_DOUBLINGS);
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_team_cost_all(shape, block_bytes, MOST_DOUBLINGS, ret_cost);
}

const struct tutti_algorithm tutti_recursive_doubling_allreduce = {
    .name = "recursive_doubling",
    .collective = TUTTI_ALLREDUCE,
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};
