/* SPDX-License-Identifier: Apache-2.0
 * The shape of the machine as far as algorithms see it: how many ranks, which of them live
 * together, and orders that somebody else has found. Nothing here has a unit: what things cost
 * is topology/machine/machine.h's business.
 */
#ifndef TUTTI_SCHEDULE_SHAPE_H
#define TUTTI_SCHEDULE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes of an algorithm's parts: a matter of speed, never of right. */
enum tutti_option {
    TUTTI_SEGMENTS,  /* pieces of a block that follow each other through a pipeline */
    TUTTI_RADIX,     /* children of a tree node and one, or digits of a round */
    TUTTI_WINDOW,    /* peers that a rank exchanges with at a time */
    TUTTI_AGGREGATE, /* blocks per message, at most */
    TUTTI_DOUBLINGS, /* rounds that exchange whole vectors instead of halves */
    TUTTI_CHANNELS,  /* rings or trees side by side */
    TUTTI_OPTION_COUNT
};

/* 0: the algorithm's usual value. */
struct tutti_options {
    uint32_t value[TUTTI_OPTION_COUNT];
};

/* "segments", "radix", ...: in files, variables and tables. */
const char *tutti_option_name(enum tutti_option option);

/* Where ranks live. Borrowed, immutable, the same on all ranks. */
struct tutti_places {
    uint32_t nranks;
    /* Node (host, or load/store domain) of each rank, 0 .. nnodes-1 in the order of their first
     * ranks; NULL: each rank is a node of its own. Nodes may differ in size, and a node's ranks
     * need not be neighbours. */
    const uint32_t *node;
    uint32_t nnodes;
    /* Group (rack, leaf switch, pod) of each rank, numbered likewise, the same for all ranks of a
     * node; NULL: one group. */
    const uint32_t *group;
    uint32_t ngroups;
    /* Cell (a socket, or what else of a node shares a memory or a cache) of each rank, numbered
     * likewise through all nodes; a cell lies within a node. NULL: nodes have none. */
    const uint32_t *cell;
    uint32_t ncells;
    /* What tutti_places_align finds in `node` and `group`. Ranks at which a node, or a group,
     * begins are multiples of this; 0: not known, or there is but one. */
    uint32_t node_align, group_align;
    bool is_block; /* the ranks of every node are neighbours */
    /* Cyclic orders of all ranks, one after the other; 0: the order of their numbers. */
    const uint32_t *rings;
    uint32_t nrings;
    /* Spanning trees: the parent of each rank, TUTTI_NO_RANK at the tree's root; one after the
     * other. 0: the algorithm's own. */
    const int32_t *trees;
    uint32_t ntrees;
    /* Torus: rank = x0 + dims[0] * (x1 + dims[1] * (x2 + ...)); 0: none. */
    uint32_t dims[4];
    uint32_t ndims;
};

/* To be called by whoever sets `node` and `group`: costs then know which rounds stay in a node. */
void tutti_places_align(struct tutti_places *places);

struct tutti_shape {
    uint32_t nranks, rank, root;
    struct tutti_options options;
    const struct tutti_places *places; /* NULL: nothing is known */
    /* Channels that whoever runs the schedule has; an algorithm that asks for more has them share
     * these. 0: as many as are asked for. */
    uint32_t channels;
};

#endif
