/* SPDX-License-Identifier: Apache-2.0
 * Creates and destroys graphs, makes their nodes, and names nodes and links. */
#include "topology/graph/graph.h"

#include "base/result.h"
#include "topology/graph/graph_links.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const node_names[TUTTI_NODE_COUNT] = {
    "gpu", "nvswitch", "pci", "cpu", "nic", "net", "fabric",
};

static const char *const link_names[TUTTI_LINK_COUNT] = {
    "nvlink", "c2c", "pci", "sys", "port", "fabric",
};

const char *tutti_graph_node_kind_name(enum tutti_graph_node_kind kind)
{
    return node_names[kind];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The nodes of a graph before they are sorted. */
struct draft {
    const struct tutti_inventory *inventory;
    struct tutti_graph_node *nodes;
    int64_t *order; /* per node: sort key among the nodes of its kind and host */
    uint32_t count; /* of nodes */
    int64_t hosts[TUTTI_GRAPH_HOSTS]; /* hashes of the hosts, in the order of their first cpus */
    uint32_t nhosts;
};

/* Returns the number of a device's host, and gives the next number to a new host. Hosts are
 * distinguished by the host_hash of their cpus. TUTTI_GRAPH_HOSTS: too many hosts. */
static uint32_t number_host(struct draft *draft, uint32_t device)
{
    uint32_t cpu = tutti_inventory_above(draft->inventory, device, TUTTI_DEVICE_CPU), host = 0;
    int64_t hash = tutti_device_number(draft->inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0);

    while (host < draft->nhosts && draft->hosts[host] != hash)
        host++;
    if (host == draft->nhosts && host < TUTTI_GRAPH_HOSTS)
        draft->hosts[draft->nhosts++] = hash;
    return host;
}

static uint32_t count_children(const struct tutti_inventory *inventory, uint32_t device,
                               enum tutti_device_kind kind)
{
    uint32_t count = 0;

    for (uint32_t child = inventory->devices[device].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next)
        count += inventory->devices[child].kind == kind;
    return count;
}

/* Returns the kind of node that a device becomes; TUTTI_NODE_COUNT: none. */
static enum tutti_graph_node_kind node_kind_of(const struct tutti_inventory *inventory,
                                               uint32_t device)
{
    switch (inventory->devices[device].kind) {
    case TUTTI_DEVICE_CPU: return TUTTI_NODE_CPU;
    case TUTTI_DEVICE_GPU: return TUTTI_NODE_GPU;
    case TUTTI_DEVICE_NIC: return TUTTI_NODE_NIC;
    case TUTTI_DEVICE_NET: return TUTTI_NODE_NET;
    case TUTTI_DEVICE_PCI:
        return count_children(inventory, device, TUTTI_DEVICE_PCI) > 0 ||
                       count_children(inventory, device, TUTTI_DEVICE_GPU) > 1
                   ? TUTTI_NODE_PCI
                   : TUTTI_NODE_COUNT;
    default: return TUTTI_NODE_COUNT;
    }
}

/* Returns the sort key of a device, which is its number in the driver. Devices without a number
 * come last, in the order of the inventory. */
static int64_t driver_number(const struct tutti_inventory *inventory, uint32_t device)
{
    switch (inventory->devices[device].kind) {
    case TUTTI_DEVICE_GPU:
    case TUTTI_DEVICE_NET:
        return tutti_device_number(inventory, device, TUTTI_PROPERTY_DEV, INT32_MAX);
    case TUTTI_DEVICE_CPU:
        return tutti_device_number(inventory, device, TUTTI_PROPERTY_NUMA, INT32_MAX);
    default: return INT32_MAX;
    }
}

static void add_node(struct draft *draft, enum tutti_graph_node_kind kind, uint32_t device,
                     uint32_t host)
{
    draft->order[draft->count] =
        device == TUTTI_NO_DEVICE ? 0 : driver_number(draft->inventory, device);
    draft->nodes[draft->count++] = (struct tutti_graph_node){
        .kind = kind, .device = device, .host = host, .cpu = TUTTI_NO_NODE,
        .is_shared = kind == TUTTI_NODE_PCI &&
                     count_children(draft->inventory, device, TUTTI_DEVICE_GPU) > 1};
}

/* Adds the NVSwitch node of a gpu unless this node exists. There is one node per host, or per
 * fabric, which may span hosts. */
static void add_nvswitch(struct draft *draft, uint32_t gpu, uint32_t host)
{
    int64_t fabric = tutti_device_number(draft->inventory, gpu, TUTTI_PROPERTY_FABRIC, 0);

    for (uint32_t i = 0; i < draft->count; i++)
        if (draft->nodes[i].kind == TUTTI_NODE_NVSWITCH) {
            /* Until the links are made, `device` of an NVSwitch is one of its gpus. */
            int64_t other = tutti_device_number(draft->inventory, draft->nodes[i].device,
                                                TUTTI_PROPERTY_FABRIC, 0);

            if (other == fabric && (fabric != 0 || draft->nodes[i].host == host))
                return;
        }
    add_node(draft, TUTTI_NODE_NVSWITCH, gpu, host);
}

static int collect_nodes(struct draft *draft)
{
    const struct tutti_inventory *inventory = draft->inventory;

    for (uint32_t device = 0; device != TUTTI_NO_DEVICE;
         device = tutti_inventory_next(inventory, device)) {
        enum tutti_graph_node_kind kind = node_kind_of(inventory, device);
        uint32_t host;

        if (kind == TUTTI_NODE_COUNT)
            continue;
        host = number_host(draft, device);
        if (host == TUTTI_GRAPH_HOSTS)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "more than %d hosts in one inventory; describe "
                              "them as a cluster of a few kinds of hosts (cluster.h)",
                              TUTTI_GRAPH_HOSTS);
        add_node(draft, kind, device, host);
        if (kind == TUTTI_NODE_GPU && tutti_graph_has_switch(inventory, device))
            add_nvswitch(draft, device, host);
    }
    if (draft->nhosts > 1)
        add_node(draft, TUTTI_NODE_FABRIC, TUTTI_NO_DEVICE, 0);
    return TUTTI_OK;
}

