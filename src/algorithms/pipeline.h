/* SPDX-License-Identifier: Apache-2.0
 * Broadcast, reduce and all-reduce along trees. The vector is cut into segments that follow one
 * another, so that all edges of a tree are busy at the same time.
 */
#ifndef TUTTI_ALGORITHMS_PIPELINE_H
#define TUTTI_ALGORITHMS_PIPELINE_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* An edge to another rank. The top of the tree has segment j in round j * period; rounds before the
 * first segment are negative. If no message takes longer than a round, segment j goes down the edge
 * in round j * period + `delay`, and up in round j * period - `delay`. */
struct tutti_pipeline_edge {
    uint32_t rank;
    uint32_t delay; /* rounds; >= 1 */
};

/* This rank in a tree of all ranks. The top of the tree is the root of the collective, if it has
 * one. */
struct tutti_pipeline_node {
    struct tutti_pipeline_edge parent; /* delay == 0: this rank is the top */
    /* In ascending order of their delays, which are greater than that of the parent and may be
     * equal to each other. */
    const struct tutti_pipeline_edge *children;
    uint32_t nchildren;
};

struct tutti_pipeline {
    const struct tutti_pipeline_node *nodes; /* this rank's nodes, one per tree */
    uint32_t ntrees;                   /* each tree moves its own part of the vector */
    uint32_t segments;                 /* segments per tree */
    uint32_t period;                   /* rounds from one segment to the next, on every edge */
    bool has_channels;     /* tree t is on channel first_channel + t; false: all on channel 0 */
    uint32_t first_channel;
};

/* Emit the collective of the build, and declare its chunks and scratch memory. Data goes up, down,
 * or both. Errors are those of build.h. */
int tutti_pipeline_emit(struct tutti_build *build, const struct tutti_pipeline *pipeline);

/* Fill in the cost if no rank is more than `height` hops from a top, and no rank has more than
 * `fan` children in all trees together. With one port, each hop delays a segment by up to `fan`
 * messages, and each segment follows the one before by as many. The number of segments is
 * shape->options.value[TUTTI_SEGMENTS]. */
void tutti_pipeline_cost(const struct tutti_shape *shape, uint32_t height, uint32_t fan,
                         uint32_t ntrees, double block_bytes, struct tutti_cost *ret_cost);

#endif
