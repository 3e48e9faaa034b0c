/* SPDX-License-Identifier: Apache-2.0
 * The moves of circulant.c, for algorithms of which they are a part.
 */
#ifndef TUTTI_ALGORITHMS_CIRCULANT_H
#define TUTTI_ALGORITHMS_CIRCULANT_H

#include "algorithms/ranks.h"
#include "algorithms/team.h"

/* The all-gather among a team: member i owns piece i of the moves->nchunks chunks (team.h). */
int tutti_circulant_moves(const struct team *team, struct moves *moves);

/* Pieces that a member of the reduce-scatter copies: an odd number leaves one in the middle out of
 * the first round; it joins the partial sums in the second, unless it is alone in its message. */
static inline double tutti_circulant_copied(uint32_t count)
{
    return count % 2 == 1 && count >= 7;
}

/* Emit the all-gather of chunks 0 .. nranks-1 of OUTPUT among ranks numbered from `first_rank` on:
 * `rank` is this rank's number, and chunk i is rank i's. Number v already holds chunks
 * v .. v + held(v) - 1 (mod nranks); held is at least 1, and the same function on all ranks. Chunks
 * are sent from `source`: OUTPUT, or INPUT on a rank that held them all in the beginning. */
int tutti_circulant_gather(uint32_t nranks, uint32_t rank, uint32_t first_rank,
                           enum tutti_buffer source,
                           uint32_t (*held)(uint32_t rank, uint32_t nranks),
                           struct tutti_build *build);

#endif
