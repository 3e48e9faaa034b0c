/* SPDX-License-Identifier: Apache-2.0
 * The machine as algorithms see it: how many ranks there are, which of them share a node, and
 * orders and trees that were found elsewhere. Nothing here has a unit; topology/machine/machine.h
 * has latencies and bandwidths.
 */
#ifndef TUTTI_SCHEDULE_SHAPE_H
#define TUTTI_SCHEDULE_SHAPE_H

#include "schedule/collective.h"

#include <stdbool.h>
#include <stdint.h>

/* Tuning parameters of algorithms. They affect speed, never correctness. */
enum tutti_option {
    TUTTI_SEGMENTS,  /* pieces of a block that follow one another through a pipeline */
    TUTTI_RADIX,     /* base of a k-nomial tree, or of the digits of a round */
    TUTTI_WINDOW,    /* peers that a rank exchanges with at a time */
    TUTTI_AGGREGATE, /* most blocks per message */
    TUTTI_DOUBLINGS, /* rounds that exchange whole vectors instead of halves */
    TUTTI_CHANNELS,  /* rings, trees or parts side by side */
    TUTTI_OPTION_COUNT
};

/* One value per option; 0 is the algorithm's usual value. */
struct tutti_options {
    uint32_t value[TUTTI_OPTION_COUNT];
};

/* Name of an option in files, variables and tables: "segments", "radix", ...; "unknown" if out of
 * range. */
const char *tutti_option_name(enum tutti_option option);

/* Where ranks are. Borrowed, immutable, and the same on all ranks. */
struct tutti_placement {
    uint32_t nranks;
    /* Node (host, or load/store domain) of each rank, 0 .. nnodes-1, numbered in the order of their
     * first ranks. NULL: each rank is a node of its own. Nodes may differ in size, and the ranks of
     * a node need not be consecutive. */
    const uint32_t *node;
    uint32_t nnodes;
    /* Group (rack, leaf switch, pod) of each rank, 0 .. ngroups-1, numbered in the order of their
     * first ranks. The same for all ranks of a node. NULL: there is one group. */
    const uint32_t *group;
    uint32_t ngroups;
    /* Cell of each rank: the ranks of a node that share a socket, a memory or a cache. The cells of
     * all nodes are numbered together, in the order of their first ranks; no cell reaches into
     * another node. NULL: nodes have no cells. */
    const uint32_t *cell;
    uint32_t ncells;
    /* Set by tutti_placement_align from `node` and `group`. Every rank at which a node (or a group)
     * begins is a multiple of this; 0: not known, or there is only one. */
    uint32_t node_align, group_align;
    bool is_block; /* the ranks of every node are consecutive */
    /* `nrings` cyclic orders of all ranks, one after another. None: the order of rank numbers. */
    const uint32_t *rings;
    uint32_t nrings;
    /* `ntrees` spanning trees, one after another: the parent of each rank, TUTTI_NO_RANK at the
     * tree's root. None: algorithms use their own trees. */
    const int32_t *trees;
    uint32_t ntrees;
    /* Torus of `ndims` dimensions: rank = x0 + dims[0] * (x1 + dims[1] * (x2 + ...)). 0 dimensions:
     * none. */
    uint32_t dims[4];
    uint32_t ndims;
};

/* Set node_align, group_align and is_block from `node` and `group`, which must be set. Cost
 * functions use the results to find the rounds that stay within a node. */
void tutti_placement_align(struct tutti_placement *places);

struct tutti_shape {
    /* The collective to emit or to price. tutti_algorithm_emit and _cost take it from the
     * algorithm's row, so others need not set it. */
    enum tutti_collective collective;
    uint32_t nranks, rank, root;
    struct tutti_options options;
    const struct tutti_placement *places; /* borrowed; NULL: nothing is known */
    /* Number of channels that the executor has. If an algorithm asks for more, its channels share
     * these. 0: no limit. */
    uint32_t channels;
};

#endif
