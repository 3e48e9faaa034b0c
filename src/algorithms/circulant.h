/* SPDX-License-Identifier: Apache-2.0
 * The moves of circulant.c. Other algorithms use them as parts of their own.
 */
#ifndef TUTTI_ALGORITHMS_CIRCULANT_H
#define TUTTI_ALGORITHMS_CIRCULANT_H

#include "algorithms/ranks.h"
#include "algorithms/team.h"

/* List the moves of an all-gather among a team. The moves->nchunks chunks are cut into pieces
 * (team.h), and member i owns piece i. Sets moves->own_first and moves->own_count.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_circulant_moves(const struct tutti_team *team, struct tutti_moves *moves);

/* The number of pieces, 0 or 1, that a member copies during the reduce-scatter among `count`
 * members. With an odd count the first round leaves out the piece in the middle. In the second
 * round this piece is sent together with partial sums, so it is copied next to them. With fewer
 * than 7 members it is alone in its message there, so no copy is needed. */
static inline double tutti_circulant_copied(uint32_t count)
{
    return count % 2 == 1 && count >= 7;
}

/* Emit the all-gather of chunks 0 .. nranks-1 of OUTPUT. Ranks are renumbered so that `first_rank`
 * is number 0; `rank` is the number of this rank, and number i owns chunk i. Number v already holds
 * chunks v .. v + held(v, nranks) - 1 (mod nranks). `held` returns at least 1 and is the same
 * function on all ranks. Chunks are sent from `source`: OUTPUT, or INPUT on a rank that held all
 * chunks at the start. Errors are those of build.h. */
int tutti_circulant_gather(uint32_t nranks, uint32_t rank, uint32_t first_rank,
                           enum tutti_buffer source,
                           uint32_t (*held)(uint32_t rank, uint32_t nranks),
                           struct tutti_build *build);

#endif