/* Returns true if node a precedes node b: nodes are ordered by kind, host and number. Nodes without
 * a number keep the order of the inventory. */
static bool comes_before(const struct draft *draft, uint32_t a, uint32_t b)
{
    const struct tutti_graph_node *left = &draft->nodes[a], *right = &draft->nodes[b];

    if (left->kind != right->kind)
        return left->kind < right->kind;
    if (left->host != right->host)
        return left->host < right->host;
    if (draft->order[a] != draft->order[b])
        return draft->order[a] < draft->order[b];
    return a < b;
}

/* Sorts `count` indexes of nodes by merging, because qsort() passes no draft to comes_before().
 * `spare` has room for as many indexes. */
static void sort_range(const struct draft *draft, uint32_t *index, uint32_t *spare, uint32_t count)
{
    uint32_t half = count / 2, left = 0, right = half;

    if (count < 2)
        return;
    sort_range(draft, index, spare, half);
    sort_range(draft, index + half, spare, count - half);
    for (uint32_t i = 0; i < count; i++) {
        bool takes_left = right == count ||
                          (left < half && !comes_before(draft, index[right], index[left]));

        spare[i] = takes_left ? index[left++] : index[right++];
    }
    for (uint32_t i = 0; i < count; i++)
        index[i] = spare[i];
}

/* Numbers the nodes of each kind. The number of ends (gpus, nets, cpus) is limited because paths,
 * and links between cpus, grow with its square. */
static int number_nodes(struct tutti_graph *graph)
{
    uint32_t nends;

    for (uint32_t i = 0; i < graph->nnodes; i++) {
        struct tutti_graph_node *node = &graph->nodes[i];

        if (graph->count[node->kind] == 0)
            graph->first[node->kind] = i;
        node->number = graph->count[node->kind]++;
    }
    nends = graph->count[TUTTI_NODE_GPU] + graph->count[TUTTI_NODE_NET] +
            graph->count[TUTTI_NODE_CPU];
    if (nends > TUTTI_GRAPH_ENDS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%u gpus, nets and cpus in one graph; at most %d: "
                          "describe a cluster as hosts of a few kinds", nends, TUTTI_GRAPH_ENDS);
    return TUTTI_OK;
}

/* Sets the cpu of each node. Clears the device of NVSwitches, because the links are made. */
static void finish_nodes(struct tutti_graph *graph)
{
    const struct tutti_inventory *inventory = graph->inventory;

    for (uint32_t i = 0; i < graph->nnodes; i++) {
        struct tutti_graph_node *node = &graph->nodes[i];
        uint32_t cpu;

        if (node->kind == TUTTI_NODE_NVSWITCH)
            node->device = TUTTI_NO_DEVICE;
        if (node->device == TUTTI_NO_DEVICE)
            continue;
        cpu = tutti_inventory_above(inventory, node->device, TUTTI_DEVICE_CPU);
        node->cpu = tutti_graph_find(graph, cpu);
    }
}

