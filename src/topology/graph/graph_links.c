/* SPDX-License-Identifier: Apache-2.0
 * Finds out which nodes are joined, and computes the rate of each link. */
#include "topology/graph/graph_links.h"

#include "base/array.h"
#include "base/log.h"
#include "base/result.h"
#include "topology/graph/reached.h"
#include "topology/graph/speeds.h"
#include "topology/inventory/pci_ids.h"

#include <stdlib.h>
#include <string.h>

/* Typical one-way latencies, chosen without a measurement. */
static const double usual_latency_s[TUTTI_LINK_COUNT] = {
    [TUTTI_LINK_NVLINK] = 0.5e-6, [TUTTI_LINK_C2C] = 0.4e-6,  [TUTTI_LINK_PCI] = 0.3e-6,
    [TUTTI_LINK_SYS] = 0.2e-6,    [TUTTI_LINK_PORT] = 1.0e-6, [TUTTI_LINK_FABRIC] = 0.5e-6,
};

/* The graph that gets links. */
struct links {
    struct tutti_graph *graph;
    uint32_t capacity; /* links for which `graph->links` has memory */
};

/* Adds a link in one direction. Several NVLinks or C2C links between two nodes become one link,
 * with the sum of their rates. */
static int add_direction(struct links *links, struct tutti_graph_link link)
{
    struct tutti_graph *graph = links->graph;
    bool is_merged = link.kind == TUTTI_LINK_NVLINK || link.kind == TUTTI_LINK_C2C;

    for (uint32_t i = 0; is_merged && i < graph->nlinks; i++) {
        struct tutti_graph_link *other = &graph->links[i];

        if (other->from != link.from || other->to != link.to || other->kind != link.kind)
            continue;
        other->count += link.count;
        other->found_by = link.found_by < other->found_by ? link.found_by : other->found_by;
        other->bytes_per_s += link.bytes_per_s;
        other->nominal_bytes_per_s += link.nominal_bytes_per_s;
        other->reached_bytes_per_s += link.reached_bytes_per_s;
        return TUTTI_OK;
    }
    TUTTI_TRY(TUTTI_ARRAY_ROOM(graph->links, graph->nlinks, links->capacity, "links"));
    graph->links[graph->nlinks++] = link;
    return TUTTI_OK;
}

static struct tutti_graph_link make_link(uint32_t from, uint32_t to,
                                         enum tutti_graph_link_kind kind, double bytes_per_s,
                                         enum tutti_source source)
{
    return (struct tutti_graph_link){
        .from = from, .to = to, .kind = kind, .bytes_per_s = bytes_per_s,
        .nominal_bytes_per_s = bytes_per_s, .reached_bytes_per_s = bytes_per_s,
        .latency_s = usual_latency_s[kind], .found_by = source};
}

/* Adds a link in both directions. `device` is the device whose property MEASURED is the rate of the
 * link; if it has the property, this rate is used. TUTTI_NO_DEVICE: no such device. */
static int add_both(struct links *links, struct tutti_graph_link link, uint32_t device)
{
    struct tutti_graph_link back;
    double measured = device == TUTTI_NO_DEVICE
                          ? 0
                          : tutti_device_real(links->graph->inventory, device,
                                              TUTTI_PROPERTY_MEASURED, 0);

    if (measured > 0) {
        link.bytes_per_s = measured;
        link.reached_bytes_per_s = measured;
        link.found_by = TUTTI_SOURCE_MEASURED;
    }
    back = link;
    back.from = link.to;
    back.to = link.from;
    TUTTI_TRY(add_direction(links, link));
    return add_direction(links, back);
}

/* ---- NVLinks --------------------------------------------------------------------------------- */

/* Returns the gpu with this bus id on the same host as `near`; TUTTI_NO_DEVICE: none. */
static uint32_t find_gpu(const struct tutti_inventory *inventory, uint32_t near, int64_t busid)
{
    int64_t host = tutti_device_number(
        inventory, tutti_inventory_above(inventory, near, TUTTI_DEVICE_CPU),
        TUTTI_PROPERTY_HOST_HASH, 0);

    for (uint32_t gpu = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_GPU);
         gpu != TUTTI_NO_DEVICE; gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) {
        uint32_t cpu = tutti_inventory_above(inventory, gpu, TUTTI_DEVICE_CPU);
        uint32_t pci = inventory->devices[gpu].parent;

        if (tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, -1) == busid &&
            tutti_device_number(inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0) == host)
            return gpu;
    }
    return TUTTI_NO_DEVICE;
}

