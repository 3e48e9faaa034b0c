/* SPDX-License-Identifier: Apache-2.0
 * A machine, or a cluster of them, as a graph: what an inventory's devices come to once it is said
 * what each link carries.
 *
 *   gpu ==nvlink== nvswitch ==nvlink== gpu          cpu --sys-- cpu
 *    |                                              |
 *   pci (a switch) --pci-- pci --pci-- cpu         nic
 *    |
 *   nic -- net, net                                 one nic per card, one net per port
 *           |
 *         fabric -- net -- nic -- ...               where there are several hosts
 *
 * Links are directed and come in pairs. Nodes and links are numbered in the order of the inventory,
 * so whoever builds graphs of equal inventories gets the same numbers.
 */
#ifndef TUTTI_TOPOLOGY_GRAPH_GRAPH_H
#define TUTTI_TOPOLOGY_GRAPH_GRAPH_H

#include "topology/inventory/inventory.h"

#define TUTTI_NO_NODE UINT32_MAX
/* In one inventory; larger clusters are hosts of a few kinds (cluster.h). */
#define TUTTI_GRAPH_HOSTS 256
/* Gpus, nets and cpus together. */
#define TUTTI_GRAPH_ENDS 1024

enum tutti_node_kind {
    TUTTI_NODE_GPU,
    TUTTI_NODE_NVSWITCH, /* all NVSwitches of a domain together */
    TUTTI_NODE_PCI,      /* a switch or bridge */
    TUTTI_NODE_CPU,      /* a NUMA node with its root ports */
    TUTTI_NODE_NIC,      /* a card */
    TUTTI_NODE_NET,      /* a port of a card */
    TUTTI_NODE_FABRIC,   /* what joins the ports of several hosts */
    TUTTI_NODE_COUNT
};

enum tutti_link_kind {
    TUTTI_LINK_NVLINK, /* and xGMI */
    TUTTI_LINK_C2C,
    TUTTI_LINK_PCI,
    TUTTI_LINK_SYS,    /* between NUMA nodes */
    TUTTI_LINK_PORT,   /* of a nic to its net */
    TUTTI_LINK_FABRIC, /* of a net to what joins the hosts */
    TUTTI_LINK_COUNT
};

struct tutti_graph_node {
    enum tutti_node_kind kind;
    uint32_t device;  /* in the inventory; TUTTI_NO_DEVICE: of several, or of none */
    uint32_t host;
    uint32_t cpu;     /* the cpu node that it hangs below, its own for a cpu; TUTTI_NO_NODE */
    uint32_t number;  /* among those of its kind, from 0 on; gpus and nets as their drivers count */
    uint32_t first_link, nlinks; /* those that leave it */
};

struct tutti_graph_link {
    uint32_t from, to, reverse;
    enum tutti_link_kind kind;
    uint32_t count;       /* NVLinks side by side, PCIe lanes; 0: not known */
    double bytes_per_s;   /* each way: measured where that was done, else nominal */
    double nominal_bytes_per_s;
    double latency_s;
    enum tutti_source found_by; /* what its rate comes from; ASSUMED: we fill in what is usual */
};

struct tutti_graph {
    struct tutti_inventory *inventory; /* its own copy */
    struct tutti_graph_node *nodes;
    uint32_t nnodes;
    struct tutti_graph_link *links;    /* those of one node follow each other */
    uint32_t nlinks;
    uint32_t nhosts;
    /* Nodes of a kind follow each other, by their numbers. */
    uint32_t first[TUTTI_NODE_COUNT], count[TUTTI_NODE_COUNT];
};

static inline uint32_t tutti_graph_gpu(const struct tutti_graph *graph, uint32_t number)
{
    return graph->first[TUTTI_NODE_GPU] + number;
}

static inline uint32_t tutti_graph_net(const struct tutti_graph *graph, uint32_t number)
{
    return graph->first[TUTTI_NODE_NET] + number;
}

/* The graph of an inventory. TUTTI_ERR_ARGUMENT: too many hosts or ends; TUTTI_ERR_SYSTEM. */
int tutti_graph_build(const struct tutti_inventory *inventory, struct tutti_graph **ret_graph);
void tutti_graph_destroy(struct tutti_graph *graph);

/* The node of a device; TUTTI_NO_NODE: it has none. */
uint32_t tutti_graph_find(const struct tutti_graph *graph, uint32_t device);

/* "gpu 3", "nvswitch", "cpu 1", "pci 0000:17:00.0", "nic 0000:18:00.0", "net 0 (mlx5_0)"; with the
 * host where there are several. */
void tutti_graph_node_name(const struct tutti_graph *graph, uint32_t node, char *ret_name,
                           size_t size_bytes);
/* "gpu 3 -> nvswitch (nvlink)" */
void tutti_graph_link_name(const struct tutti_graph *graph, uint32_t link, char *ret_name,
                           size_t size_bytes);
const char *tutti_node_kind_name(enum tutti_node_kind kind);
const char *tutti_link_kind_name(enum tutti_link_kind kind);

#endif
