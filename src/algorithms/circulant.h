/* SPDX-License-Identifier: Apache-2.0
 * The moves of circulant.c, for algorithms that contain them.
 */
#ifndef TUTTI_ALGORITHMS_CIRCULANT_H
#define TUTTI_ALGORITHMS_CIRCULANT_H

#include "algorithms/ranks.h"
#include "algorithms/team.h"

/* List the moves of the all-gather among a team: the moves->nchunks chunks are cut into pieces
 * (team.h), and member i owns piece i. Sets moves->own_first and own_count. */
int tutti_circulant_moves(const struct tutti_team *team, struct tutti_moves *moves);

/* Pieces that a member of the reduce-scatter copies, 0 or 1. With an odd count the first round
 * leaves out the piece in the middle, which joins the partial sums in the second. Below 7 it is
 * alone in its message there, so no copy is needed. */
static inline double tutti_circulant_copied(uint32_t count)
{
    return count % 2 == 1 && count >= 7;
}

/* Emit the all-gather of chunks 0 .. nranks-1 of OUTPUT. Ranks are renumbered so that `first_rank`
 * is number 0; `rank` is this rank's number, and number i owns chunk i. Number v already holds
 * chunks v .. v + held(v) - 1 (mod nranks); held returns at least 1 and is the same function on all
 * ranks. Chunks are sent from `source`: OUTPUT, or INPUT on a rank that held all of them at the
 * start. */
int tutti_circulant_gather(uint32_t nranks, uint32_t rank, uint32_t first_rank,
                           enum tutti_buffer source,
                           uint32_t (*held)(uint32_t rank, uint32_t nranks),
                           struct tutti_build *build);

#endif