/* Returns true if an NVLink leads to an NVSwitch. A link whose target is a gpu ends at this gpu,
 * even if a file gives the target another class. For other links the class decides. A target whose
 * address is hidden (TUTTI_BUSID_HIDDEN_DOMAIN), as in virtual machines, is an NVSwitch unless the
 * class is that of a CPU. */
static bool leads_to_nvswitch(const struct tutti_inventory *inventory, uint32_t gpu,
                              uint32_t nvlink)
{
    int64_t target = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_TARGET, -1);
    int64_t class = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_TCLASS, 0);

    return find_gpu(inventory, gpu, target) == TUTTI_NO_DEVICE &&
           class != TUTTI_PCI_CLASS_NVLINK_TO_CPU &&
           (class >> 8 == TUTTI_PCI_CLASS_NVSWITCH >> 8 ||
            target >> 20 >= TUTTI_BUSID_HIDDEN_DOMAIN);
}

bool tutti_graph_has_switch(const struct tutti_inventory *inventory, uint32_t gpu)
{
    for (uint32_t nvlink = inventory->devices[gpu].first_child; nvlink != TUTTI_NO_DEVICE;
         nvlink = inventory->devices[nvlink].next)
        if (inventory->devices[nvlink].kind == TUTTI_DEVICE_NVLINK &&
            leads_to_nvswitch(inventory, gpu, nvlink))
            return true;
    return false;
}

/* Returns the node of the NVSwitch that joins a gpu; TUTTI_NO_NODE: none. */
static uint32_t nvswitch_of(const struct tutti_graph *graph, uint32_t gpu)
{
    int64_t fabric = tutti_device_number(graph->inventory, gpu, TUTTI_PROPERTY_FABRIC, 0);
    uint32_t node = tutti_graph_find(graph, gpu);

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_NVSWITCH]; i++) {
        uint32_t index = graph->first[TUTTI_NODE_NVSWITCH] + i;
        /* Until the links are made, `device` of an NVSwitch is one of its gpus. */
        uint32_t member = graph->nodes[index].device;
        int64_t other = tutti_device_number(graph->inventory, member, TUTTI_PROPERTY_FABRIC, 0);

        if (other == fabric &&
            (fabric != 0 || graph->nodes[index].host == graph->nodes[node].host))
            return index;
    }
    return TUTTI_NO_NODE;
}

struct tutti_graph_listed tutti_graph_listed_links(const struct tutti_inventory *inventory,
                                                   uint32_t gpu, uint32_t other)
{
    int64_t busid = tutti_device_number(inventory, inventory->devices[other].parent,
                                        TUTTI_PROPERTY_BUSID, -1);
    struct tutti_graph_listed listed = {.is_listed = false};
    enum tutti_source source;
    double rate = tutti_speed_nvlink(inventory, gpu, &source);

    for (uint32_t nvlink = inventory->devices[gpu].first_child; nvlink != TUTTI_NO_DEVICE;
         nvlink = inventory->devices[nvlink].next) {
        int64_t count;

        if (inventory->devices[nvlink].kind != TUTTI_DEVICE_NVLINK ||
            tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_TARGET, -1) != busid)
            continue;
        count = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_LINKS, 1);
        listed.is_listed = true;
        if (count <= 0)
            continue;
        listed.count += count;
        listed.is_measured = listed.is_measured || tutti_device_has(inventory, nvlink,
                                                                    TUTTI_PROPERTY_MEASURED);
        listed.bytes_per_s += tutti_device_real(inventory, nvlink, TUTTI_PROPERTY_MEASURED,
                                                rate * (double)count);
    }
    return listed;
}

uint32_t tutti_graph_speaker(const struct tutti_inventory *inventory, uint32_t gpu)
{
    uint32_t first = TUTTI_NO_DEVICE;

    for (uint32_t child = inventory->devices[inventory->devices[gpu].parent].first_child;
         child != TUTTI_NO_DEVICE; child = inventory->devices[child].next) {
        if (inventory->devices[child].kind != TUTTI_DEVICE_GPU)
            continue;
        if (inventory->devices[child].first_child != TUTTI_NO_DEVICE)
            return child;
        first = first == TUTTI_NO_DEVICE ? child : first;
    }
    return first;
}

