/* SPDX-License-Identifier: Apache-2.0
 * Adds the links of a graph whose nodes exist already. */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H

#include "topology/graph/graph.h"

/* Adds all links with their rates. The nodes must be sorted and numbered, and `device` of each
 * NVSwitch node must be one of the gpus that the NVSwitch joins. TUTTI_ERR_SYSTEM: no memory. */
int tutti_graph_link(struct tutti_graph *graph);

/* Returns true if a gpu has NVLinks to an NVSwitch. */
bool tutti_graph_has_switch(const struct tutti_inventory *inventory, uint32_t gpu);

#endif