static int build_nodes(struct tutti_graph *graph)
{
    /* Each gpu may add a switch, and several hosts add a fabric. */
    size_t most = 2 * (size_t)graph->inventory->count + 1;
    struct draft draft = {.inventory = graph->inventory};
    uint32_t *index = calloc(2 * most, sizeof *index);
    int rc;

    draft.nodes = calloc(most, sizeof *draft.nodes);
    draft.order = calloc(most, sizeof *draft.order);
    graph->nodes = calloc(most, sizeof *graph->nodes);
    if (index == NULL || draft.nodes == NULL || draft.order == NULL || graph->nodes == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a graph of %zu nodes", most);
        goto drop_draft;
    }
    TUTTI_TRY_OR(drop_draft, rc, collect_nodes(&draft));
    for (uint32_t i = 0; i < draft.count; i++)
        index[i] = i;
    sort_range(&draft, index, index + most, draft.count);
    for (uint32_t i = 0; i < draft.count; i++)
        graph->nodes[i] = draft.nodes[index[i]];
    graph->nnodes = draft.count;
    graph->nhosts = draft.nhosts;
    TUTTI_TRY_OR(drop_draft, rc, number_nodes(graph));
    TUTTI_TRY_OR(drop_draft, rc, tutti_graph_link(graph));
    finish_nodes(graph);

drop_draft:
    free(index);
    free(draft.nodes);
    free(draft.order);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tutti_graph_build(const struct tutti_inventory *inventory, struct tutti_graph **ret_graph)
{
    struct tutti_graph *graph = calloc(1, sizeof *graph);
    int rc;

    if (graph == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a graph");
    TUTTI_TRY_OR(drop_graph, rc, tutti_inventory_copy(inventory, &graph->inventory));
    TUTTI_TRY_OR(drop_graph, rc, build_nodes(graph));
    *ret_graph = graph;
    return TUTTI_OK;

drop_graph:
    tutti_graph_destroy(graph);
    return rc;
}

void tutti_graph_destroy(struct tutti_graph *graph)
{
    if (graph == NULL)
        return;
    tutti_inventory_destroy(graph->inventory);
    free(graph->nodes);
    free(graph->links);
    free(graph);
}

uint32_t tutti_graph_find(const struct tutti_graph *graph, uint32_t device)
{
    for (uint32_t i = 0; i < graph->nnodes; i++)
        if (graph->nodes[i].device == device && graph->nodes[i].kind != TUTTI_NODE_NVSWITCH)
            return i;
    return TUTTI_NO_NODE;
}

/* ---- names ----------------------------------------------------------------------------------- */

void tutti_graph_node_name(const struct tutti_graph *graph, uint32_t index, char *ret_name,
                           size_t size_bytes)
{
    const struct tutti_graph_node *node = &graph->nodes[index];
    const struct tutti_inventory *inventory = graph->inventory;
    uint32_t pci = TUTTI_NO_DEVICE;
    char busid[32] = "", host[32] = "", what[96];

    if (node->device != TUTTI_NO_DEVICE)
        pci = tutti_inventory_above(inventory, node->device, TUTTI_DEVICE_PCI);
    if (pci != TUTTI_NO_DEVICE && tutti_device_has(inventory, pci, TUTTI_PROPERTY_BUSID))
        tutti_busid_write(tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, 0), busid,
                          sizeof busid);
    if (graph->nhosts > 1 && node->kind != TUTTI_NODE_FABRIC)
        snprintf(host, sizeof host, "host %u ", node->host);
    switch (node->kind) {
    case TUTTI_NODE_NET:
        snprintf(what, sizeof what, "net %u (%.48s)", node->number,
                 tutti_device_text(inventory, node->device, TUTTI_PROPERTY_NET_NAME));
        break;
    case TUTTI_NODE_CPU:
        snprintf(what, sizeof what, "cpu %lld",
                 (long long)tutti_device_number(inventory, node->device, TUTTI_PROPERTY_NUMA,
                                                node->number));
        break;
    case TUTTI_NODE_GPU:
        snprintf(what, sizeof what, "gpu %u", node->number);
        break;
    case TUTTI_NODE_PCI:
    case TUTTI_NODE_NIC:
        snprintf(what, sizeof what, "%s %s", node_names[node->kind], busid);
        break;
    default:
        snprintf(what, sizeof what, "%s", node_names[node->kind]);
        break;
    }
    snprintf(ret_name, size_bytes, "%s%s", host, what);
}

void tutti_graph_link_name(const struct tutti_graph *graph, uint32_t index, char *ret_name,
                           size_t size_bytes)
{
    const struct tutti_graph_link *link = &graph->links[index];
    char from[128], to[128];

    tutti_graph_node_name(graph, link->from, from, sizeof from);
    tutti_graph_node_name(graph, link->to, to, sizeof to);
    snprintf(ret_name, size_bytes, "%s -> %s (%s)", from, to, link_names[link->kind]);
}
