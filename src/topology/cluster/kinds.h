/* SPDX-License-Identifier: Apache-2.0
 * Declares the function with which cluster.c frees the kinds of a cluster. */
#ifndef TUTTI_TOPOLOGY_CLUSTER_KINDS_H
#define TUTTI_TOPOLOGY_CLUSTER_KINDS_H

#include "topology/cluster/cluster.h"

/* Frees all kinds with their graphs, paths and lists of gpus. The cluster may have no kinds. */
void tutti_cluster_drop_kinds(struct tutti_cluster *cluster);

#endif
