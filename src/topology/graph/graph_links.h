/* SPDX-License-Identifier: Apache-2.0
 * The links of a graph whose nodes are there. */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H

#include "topology/graph/graph.h"

/* Make all links, with what they carry. */
int tutti_graph_link(struct tutti_graph *graph);

/* Does a gpu have NVLinks to a switch? */
bool tutti_gpu_has_switch(const struct tutti_inventory *inventory, uint32_t gpu);

#endif