/* Returns the node at which the links of a gpu to other devices end: the gpu, or its pci if that
 * has several gpus. */
static uint32_t outer_node(const struct tutti_graph *graph, uint32_t gpu)
{
    uint32_t pci = tutti_graph_find(graph, graph->inventory->devices[gpu].parent);

    return pci != TUTTI_NO_NODE && graph->nodes[pci].is_shared ? pci : tutti_graph_find(graph, gpu);
}

/* Returns true if the links between two gpus are taken from what `gpu` lists. If both gpus list
 * them, that is the one with a measurement, the one that lists the lower rate, or the one with the
 * lower node. */
static bool describes_link(const struct tutti_graph *graph, uint32_t gpu, uint32_t other)
{
    struct tutti_graph_listed own = tutti_graph_listed_links(graph->inventory, gpu, other);
    struct tutti_graph_listed others = tutti_graph_listed_links(
        graph->inventory, tutti_graph_speaker(graph->inventory, other), gpu);

    if (!others.is_listed)
        return true;
    if (own.count == others.count && own.is_measured != others.is_measured)
        return own.is_measured;
    if (own.bytes_per_s < others.bytes_per_s)
        return true;
    return own.bytes_per_s <= others.bytes_per_s &&
           outer_node(graph, gpu) < outer_node(graph, other);
}

/* Adds the link of a device of kind nvlink. The narrower end limits the rate. */
static int link_nvlink(struct links *links, uint32_t gpu, uint32_t nvlink)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    int64_t count = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_LINKS, 1);
    int64_t target = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_TARGET, -1);
    int64_t class = tutti_device_number(inventory, nvlink, TUTTI_PROPERTY_TCLASS, 0);
    uint32_t from = outer_node(graph, gpu), other = find_gpu(inventory, gpu, target);
    uint32_t to = TUTTI_NO_NODE;
    enum tutti_source source, other_source;
    double rate = tutti_speed_nvlink(inventory, gpu, &source);
    double reached = rate * tutti_reached_nvlink(inventory, gpu);
    struct tutti_graph_link link;

    if (count <= 0)
        return TUTTI_OK;
    if (other != TUTTI_NO_DEVICE) {
        double other_rate = tutti_speed_nvlink(inventory, other, &other_source);
        double other_reached = other_rate * tutti_reached_nvlink(inventory, other);

        to = outer_node(graph, other);
        if (to == from) /* in some files, links point at their own gpu */
            return TUTTI_OK;
        /* Both gpus usually list the link; it is added only once. */
        if (!describes_link(graph, gpu, other))
            return TUTTI_OK;
        rate = other_rate < rate ? other_rate : rate;
        reached = other_reached < reached ? other_reached : reached;
        source = other_source < source ? other_source : source;
    } else if (leads_to_nvswitch(inventory, gpu, nvlink)) {
        to = nvswitch_of(graph, gpu);
    } else if (class == TUTTI_PCI_CLASS_NVLINK_TO_CPU) {
        to = tutti_graph_find(graph, tutti_inventory_above(inventory, gpu, TUTTI_DEVICE_CPU));
    }
    if (to == TUTTI_NO_NODE) { /* for example a gpu that this process may not use */
        tutti_log(TUTTI_LOG_DEBUG, "topology: an NVLink of gpu %u leads to a device that is not "
                  "listed", graph->nodes[tutti_graph_find(graph, gpu)].number);
        return TUTTI_OK;
    }
    link = make_link(from, to, TUTTI_LINK_NVLINK, rate * (double)count, source);
    link.count = (uint32_t)count;
    link.reached_bytes_per_s = reached * (double)count;
    return add_both(links, link, nvlink);
}

static int link_c2c(struct links *links, uint32_t gpu, uint32_t c2c)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    int64_t count = tutti_device_number(inventory, c2c, TUTTI_PROPERTY_LINKS, 1);
    double rate = (double)tutti_device_number(inventory, c2c, TUTTI_PROPERTY_BW, 0) * 1e6;
    struct tutti_graph_link link;

    if (count <= 0 || rate <= 0)
        return TUTTI_OK;
    link = make_link(outer_node(graph, gpu),
                     tutti_graph_find(graph,
                                      tutti_inventory_above(inventory, gpu, TUTTI_DEVICE_CPU)),
                     TUTTI_LINK_C2C, rate * (double)count, inventory->devices[c2c].found_by);
    link.count = (uint32_t)count;
    return add_both(links, link, c2c);
}

