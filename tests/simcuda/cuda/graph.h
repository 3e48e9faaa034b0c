/* SPDX-License-Identifier: Apache-2.0
 * A graph is a set of works with an order between them. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_GRAPH_H
#define TUTTI_TESTS_SIMCUDA_CUDA_GRAPH_H

#include "simcuda/cuda/state.h"

struct sim_work;

/* All with the lock. */
struct tutti_cu_graph *sim_graph_create(void);
void sim_graph_destroy(struct tutti_cu_graph *graph);
/* Takes the work over; gives the node's number, which is greater than those of `earlier`. */
uint32_t sim_graph_add(struct tutti_cu_graph *graph, struct sim_work *work,
                       const uint32_t *earlier, uint32_t nearlier);
/* True if this node is one of those that end, or precedes one of them. */
bool sim_graph_leads(const struct tutti_cu_graph *graph, uint32_t node, const uint32_t *ends,
                     uint32_t nends);

void sim_exec_drop(struct tutti_cu_exec *exec);
/* Do it all, on this thread and others, without the lock. */
void sim_exec_run(const struct tutti_cu_exec *exec);

/* Counts graphs and their executable forms that were not destroyed. */
uint32_t sim_graphs_left(void);

#endif
