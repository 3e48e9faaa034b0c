/* SPDX-License-Identifier: Apache-2.0
 * A team: some of the ranks, in an order, that perform a collective among themselves. Hierarchical
 * algorithms are built from these.
 */
#ifndef TUTTI_ALGORITHMS_TEAM_H
#define TUTTI_ALGORITHMS_TEAM_H

#include "algorithms/moves.h"

struct tutti_team {
    const uint32_t *ranks; /* ranks of all members; borrowed */
    uint32_t count, me;    /* ranks[me] is the rank that emits */
};

/* The first chunk of piece `index` when `nchunks` chunks are cut into `pieces` pieces whose sizes
 * differ by at most one. The piece ends where piece index + 1 begins. */
static inline uint32_t tutti_team_piece(uint32_t nchunks, uint32_t pieces, uint32_t index)
{
    return (uint32_t)((uint64_t)nchunks * index / pieces);
}

/* Emit an all-reduce among the team. `own` is what this rank contributes, in any buffer. `sum` has
 * as many chunks; the result goes there on every member, and partial sums are kept there until
 * then. The two spans are the same, or are disjoint except where an in-place call overlays INPUT
 * and OUTPUT.
 *
 * doublings: number of factors of two over which the members exchange whole pieces. Over the rest
 * of the team they scatter and gather pieces. 0: the least volume, in 2 ceil(log2 count) rounds.
 * log2 count or more: the fewest rounds, each with the whole vector. A piece has at least one
 * chunk: `sum` must have tutti_team_pieces() chunks, or a multiple. A team that is no multiple of
 * 2^doublings folds the surplus ranks in, with two more rounds of the whole vector.
 *
 * SCRATCH: for chunk i of `sum`, data that arrives in those exchanges is kept in chunks arrival[0]
 * + i and arrival[1] + i alternately. Both spans have as many chunks as `sum`, of the same sizes.
 * With doublings 0, SCRATCH is not used. A member alone in its team only copies. */
int tutti_team_allreduce(struct tutti_build *build, const struct tutti_team *team,
                         struct tutti_span own, struct tutti_span sum, const uint32_t arrival[2],
                         uint32_t doublings);

/* Number of pieces that the vector is cut into, for `count` members. */
uint32_t tutti_team_pieces(uint32_t count, uint32_t doublings);

/* The cost of that for vectors of `bytes` bytes: rounds one after the other, bytes on the longest
 * path, and bytes reduced and copied by the busiest member. */
struct tutti_team_cost {
    double rounds, bytes, reduced, copied;
};

struct tutti_team_cost tutti_team_cost(uint32_t count, uint32_t doublings, double bytes);

/* The same for the team of all ranks, as a complete algorithm. */
int tutti_team_allreduce_all(const struct tutti_shape *shape, struct tutti_build *build,
                             uint32_t doublings);
void tutti_team_cost_all(const struct tutti_shape *shape, double bytes, uint32_t doublings,
                         struct tutti_cost *ret_cost);

/* List all ranks, from `first` on around the circle; the caller frees the list. TUTTI_ERR_SYSTEM:
 * no memory. */
int tutti_team_list(uint32_t nranks, uint32_t first, uint32_t **ret_ranks);

#endif