/* ---- PCI, CPUs, ports --------------------------------------------------------------------- */

/* Links a node to the node above its pci. A pci is itself a node only if it is a switch. */
static int link_upwards(struct links *links, uint32_t node, uint32_t pci)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    uint32_t own = tutti_graph_find(graph, pci), above = inventory->devices[pci].parent;
    enum tutti_source source;
    double rate = tutti_speed_pci(inventory, pci, &source);
    struct tutti_graph_link link;

    /* If the pci of a gpu or nic has other pci below it, the pci is a node too, and the gpu or nic
     * is linked to that node. */
    if (own != TUTTI_NO_NODE && own != node)
        above = pci;
    link = make_link(node, tutti_graph_find(graph, above), TUTTI_LINK_PCI, rate, source);
    link.count =
        (uint32_t)tutti_device_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, 0);
    return add_both(links, link, pci);
}

static int link_nic(struct links *links, uint32_t node)
{
    const struct tutti_graph *graph = links->graph;
    uint32_t nic = graph->nodes[node].device, above = graph->inventory->devices[nic].parent;

    if (graph->inventory->devices[above].kind == TUTTI_DEVICE_PCI)
        return link_upwards(links, node, above);
    return add_both(links,
                    make_link(node, tutti_graph_find(graph, above), TUTTI_LINK_PCI,
                              TUTTI_LOCAL_BYTES_PER_S, TUTTI_SOURCE_ASSUMED),
                    TUTTI_NO_DEVICE);
}

/* Links a port to its card, and to the fabric if there are several hosts. */
static int link_net(struct links *links, uint32_t node)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    uint32_t net = graph->nodes[node].device;
    enum tutti_source source;
    double rate = tutti_speed_net(inventory, net, &source);
    struct tutti_graph_link link =
        make_link(tutti_graph_find(graph, inventory->devices[net].parent), node, TUTTI_LINK_PORT,
                  rate, source);
    struct tutti_graph_link fabric;
    double latency_us = tutti_device_real(inventory, net, TUTTI_PROPERTY_LATENCY, 0);

    if (latency_us > 0)
        link.latency_s = latency_us * 1e-6;
    link.reached_bytes_per_s = rate * tutti_reached_port(inventory, net, rate);
    TUTTI_TRY(add_both(links, link, net));
    if (graph->count[TUTTI_NODE_FABRIC] == 0)
        return TUTTI_OK;
    fabric = make_link(node, graph->first[TUTTI_NODE_FABRIC], TUTTI_LINK_FABRIC, rate, source);
    fabric.reached_bytes_per_s = link.reached_bytes_per_s;
    return add_both(links, fabric, TUTTI_NO_DEVICE);
}

/* Joins a gpu to its device, which has other gpus too, as a bus and as an NVLink. */
static int link_to_device(struct links *links, uint32_t node, uint32_t pci)
{
    TUTTI_TRY(add_both(links,
                       make_link(node, pci, TUTTI_LINK_NVLINK, TUTTI_LOCAL_BYTES_PER_S,
                                 TUTTI_SOURCE_ASSUMED),
                       TUTTI_NO_DEVICE));
    return add_both(links,
                    make_link(node, pci, TUTTI_LINK_PCI, TUTTI_LOCAL_BYTES_PER_S,
                              TUTTI_SOURCE_ASSUMED),
                    TUTTI_NO_DEVICE);
}

/* Links a gpu upwards, and by its children, which are its NVLinks and its coherent link. Of the
 * gpus of one device, one has children for all of them. */
static int link_gpu(struct links *links, uint32_t node)
{
    const struct tutti_inventory *inventory = links->graph->inventory;
    uint32_t gpu = links->graph->nodes[node].device, outer = outer_node(links->graph, gpu);
    bool is_speaker = tutti_graph_speaker(inventory, gpu) == gpu;

    if (outer != node)
        TUTTI_TRY(link_to_device(links, node, outer));
    for (uint32_t child = inventory->devices[gpu].first_child;
         is_speaker && child != TUTTI_NO_DEVICE; child = inventory->devices[child].next)
        TUTTI_TRY(inventory->devices[child].kind == TUTTI_DEVICE_NVLINK
                      ? link_nvlink(links, gpu, child)
                      : link_c2c(links, gpu, child));
    return outer != node ? TUTTI_OK : link_upwards(links, node, inventory->devices[gpu].parent);
}

