/* SPDX-License-Identifier: Apache-2.0
 * Hybrid, for vectors of medium size: a compromise between recursive doubling, which has the fewest
 * rounds, and reduce-scatter with all-gather, which has the least volume.
 *
 * With option doublings = j, groups of p / 2^j neighbors scatter their sums among themselves; then
 * 2^j ranks exchange each piece in j rounds; then the groups gather. This takes 2 ceil(log2 (p /
 * 2^j)) + j rounds and, of n bytes, moves 2 (1 - 2^j / p) n + j 2^j / p n. Where 2^j does not
 * divide p, the ranks beyond its largest multiple are folded in, with two more rounds and 2 n more
 * bytes. Without the option, j is half of ceil(log2 p), rounded up.
 *
 *   p = 6, j = 1       0 1 2  |  3 4 5        letters are pieces
 *   reduce-scatter     a b c  |  a b c        circulant, in each group
 *   exchange           0 and 3 add their a, 1 and 4 their b, 2 and 5 their c
 *   all-gather         circulant, in each group
 *
 * j = 0 would be the circulant all-reduce; j = log2 p is recursive doubling. team.c implements all
 * of them.
 *
 * Source: the two ends as in Thakur, Rabenseifner and Gropp, "Optimization of collective
 * communication operations in MPICH", 2005; the circulant graph of Träff, 2024; stopping between
 * them as in van de Geijn, "On global combine operations", 1994.
 */
#include "algorithms/ranks.h"
#include "algorithms/team.h"

static uint32_t doublings_of(const struct tutti_shape *shape)
{
    uint32_t given = shape->options.value[TUTTI_DOUBLINGS];

    return given != 0 ? given : (tutti_rounds_of(shape->nranks) + 1) / 2;
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    return tutti_team_allreduce_all(shape, build, doublings_of(shape));
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_team_cost_all(shape, block_bytes, doublings_of(shape), ret_cost);
}

const struct tutti_algorithm tutti_hybrid_allreduce = {
    .name = "hybrid",
    .collective = TUTTI_ALLREDUCE,
    .options = {[TUTTI_DOUBLINGS] = {.least = 1, .most = 32}}, /* usual: half of the rounds */
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};
