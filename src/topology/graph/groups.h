/* SPDX-License-Identifier: Apache-2.0
 * Who belongs together: gpus by NVLink domain, NUMA node or host, ports by rail; and which ports
 * are a gpu's own.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_GROUPS_H
#define TUTTI_TOPOLOGY_GRAPH_GROUPS_H

#include "topology/graph/paths.h"

enum tutti_grouping {
    TUTTI_GROUP_NVLINK, /* gpus that NVLinks join, by way of switches and other gpus too */
    TUTTI_GROUP_NUMA,   /* gpus below one cpu */
    TUTTI_GROUP_HOST,
    TUTTI_GROUP_RAIL,   /* ports of one rail; where rails are not known by their place in the
                           host */
    TUTTI_GROUPINGS
};

/* The group of each gpu, or of each net for RAIL, by number; groups are numbered in the order of
 * their first members. ret_group has room for all. Returns how many groups there are. */
uint32_t tutti_groups_find(const struct tutti_graph *graph, enum tutti_grouping grouping,
                           uint32_t *ret_group);
const char *tutti_grouping_name(enum tutti_grouping grouping);

/* The nets of the gpu's host, the nearest first: by class, then by width. Of equally near ones
 * those come first that are dealt to this gpu: n such ports and m gpus that are as near to them get
 * n / m of them each, in turns. ret_net has room for all nets. Returns how many it reaches. */
uint32_t tutti_affinity_find(const struct tutti_paths *paths, uint32_t gpu, uint32_t *ret_net);

#endif
