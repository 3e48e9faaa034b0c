/* SPDX-License-Identifier: Apache-2.0
 * Tells what a user should know about the description of a machine before trusting results. */
#ifndef TUTTI_TOOLS_TOPO_REMARKS_H
#define TUTTI_TOOLS_TOPO_REMARKS_H

#include "topology/graph/graph.h"

#include <stdio.h>

/* Prints a line "note: ..." for each remark of the reader (tutti_inventory_remark) and for each
 * doubt about the graph (doubts.h). If memory runs out, the program ends. */
void topo_remarks_print(const struct tutti_graph *graph, FILE *out);

#endif
