/* SPDX-License-Identifier: Apache-2.0
 * Presents a machine, or a cluster of machines, as a graph. The devices of an inventory are its
 * nodes, which are joined by links with their rates.
 *
 *   gpu ==nvlink== nvswitch ==nvlink== gpu          cpu --sys-- cpu
 *    |                                              |
 *   pci (a switch) --pci-- pci --pci-- cpu         nic
 *    |
 *   nic -- net, net                                 one nic per card, one net per port
 *           |
 *         fabric -- net -- nic -- ...               where there are several hosts
 *
 * Several ranks may use one GPU, and a GPU may be partitioned. Such a device has several gpus below
 * one pci. The pci is then a node, and has the NVLinks, the coherent link and the PCI link of the
 * device. Its gpus are joined to it by links that do not limit them, so they share these links:
 *
 *   gpu ==nvlink== pci ==nvlink== nvswitch
 *   gpu ==nvlink==  |
 *                  cpu
 *
 * Links are directed and come in pairs. Nodes and links are numbered in the order of the inventory,
 * so graphs of equal inventories have the same numbers.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_H

#include "topology/inventory/inventory.h"

#define TUTTI_NO_NODE UINT32_MAX
/* Limit for hosts in one inventory; larger clusters are described as hosts of a few kinds
 * (cluster.h). */
#define TUTTI_GRAPH_HOSTS 256
/* Limit for gpus, nets and cpus together. */
#define TUTTI_GRAPH_ENDS 1024
/* Limit for the gpus of a cluster whose hosts stand for others (parts.h). */
#define TUTTI_GRAPH_RANKS (1u << 20)

enum tutti_graph_node_kind {
    TUTTI_NODE_GPU,
    TUTTI_NODE_NVSWITCH, /* all NVSwitches that join the same gpus, as one node */
    TUTTI_NODE_PCI,      /* a switch or bridge, or a device with several gpus (is_shared) */
    TUTTI_NODE_CPU,      /* a NUMA node with its root ports */
    TUTTI_NODE_NIC,      /* a card */
    TUTTI_NODE_NET,      /* a port of a card */
    TUTTI_NODE_FABRIC,   /* the network that joins the ports of several hosts */
    TUTTI_NODE_COUNT
};

enum tutti_graph_link_kind {
    TUTTI_LINK_NVLINK, /* also xGMI */
    TUTTI_LINK_C2C,
    TUTTI_LINK_PCI,
    TUTTI_LINK_SYS,    /* between NUMA nodes */
    TUTTI_LINK_PORT,   /* between a nic and its net */
    TUTTI_LINK_FABRIC, /* between a net and the fabric that joins the hosts */
    TUTTI_LINK_COUNT
};

struct tutti_graph_node {
    enum tutti_graph_node_kind kind;
    uint32_t device;  /* in the inventory; TUTTI_NO_DEVICE: an nvswitch or the fabric */
    uint32_t host;    /* from 0; of an nvswitch of several hosts: the first one; of the fabric: 0 */
    uint32_t cpu;     /* node of the cpu above it, or of the cpu itself; TUTTI_NO_NODE: none */
    uint32_t number;  /* among nodes of its kind, from 0; gpus and nets in their drivers' order */
    bool is_shared;   /* a pci that is one device with several gpus, not a switch */
    uint32_t first_link, nlinks; /* outgoing links: a range of `links` of the graph */
};

struct tutti_graph_link {
    uint32_t from, to;    /* nodes */
    uint32_t reverse;     /* the link from `to` to `from` */
    enum tutti_graph_link_kind kind;
    uint32_t count;       /* parallel NVLinks or C2C links, or PCIe lanes; 0: not known, or none */
    double bytes_per_s;   /* measured if available, else nominal_bytes_per_s */
    double nominal_bytes_per_s; /* the rate that NCCL assumes for such a link (speeds.h) */
    double reached_bytes_per_s; /* measured if available, else what others reached (reached.h) */
    double latency_s;     /* one way */
    enum tutti_source found_by; /* source of bytes_per_s; ASSUMED: a usual value */
};

struct tutti_graph {
    struct tutti_inventory *inventory; /* the graph's own copy */
    struct tutti_graph_node *nodes;
    uint32_t nnodes;
    struct tutti_graph_link *links;    /* links of one node are consecutive */
    uint32_t nlinks;
    uint32_t nhosts;
    /* Per kind of node: its first node, and their count. Nodes of a kind are consecutive, in the
     * order of their numbers. */
    uint32_t first[TUTTI_NODE_COUNT], count[TUTTI_NODE_COUNT];
};

/* Return the node of the gpu or net with this number. */
static inline uint32_t tutti_graph_gpu(const struct tutti_graph *graph, uint32_t number)
{
    return graph->first[TUTTI_NODE_GPU] + number;
}

static inline uint32_t tutti_graph_net(const struct tutti_graph *graph, uint32_t number)
{
    return graph->first[TUTTI_NODE_NET] + number;
}

/* Builds the graph of an inventory, which is copied; the caller destroys the graph.
 * TUTTI_ERR_ARGUMENT: too many hosts, or too many gpus, nets and cpus; TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_graph_build(const struct tutti_inventory *inventory, struct tutti_graph **ret_graph);
/* Frees a graph with its inventory; NULL is allowed. */
void tutti_graph_destroy(struct tutti_graph *graph);

/* Returns the node of a device; TUTTI_NO_NODE: the device has none. */
uint32_t tutti_graph_find(const struct tutti_graph *graph, uint32_t device);

/* Writes a node's name: "gpu 3", "nvswitch", "cpu 1", "pci 0000:17:00.0", "nic 0000:18:00.0" or
 * "net 0 (mlx5_0)", preceded by the host if there are several. */
void tutti_graph_node_name(const struct tutti_graph *graph, uint32_t node, char *ret_name,
                           size_t size_bytes);
/* Writes a link's name, such as "gpu 3 -> nvswitch (nvlink)". */
void tutti_graph_link_name(const struct tutti_graph *graph, uint32_t link, char *ret_name,
                           size_t size_bytes);
/* Returns a kind's name, such as "gpu" or "fabric". */
const char *tutti_graph_node_kind_name(enum tutti_graph_node_kind kind);

#endif
