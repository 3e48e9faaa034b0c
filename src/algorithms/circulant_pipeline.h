/* SPDX-License-Identifier: Apache-2.0
 * The moves of circulant_pipeline.c. Other algorithms use them as parts of their own.
 */
#ifndef TUTTI_ALGORITHMS_CIRCULANT_PIPELINE_H
#define TUTTI_ALGORITHMS_CIRCULANT_PIPELINE_H

#include "algorithms/team.h"

/* Add this rank's moves of a broadcast from the team's first member to the others. The broadcast
 * covers `segments` chunks: first, first + stride, first + 2 stride, ... TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_circulant_pipeline_moves(const struct tutti_team *team, uint32_t first, uint32_t stride,
                                   uint32_t segments, struct tutti_moves *moves);

#endif
