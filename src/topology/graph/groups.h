/* SPDX-License-Identifier: Apache-2.0
 * Groups of gpus (by NVLink domain, NUMA node or host) and of ports (by rail), and the ports that
 * each gpu should use.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_GROUPS_H
#define TUTTI_TOPOLOGY_GRAPH_GROUPS_H

#include "topology/graph/paths.h"

enum tutti_grouping {
    TUTTI_GROUP_NVLINK, /* gpus joined by NVLinks, also through switches and other gpus */
    TUTTI_GROUP_NUMA,   /* gpus below one cpu */
    TUTTI_GROUP_HOST,
    TUTTI_GROUP_RAIL,   /* ports of one rail; if rails are not known, ports with the same index in
                         * their host */
    TUTTI_GROUPINGS
};

/* Sets the group of each gpu, or for RAIL of each net, by number. Groups are numbered in the order
 * of their first members. ret_group has room for all gpus, or nets. Returns the number of
 * groups. */
uint32_t tutti_groups_find(const struct tutti_graph *graph, enum tutti_grouping grouping,
                           uint32_t *ret_group);
const char *tutti_grouping_name(enum tutti_grouping grouping);

/* Lists the nets of the gpu's host, nearest first: by path class, then by width. Among equally near
 * nets, those assigned to this gpu come first: n such nets are distributed round-robin over the m
 * gpus that are equally near to them. ret_net has room for all nets. Returns how many are
 * listed. */
uint32_t tutti_affinity_find(const struct tutti_paths *paths, uint32_t gpu, uint32_t *ret_net);

#endif
