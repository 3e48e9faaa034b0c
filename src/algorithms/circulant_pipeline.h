/* SPDX-License-Identifier: Apache-2.0
 * The moves of circulant_pipeline.c, for algorithms that contain them.
 */
#ifndef TUTTI_ALGORITHMS_CIRCULANT_PIPELINE_H
#define TUTTI_ALGORITHMS_CIRCULANT_PIPELINE_H

#include "algorithms/team.h"

/* Add the moves of a broadcast from the team's first member to the others. It covers `segments`
 * chunks: first, first + stride, first + 2 stride, ... */
int tutti_circulant_pipeline_moves(const struct tutti_team *team, uint32_t first, uint32_t stride,
                                   uint32_t segments, struct tutti_moves *moves);

#endif
