/* SPDX-License-Identifier: Apache-2.0
 * A team: some of the ranks, in a certain order, that perform a collective among themselves.
 * Hierarchical algorithms run collectives of teams one after another.
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

/* Emit an all-reduce among the team. `own` is this rank's contribution, in any buffer. `sum` has as
 * many chunks; it holds partial sums during the all-reduce, and the result at the end on every
 * member. The two spans are the same, or are disjoint except where an in-place call overlays INPUT
 * and OUTPUT. Errors are those of build.h.
 *
 * doublings: the team is divided into 2^doublings groups, which exchange whole pieces in this many
 * rounds. Inside each group the members scatter and gather pieces. 0: one group, which has the
 * least volume, in 2 ceil(log2 count) rounds. log2 count or more: each member is a group, which has
 * the fewest rounds, each with the whole vector. A piece has at least one chunk: `sum` must have
 * tutti_team_pieces() chunks, or a multiple. If count is no multiple of 2^doublings, the surplus
 * ranks are folded in (ranks.h), with two more rounds of the whole vector.
 *
 * SCRATCH: for chunk i of `sum`, data that groups exchange arrives alternately in chunks
 * arrival[0] + i and arrival[1] + i. Both spans have as many chunks as `sum`, of the same sizes.
 * With doublings 0, SCRATCH is not used. A member alone in its team only copies. */
int tutti_team_allreduce(struct tutti_build *build, const struct tutti_team *team,
                         struct tutti_span own, struct tutti_span sum, const uint32_t arrival[2],
                         uint32_t doublings);

/* Number of pieces into which `count` members cut the vector. */
uint32_t tutti_team_pieces(uint32_t count, uint32_t doublings);

/* The cost of tutti_team_allreduce for a vector of `bytes` bytes: rounds one after the other, bytes
 * on the longest path, and bytes that the busiest member reduces and copies. */
struct tutti_team_cost {
    double rounds, bytes, reduced, copied;
};

struct tutti_team_cost tutti_team_cost(uint32_t count, uint32_t doublings, double bytes);

/* An all-reduce among the team of all ranks, as a complete algorithm, and its cost. The first
 * function also declares the chunks and the scratch memory. */
int tutti_team_allreduce_all(const struct tutti_shape *shape, struct tutti_build *build,
                             uint32_t doublings);
void tutti_team_cost_all(const struct tutti_shape *shape, double bytes, uint32_t doublings,
                         struct tutti_cost *ret_cost);

/* List all ranks, from `first` on around the circle; the caller frees the list. TUTTI_ERR_SYSTEM:
 * no memory. */
int tutti_team_list(uint32_t nranks, uint32_t first, uint32_t **ret_ranks);

#endif
