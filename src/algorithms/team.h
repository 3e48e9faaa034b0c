/* SPDX-License-Identifier: Apache-2.0
 * Some of the ranks, in an order, that do a collective among themselves: the parts of which
 * hierarchical algorithms are made.
 */
#ifndef TUTTI_ALGORITHMS_TEAM_H
#define TUTTI_ALGORITHMS_TEAM_H

#include "algorithms/moves.h"

struct team {
    const uint32_t *ranks; /* of all members; borrowed */
    uint32_t count, me;    /* ranks[me] is the rank that emits */
};

/* Chunks of piece `index`, when `nchunks` are cut in `pieces` that differ by one at most:
 * tutti_team_piece(..., index) up to tutti_team_piece(..., index + 1). */
static inline uint32_t tutti_team_piece(uint32_t nchunks, uint32_t pieces, uint32_t index)
{
    return (uint32_t)((uint64_t)nchunks * index / pieces);
}

/* Emit an all-reduce among the team. `own` is what this rank contributes, in any buffer; `sum`, as
 * many chunks, is where the result goes on every member, and where partial sums lie until then. The
 * two are the same, or touch nowhere but where in place calls overlay INPUT and OUTPUT.
 *
 * doublings: over how many factors of two the members exchange whole pieces; over the rest of
 * the team they scatter and gather them. 0: the least volume, 2 ceil(log2 count) rounds; from
 * log2 count on: the fewest rounds, the whole vector in each. A piece is a chunk or more: give
 * tutti_team_pieces() chunks, or a multiple. A team that is no multiple of 2^doublings folds the
 * ranks beyond one in: two rounds of the whole vector more.
 *
 * SCRATCH: what arrives in those exchanges lies in chunks arrival[0] + i and, in turns,
 * arrival[1] + i, for chunk i of `sum`; both spans are as many chunks as `sum`, sized like it.
 * Nothing is used with doublings 0. Members alone copy. */
int tutti_team_allreduce(struct tutti_build *build, const struct team *team, struct tutti_span own,
                         struct tutti_span sum, const uint32_t arrival[2], uint32_t doublings);

/* How many pieces the vector is cut in. */
uint32_t tutti_team_pieces(uint32_t count, uint32_t doublings);

/* What that costs: rounds one after the other, bytes on the longest path, bytes combined and copied
 * by the busiest, of vectors of `bytes`. */
struct team_cost {
    double rounds, bytes, reduced, copied;
};

struct team_cost tutti_team_cost(uint32_t count, uint32_t doublings, double bytes);

/* The same for the team of all ranks: a whole algorithm. */
int tutti_team_allreduce_all(const struct tutti_shape *shape, struct tutti_build *build,
                             uint32_t doublings);
void tutti_team_cost_all(const struct tutti_shape *shape, double bytes, uint32_t doublings,
                         struct tutti_cost *ret_cost);

/* The list of all ranks, from `first` on around the circle; the caller frees it. */
int tutti_team_list(uint32_t nranks, uint32_t first, uint32_t **ret_ranks);

#endif
