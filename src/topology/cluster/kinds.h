/* SPDX-License-Identifier: Apache-2.0
 * Internal part of cluster.c: frees the kinds of domains. */
#ifndef TUTTI_TOPOLOGY_CLUSTER_KINDS_H
#define TUTTI_TOPOLOGY_CLUSTER_KINDS_H

#include "topology/cluster/cluster.h"

void tutti_cluster_drop_kinds(struct tutti_cluster *cluster);

#endif
