/* SPDX-License-Identifier: Apache-2.0
 * Adds the links of a graph whose nodes exist already. */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_LINKS_H

#include "topology/graph/graph.h"

/* Adds all links with their rates. The nodes must be sorted and numbered, and `device` of each
 * NVSwitch node must be one of the gpus that the NVSwitch joins. TUTTI_ERR_SYSTEM: no memory. */
int tutti_graph_link(struct tutti_graph *graph);

/* What a gpu lists about the NVLinks to another gpu. */
struct tutti_graph_listed {
    bool is_listed;
    int64_t count;      /* of links */
    bool is_measured;   /* bytes_per_s was measured, at least for some of them */
    double bytes_per_s; /* of all of them, in one direction */
};

/* Returns what `gpu` lists about its links to `other`, a gpu of the same host. The two gpus may
 * disagree; the graph then has the links of the lower rate. A measurement of one side alone is no
 * disagreement. */
struct tutti_graph_listed tutti_graph_listed_links(const struct tutti_inventory *inventory,
                                                   uint32_t gpu, uint32_t other);

/* Returns the gpu whose children are the links of the device that `gpu` belongs to: of the gpus
 * below one pci, the first with children. */
uint32_t tutti_graph_speaker(const struct tutti_inventory *inventory, uint32_t gpu);

/* Returns true if a gpu has NVLinks to an NVSwitch. */
bool tutti_graph_has_switch(const struct tutti_inventory *inventory, uint32_t gpu);

#endif
