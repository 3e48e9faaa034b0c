/* SPDX-License-Identifier: Apache-2.0
 * Converts a machine's graph to the cost model of the tuner and the simulator (machine.h).
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_COSTS_H
#define TUTTI_TOPOLOGY_SEARCH_COSTS_H

#include "topology/graph/paths.h"
#include "topology/machine/machine.h"
#include "topology/search/search.h"

/* The rates of the links of a machine: those of the search, so that its claims can be checked, or
 * those that measurements reach, for times that users compare with theirs. */
enum tutti_search_rates { TUTTI_RATES_NOMINAL, TUTTI_RATES_REACHED };

/* Makes a machine with a rank for each gpu of the cluster, in the order of the hosts, and a node
 * for each host that has gpus. The machine has the paths between all ranks, and the links that they
 * cross. Parts that stand for others (graph/parts.h) become like parts of the machine.
 *
 * `ring` and `tree` are plans for all gpus, or for those of the first part that has gpus. In the
 * second case a plan is extended to all ranks if every part has as many gpus; otherwise it is
 * ignored. A ring goes on from the last gpu of a part to the first gpu of the next part. A tree's
 * root on part p is placed below the root on part (p - 1) / 2. NULL: no plan.
 *
 * The caller destroys the machine. TUTTI_ERR_ARGUMENT: the graph has no gpus, or two of them have
 * no path; TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_machine(const struct tutti_paths *paths, const struct tutti_channels *ring,
                         const struct tutti_channels *tree, enum tutti_search_rates rates,
                         struct tutti_machine **ret_machine);

#endif
