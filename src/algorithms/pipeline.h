/* SPDX-License-Identifier: Apache-2.0
 * Broadcast, reduce and all-reduce in segments that follow each other along trees.
 */
#ifndef TUTTI_ALGORITHMS_PIPELINE_H
#define TUTTI_ALGORITHMS_PIPELINE_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* The other end of an edge. Segment j comes down the edge in round j * period + `at`, if no message
 * takes longer than a round, and goes up in round j * period - `at`. */
struct pipeline_edge {
    uint32_t rank;
    uint32_t at; /* >= 1 */
};

/* This rank in a tree of all ranks, whose top is the root of the collective, if it has one. */
struct pipeline_node {
    struct pipeline_edge parent;          /* at == 0: this is the top */
    const struct pipeline_edge *children; /* later than the parent, in the order of their rounds */
    uint32_t nchildren;
};

struct pipeline {
    const struct pipeline_node *nodes; /* this rank's, one in each tree */
    uint32_t ntrees;                   /* each moves its own part of the vector ... */
    uint32_t segments;                 /* ... in so many */
    uint32_t period;                   /* rounds from one segment to the next, on every edge */
};

/* Emit what the build's collective asks for: data goes up, down, or both. */
int tutti_pipeline_emit(struct tutti_build *build, const struct pipeline *pipeline);

/* What it costs when no rank is further than `height` hops from a top, and none has more than `fan`
 * children in all trees together: on one port a segment comes that much later with each hop, and
 * as much later than the one before. `segments` is the algorithm's option. */
void tutti_pipeline_cost(const struct tutti_shape *shape, enum tutti_collective collective,
                         uint32_t height, uint32_t fan, uint32_t ntrees, double block_bytes,
                         struct tutti_cost *ret_cost);

#endif
