/* SPDX-License-Identifier: Apache-2.0
 * Decides which way data takes between any two gpus: through which ports it goes if they are on
 * different hosts. The channels of plans keep the ports that the search gave them, so a pair
 * of gpus may have several ways, each for one channel of a schedule. All other data uses the ports
 * that are dealt out to the gpus (ports.h).
 *
 * A plan is one of the first part of the cluster (parts.h), such as host 0, and is repeated on the
 * other parts. Rings go through one part after the other. Binary trees of the parts join the trees
 * within them (joint.h). */
#ifndef TUTTI_TOPOLOGY_SEARCH_WAYS_H
#define TUTTI_TOPOLOGY_SEARCH_WAYS_H

#include "topology/graph/parts.h"
#include "topology/graph/ports.h"
#include "topology/machine/machine.h"
#include "topology/search/search.h"

/* The ports of a way, as graph nodes. */
struct tutti_search_port_pair {
    uint32_t out, in;
};

/* The way of one channel of a schedule between two ranks. */
struct tutti_search_channel_way {
    uint32_t from, to;
    uint8_t channel; /* of a ring, as in algorithms/ring.h: twice its number, and one more for the
                        direction back. The trees follow, with a channel each (tree.c) */
    struct tutti_search_port_pair ports;
};

/* A rank is a gpu of the graph here, and has its number. */
struct tutti_search_ways {
    const struct tutti_paths *paths; /* borrowed */
    struct tutti_graph_parts parts;
    uint32_t nranks;
    struct tutti_ports *dealt;
    uint32_t nrings; /* of the machine */
    struct tutti_search_channel_way *channel_ways;
    uint32_t nchannel_ways, channel_way_capacity;
};

/* Plans the ways; both plans may be NULL. Of each plan the first TUTTI_MACHINE_ORDERS channels are
 * used. The caller destroys the ways. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_ways_plan(const struct tutti_paths *paths, const struct tutti_channels *ring,
                           const struct tutti_channels *tree, struct tutti_search_ways **ret_ways);
/* Frees the ways, but not the paths; NULL is allowed. */
void tutti_search_ways_destroy(struct tutti_search_ways *ways);

/* Stores the paths that follow each other on the way between two gpus, and returns how many there
 * are. */
uint32_t tutti_search_ways_between(const struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                                   const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS]);
/* Does the same for the way of a channel. */
uint32_t tutti_search_ways_of_channel(const struct tutti_search_ways *ways,
                                      const struct tutti_search_channel_way *way,
                                      const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS]);

/* Returns the number of gpus of a part for which the plan is repeated, which is all gpus if it is a
 * plan of all hosts. 0: the plan cannot be repeated, or is NULL. */
uint32_t tutti_search_repeated_gpus(const struct tutti_search_ways *ways,
                                    const struct tutti_channels *plan);
/* Returns the index of the root of a tree channel among the gpus of its plan. */
uint32_t tutti_search_tree_root(const struct tutti_channels *plan,
                                const struct tutti_channel *channel);

/* Returns how many trees of the machine a channel of a tree plan becomes: one for each binary tree
 * of the parts (joint.h), or one if the machine has no room for more. */
uint32_t tutti_search_orders_per_tree(const struct tutti_search_ways *ways,
                                      const struct tutti_channels *plan);
#endif
