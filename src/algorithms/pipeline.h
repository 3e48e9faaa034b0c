/* SPDX-License-Identifier: Apache-2.0
 * Broadcast, reduce and all-reduce in segments that follow each other along trees.
 */
#ifndef TUTTI_ALGORITHMS_PIPELINE_H
#define TUTTI_ALGORITHMS_PIPELINE_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* This rank in a tree of all ranks, whose top is the root of the collective, if it has one. */
struct pipeline_node {
    uint32_t depth;  /* hops from the top */
    uint32_t parent; /* rank; not at depth 0 */
    uint32_t nchildren;
    const uint32_t *children; /* ranks */
};

/* Emit what the build's collective asks for: data goes up, down, or both, each tree moving as many
 * chunks of the vector. Nodes are this rank's, one in each of the trees. */
int tutti_pipeline_emit(struct tutti_build *build, const struct pipeline_node *nodes,
                        uint32_t ntrees, uint32_t segments);

/* What it costs when no rank is further than `height` hops from a top, and none has more than `fan`
 * children in all trees together: on one port a segment comes that much later with each hop, and
 * as much later than the one before. `segments` is the algorithm's option. */
void tutti_pipeline_cost(const struct tutti_shape *shape, enum tutti_collective collective,
                         uint32_t height, uint32_t fan, uint32_t ntrees, double block_bytes,
                         struct tutti_cost *ret_cost);

#endif
