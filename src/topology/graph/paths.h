/* SPDX-License-Identifier: Apache-2.0
 * The way between any two gpus, nets and cpus, and how good it is.
 *
 * Of all ways the one of the best class is taken; of these the widest, of these the one of fewest
 * links. Classes are NCCL's, and nvidia-smi's where it has them.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_PATHS_H
#define TUTTI_TOPOLOGY_GRAPH_PATHS_H

#include "topology/graph/graph.h"

/* From the best to the worst. */
enum tutti_path_class {
    TUTTI_PATH_LOC, /* the same device */
    TUTTI_PATH_NVL, /* NVLinks and NVSwitches */
    TUTTI_PATH_NVB, /* NVLinks, through one gpu between */
    TUTTI_PATH_C2C, /* a gpu's coherent link */
    TUTTI_PATH_PIX, /* one PCIe switch */
    TUTTI_PATH_PXB, /* several PCIe switches */
    TUTTI_PATH_P2C, /* a coherent link to the CPU, from there PCIe */
    TUTTI_PATH_PXN, /* NVLinks to a gpu near the nic, from there PCIe switches */
    TUTTI_PATH_PHB, /* a CPU's root complex */
    TUTTI_PATH_SYS, /* between NUMA nodes */
    TUTTI_PATH_NET, /* between hosts */
    TUTTI_PATH_DIS, /* none */
    TUTTI_PATH_CLASSES
};

/* One link of a path. */
struct tutti_hop {
    uint32_t link;
    double demand; /* bytes that cross it for one that goes the path: 1, or more (speeds.h) */
};

struct tutti_path {
    enum tutti_path_class class;
    uint32_t nhops;
    uint32_t first;      /* of its hops, in `hop` of the paths */
    double bytes_per_s;  /* what one flow alone gets; 0 where there is no link */
    double latency_s;    /* of all links */
};

struct tutti_paths {
    const struct tutti_graph *graph;
    uint32_t nends;
    uint32_t *end;           /* graph nodes: gpus, then nets, then cpus, each by number */
    uint32_t *end_of;        /* per graph node: its place in `end`, or TUTTI_NO_NODE */
    struct tutti_path *path; /* from end a to end b: path[a * nends + b] */
    struct tutti_hop *hop;   /* of all paths, one after the other */
    uint32_t nhops;
};

/* Within hosts, and over the fabric between them. The graph is borrowed. */
int tutti_paths_find(const struct tutti_graph *graph, struct tutti_paths **ret_paths);
void tutti_paths_destroy(struct tutti_paths *paths);

/* Between two graph nodes that are ends. */
const struct tutti_path *tutti_paths_between(const struct tutti_paths *paths, uint32_t from,
                                             uint32_t to);

/* "NVL", "PIX", ... and back; CLASSES: none. */
const char *tutti_path_class_name(enum tutti_path_class class);
enum tutti_path_class tutti_path_class_named(const char *name);

#endif
