/* SPDX-License-Identifier: Apache-2.0
 * Finds the best path between any two gpus, nets and cpus.
 *
 * Every path has a class, which says what kinds of links it uses. Of two paths, the one with the
 * better class is better, then the one with the higher rate, then the one with fewer links. Classes
 * are NCCL's, and have nvidia-smi's names where nvidia-smi has the same classes.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_PATHS_H
#define TUTTI_TOPOLOGY_GRAPH_PATHS_H

#include "topology/graph/graph.h"

/* The classes are listed from the best to the worst. */
enum tutti_path_class {
    TUTTI_PATH_LOC, /* the same device */
    TUTTI_PATH_NVL, /* NVLinks and NVSwitches */
    TUTTI_PATH_NVB, /* NVLinks, through one gpu in between */
    TUTTI_PATH_C2C, /* a gpu's cache-coherent link to its CPU */
    TUTTI_PATH_PIX, /* one PCIe switch */
    TUTTI_PATH_PXB, /* several PCIe switches */
    TUTTI_PATH_P2C, /* a coherent link to the CPU, then PCIe */
    TUTTI_PATH_PXN, /* NVLinks to a gpu near the nic, then PCIe switches */
    TUTTI_PATH_PHB, /* through a CPU's root complex */
    TUTTI_PATH_SYS, /* between NUMA nodes */
    TUTTI_PATH_NET, /* between hosts */
    TUTTI_PATH_DIS, /* no path */
    TUTTI_PATH_CLASSES
};

/* One link of a path. */
struct tutti_hop {
    uint32_t link; /* of the graph */
    double demand; /* bytes on the link per byte on the path: 1, or more (speeds.h) */
};

struct tutti_path {
    enum tutti_path_class class;
    uint32_t nhops;
    uint32_t first;      /* index of its first hop in `hop` of the paths */
    double bytes_per_s;  /* rate of a single flow; 0: LOC or DIS, which have no links */
    double latency_s;    /* sum over all links */
};

struct tutti_paths {
    const struct tutti_graph *graph;
    uint32_t nends;          /* ends of paths: all gpus, nets and cpus */
    uint32_t *end;           /* graph nodes: gpus, then nets, then cpus, each by number */
    uint32_t *end_of;        /* per graph node: its index in `end`, or TUTTI_NO_NODE */
    struct tutti_path *path; /* from end a to end b: path[a * nends + b] */
    struct tutti_hop *hop;   /* hops of all paths, path after path */
    uint32_t nhops;
};

/* Finds all paths, within hosts and over the fabric between them. The graph is borrowed and must
 * outlive the paths. TUTTI_ERR_SYSTEM: no memory. */
int tutti_paths_find(const struct tutti_graph *graph, struct tutti_paths **ret_paths);
/* Frees the paths, but not the graph; NULL is allowed. */
void tutti_paths_destroy(struct tutti_paths *paths);

/* Returns the path between two graph nodes; both must be ends (gpus, nets or cpus). */
const struct tutti_path *tutti_paths_between(const struct tutti_paths *paths, uint32_t from,
                                             uint32_t to);

/* Returns a class's name, such as "NVL" or "PIX". */
const char *tutti_path_class_name(enum tutti_path_class class);

#endif
