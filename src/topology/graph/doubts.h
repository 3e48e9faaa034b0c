/* SPDX-License-Identifier: Apache-2.0
 * Finds what is likely wrong in the description of a machine, or degraded in the machine itself. */
#ifndef TUTTI_TOPOLOGY_GRAPH_DOUBTS_H
#define TUTTI_TOPOLOGY_GRAPH_DOUBTS_H

#include "topology/graph/graph.h"

#include <stdio.h>

/* Writes a line for each doubt about the graph:
 * - A rate exceeds what any such device carries, so its unit is likely wrong. The rate is used. A
 *   measured rate is not doubted, and replaces the described one.
 * - Two gpus list different links to each other. The weaker description is used.
 * - A gpu has fewer links to its NVSwitch than most other gpus of its kind.
 * After TUTTI_GRAPH_DOUBTS_SHOWN lines of one sort, a line gives the number of the others. */
void tutti_graph_write_doubts(const struct tutti_graph *graph, FILE *out);

/* The most lines of one sort. */
#define TUTTI_GRAPH_DOUBTS_SHOWN 8

#endif
