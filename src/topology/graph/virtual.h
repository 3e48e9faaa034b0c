/* SPDX-License-Identifier: Apache-2.0
 * Tells network ports that only the kernel provides from ports of cards.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_VIRTUAL_H
#define TUTTI_TOPOLOGY_GRAPH_VIRTUAL_H

#include "topology/graph/graph.h"

/* Returns true if a net node is a loopback, a tunnel, a bridge of containers or virtual machines,
 * or one end of a virtual cable, by its name. Data that it takes to other hosts leaves by another
 * port, so it has no rate of its own. */
bool tutti_net_is_virtual(const struct tutti_graph *graph, uint32_t net);

#endif
