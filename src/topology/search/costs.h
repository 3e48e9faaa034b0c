/* SPDX-License-Identifier: Apache-2.0
 * A machine's graph as what the tuner and the simulator reckon with.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_COSTS_H
#define TUTTI_TOPOLOGY_SEARCH_COSTS_H

#include "topology/graph/paths.h"
#include "topology/machine/machine.h"
#include "topology/search/search.h"

/* A rank for each gpu of the graph, by its number; a node for each host; each link that any path
 * between two of them crosses, and each path. The plans are of all gpus, or of those of the first
 * host that has some, and then become rings and trees of all ranks where every host has as many: a
 * ring goes on from the last gpu of a host to the first of the next one, a tree's root hangs below
 * that of host (h - 1) / 2. NULL: none. TUTTI_ERR_ARGUMENT: there is no gpu, or no way between
 * some. */
int tutti_graph_machine(const struct tutti_paths *paths, const struct tutti_channels *ring,
                        const struct tutti_channels *tree, struct tutti_machine **ret_machine);

#endif