/* Links a PCI switch upwards, and to the switches that its pcilinks name. A pcilink is listed at
 * both ends, so it is added only at the lower node. */
static int link_pci(struct links *links, uint32_t node)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    uint32_t pci = graph->nodes[node].device;
    enum tutti_source source;
    double bytes_per_s = tutti_speed_pci(inventory, pci, &source);

    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next) {
        uint32_t other = TUTTI_NO_DEVICE, to = TUTTI_NO_NODE;

        if (inventory->devices[child].kind != TUTTI_DEVICE_PCILINK)
            continue;
        other = tutti_inventory_find_pci(
            inventory, tutti_device_number(inventory, child, TUTTI_PROPERTY_TARGET, -1));
        if (other != TUTTI_NO_DEVICE)
            to = tutti_graph_find(graph, other);
        if (to != TUTTI_NO_NODE && node < to)
            TUTTI_TRY(add_both(links, make_link(node, to, TUTTI_LINK_PCI, bytes_per_s, source),
                               TUTTI_NO_DEVICE));
    }
    return link_upwards(links, node, pci);
}

/* Links a NUMA node to every later NUMA node of its host. */
static int link_cpu(struct links *links, uint32_t node)
{
    const struct tutti_graph *graph = links->graph;
    const struct tutti_inventory *inventory = graph->inventory;
    enum tutti_source source, other_source;
    double rate = tutti_speed_sys(inventory, graph->nodes[node].device, &source);

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_CPU]; i++) {
        uint32_t other = graph->first[TUTTI_NODE_CPU] + i;
        double other_rate = tutti_speed_sys(inventory, graph->nodes[other].device, &other_source);

        if (other > node && graph->nodes[other].host == graph->nodes[node].host)
            TUTTI_TRY(add_both(links,
                               make_link(node, other, TUTTI_LINK_SYS,
                                         rate < other_rate ? rate : other_rate,
                                         source < other_source ? source : other_source),
                               graph->nodes[node].device));
    }
    return TUTTI_OK;
}

/* ---- all links ------------------------------------------------------------------------------- */

static int compare_links(const void *a, const void *b)
{
    const struct tutti_graph_link *left = a, *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return left->to < right->to ? -1 : left->to > right->to;
}

/* Sorts the links by their first node, and sets the range of links of each node and the reverse of
 * each link. */
static void order_links(struct tutti_graph *graph)
{
    if (graph->nlinks == 0)
        return; /* for example a host with a single cpu */
    qsort(graph->links, graph->nlinks, sizeof *graph->links, compare_links);
    for (uint32_t i = graph->nlinks; i-- > 0;) {
        graph->nodes[graph->links[i].from].first_link = i;
        graph->nodes[graph->links[i].from].nlinks++;
    }
    for (uint32_t i = 0; i < graph->nlinks; i++) {
        struct tutti_graph_link key = graph->links[i];
        struct tutti_graph_link *found;

        key.from = graph->links[i].to;
        key.to = graph->links[i].from;
        found = bsearch(&key, graph->links, graph->nlinks, sizeof key, compare_links);
        graph->links[i].reverse = (uint32_t)(found - graph->links);
    }
}

int tutti_graph_link(struct tutti_graph *graph)
{
    struct links links = {.graph = graph};

    for (uint32_t node = 0; node < graph->nnodes; node++)
        switch (graph->nodes[node].kind) {
        case TUTTI_NODE_GPU: TUTTI_TRY(link_gpu(&links, node)); break;
        case TUTTI_NODE_PCI: TUTTI_TRY(link_pci(&links, node)); break;
        case TUTTI_NODE_CPU: TUTTI_TRY(link_cpu(&links, node)); break;
        case TUTTI_NODE_NIC: TUTTI_TRY(link_nic(&links, node)); break;
        case TUTTI_NODE_NET: TUTTI_TRY(link_net(&links, node)); break;
        default: break;
        }
    order_links(graph);
    return TUTTI_OK;
}
