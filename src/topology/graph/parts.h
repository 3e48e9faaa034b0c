/* SPDX-License-Identifier: Apache-2.0
 * Divides a cluster into parts: hosts whose gpus are joined by one NVSwitch are a part, and any
 * other host is one.
 *
 * A cluster of many like parts is described by the first two of them. The second one stands for all
 * others (TUTTI_PROPERTY_COPIES), so the graph has two parts of each kind:
 *
 *   2048 hosts: dgx-h100      part 0 is host 0, part 1 stands for the hosts 1 to 2047
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_PARTS_H
#define TUTTI_TOPOLOGY_GRAPH_PARTS_H

#include "topology/graph/graph.h"

struct tutti_graph_part {
    uint32_t first_host, nhosts;
    uint32_t first_gpu, ngpus; /* numbers of gpus in the graph */
    uint32_t first_rank;       /* of the cluster, which has a rank for each gpu */
    uint32_t copies;           /* parts for which this one stands, itself included */
};

struct tutti_graph_parts {
    struct tutti_graph_part *part; /* in the order of their hosts */
    uint32_t nparts;
    uint32_t nall, nranks; /* parts and gpus of the whole cluster */
    bool has_copies;       /* some part stands for several */
};

/* Finds the parts. The caller frees them with tutti_graph_parts_fini(). TUTTI_ERR_ARGUMENT: more
 * ranks than TUTTI_GRAPH_RANKS, or a host that stands for others does not follow one like it;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_graph_parts_find(const struct tutti_graph *graph, struct tutti_graph_parts *ret_parts);
/* Frees the array; a zeroed struct is allowed. */
void tutti_graph_parts_fini(struct tutti_graph_parts *parts);

/* Returns true if a part is the second one of its kind and stands for all others but the first. */
static inline bool tutti_graph_is_second(const struct tutti_graph_parts *parts, uint32_t part)
{
    return parts->part[part].copies > 1;
}

/* Returns the number of the part that has a host. */
uint32_t tutti_graph_part_of_host(const struct tutti_graph_parts *parts, uint32_t host);
/* Returns the number of the part that has a gpu. */
uint32_t tutti_graph_part_of_gpu(const struct tutti_graph_parts *parts, uint32_t gpu);
/* Returns the first part that has gpus; NULL: there is none. */
const struct tutti_graph_part *tutti_graph_first_part(const struct tutti_graph_parts *parts);
/* Returns true if one part has several hosts and all gpus of the cluster. */
bool tutti_graph_is_one_domain(const struct tutti_graph_parts *parts);

#endif
