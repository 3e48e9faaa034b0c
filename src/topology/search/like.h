/* SPDX-License-Identifier: Apache-2.0
 * Numbers the links of a cluster in which parts stand for others (graph/parts.h) as those of a
 * machine of like parts (machine.h). */
#ifndef TUTTI_TOPOLOGY_SEARCH_LIKE_H
#define TUTTI_TOPOLOGY_SEARCH_LIKE_H

#include "topology/graph/parts.h"
#include "topology/machine/machine.h"

/* Returns true if a machine of like parts describes the path between two gpus of the graph, or if
 * no part stands for others. */
bool tutti_search_is_described(const struct tutti_graph_parts *parts, uint32_t from, uint32_t to);

/* Makes the kinds of parts, and replaces the links in `crossings`, which are those of the graph, by
 * those of the machine. `crossings` are those of all described paths. ret_used gets the described
 * links of the machine, as links of the graph; it has room for all of them. ret_kinds has room for
 * TUTTI_MACHINE_KINDS. TUTTI_ERR_ARGUMENT: too many kinds, or the second part of a kind is not like
 * the first; TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_number_like(const struct tutti_graph *graph, const struct tutti_graph_parts *parts,
                             struct tutti_machine_crossing *crossings, uint32_t ncrossings,
                             uint32_t *ret_used, uint32_t *ret_nused,
                             struct tutti_machine_parts *ret_kinds, uint32_t *ret_nkinds);

#endif
