/* SPDX-License-Identifier: Apache-2.0
 * Adds the links of a graph whose nodes exist already. */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H

#include "topology/graph/graph.h"

/* Adds all links with their rates. */
int tutti_graph_link(struct tutti_graph *graph);

/* True if a gpu has NVLinks to a switch. */
bool tutti_gpu_has_switch(const struct tutti_inventory *inventory, uint32_t gpu);

#endif
