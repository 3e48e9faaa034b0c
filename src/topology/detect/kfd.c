/* SPDX-License-Identifier: Apache-2.0
 * Finds AMD's GPUs in /sys/class/kfd, where their kernel driver KFD lists them, so no library is
 * needed. The driver's nodes are CPUs and GPUs, each with its links to other nodes. */
#include "base/result.h"
#include "topology/detect/phases.h"
#include "topology/detect/place.h"
#include "topology/detect/sysfs.h"
#include "topology/inventory/pci_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The folder with a folder for each node, and the most nodes that are read. */
#define NODES "sys/class/kfd/kfd/topology/nodes"
#define MOST_NODES 1024
/* The link type of xGMI in CRAT (the firmware's table of components), and the weight that the
 * driver gives to one hop of xGMI. */
#define LINK_XGMI 11
#define HOP_WEIGHT 15
/* The most xGMI links between two GPUs; a larger number is taken for an error. */
#define MOST_LINKS 16

struct node {
    int64_t number; /* the folder's name */
    bool is_gpu;
    int64_t busid;  /* of a GPU */
    uint32_t gpu;   /* device in the inventory; TUTTI_NO_DEVICE: not a GPU, or not added yet */
};

struct nodes {
    struct node *list;
    uint32_t count;
};

/* Returns the value of a line "name value" in a file of properties; `fallback`: no valid value. */
static int64_t read_property(const char *text, const char *name, int64_t fallback)
{
    size_t length = strlen(name);

    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        char digits[24];

        at += *at == '\n';
        if (strncmp(at, name, length) != 0 || at[length] != ' ')
            continue;
        snprintf(digits, sizeof digits, "%.*s", (int)strcspn(at + length + 1, "\n"),
                 at + length + 1);
        if (*digits != '-' && digits[strspn(digits, "0123456789")] == '\0')
            return (int64_t)strtoull(digits, NULL, 10);
        return fallback;
    }
    return fallback;
}

/* Reads one node; of a node that is not a GPU only the number is set. The driver's property
 * location_id holds the PCI bus, device and function. Partitions of a GPU are nodes with the same
 * PCI address. */
static void read_node(const char *root, int64_t number, struct node *ret_node)
{
    char text[TUTTI_SYSFS_BYTES];
    uint64_t domain, location;

    *ret_node = (struct node){.number = number, .gpu = TUTTI_NO_DEVICE};
    if (!tutti_sysfs_read(root, text, NODES "/%d/properties", (int)number) ||
        read_property(text, "simd_count", 0) == 0)
        return;
    domain = (uint64_t)read_property(text, "domain", 0) & UINT32_MAX;
    location = (uint64_t)read_property(text, "location_id", 0);
    ret_node->is_gpu = location != 0;
    ret_node->busid = (int64_t)(domain << 20 | (location >> 8 & 0xff) << 12 |
                                (location >> 3 & 0x1f) << 4 | (location & 0x7));
}

/* Turns 90402 into gfx942 and 90010 into gfx90a: the last two decimal pairs become one hexadecimal
 * digit each. */
static int set_architecture(struct tutti_inventory *inventory, uint32_t gpu, int64_t version)
{
    char text[32];

    if (version <= 0 || version > 999999)
        return TUTTI_OK;
    snprintf(text, sizeof text, "gfx%d%x%x", (int)(version / 10000),
             (unsigned)(version / 100 % 100), (unsigned)(version % 100));
    return tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_GCN, TUTTI_SOURCE_SYSFS, text);
}

/* Returns the first gpu below a pci that no node stands for; TUTTI_NO_DEVICE: none. */
static uint32_t find_free_gpu(const struct tutti_inventory *inventory, uint32_t pci,
                              const struct nodes *nodes)
{
    uint32_t gpu = inventory->devices[pci].first_child;

    for (; gpu != TUTTI_NO_DEVICE; gpu = inventory->devices[gpu].next) {
        bool is_free = inventory->devices[gpu].kind == TUTTI_DEVICE_GPU;

        for (uint32_t i = 0; i < nodes->count && is_free; i++)
            is_free = nodes->list[i].gpu != gpu;
        if (is_free)
            break;
    }
    return gpu;
}

/* Adds the gpu of a node. If the device is partitioned, each of its nodes gets a gpu of its own. */
static int add_gpu(const char *root, struct tutti_inventory *inventory, const struct nodes *nodes,
                   struct node *node, int64_t dev)
{
    char text[TUTTI_SYSFS_BYTES], uuid[24];
    uint64_t unique;
    uint32_t pci;

    if (!tutti_sysfs_read(root, text, NODES "/%d/properties", (int)node->number))
        return TUTTI_OK;
    TUTTI_TRY(tutti_detect_ensure_pci(root, inventory, node->busid, TUTTI_SOURCE_SYSFS, &pci));
    node->gpu = find_free_gpu(inventory, pci, nodes);
    if (node->gpu == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, pci, TUTTI_DEVICE_GPU, TUTTI_SOURCE_SYSFS,
                                      &node->gpu));
    TUTTI_TRY(tutti_device_set_number(inventory, node->gpu, TUTTI_PROPERTY_DEV, TUTTI_SOURCE_SYSFS,
                                      dev));
    unique = (uint64_t)read_property(text, "unique_id", 0);
    if (unique != 0) {
        snprintf(uuid, sizeof uuid, "%016llx", (unsigned long long)unique);
        TUTTI_TRY(tutti_device_set_text(inventory, node->gpu, TUTTI_PROPERTY_UUID,
                                        TUTTI_SOURCE_SYSFS, uuid));
    }
    return set_architecture(inventory, node->gpu, read_property(text, "gfx_target_version", 0));
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Finds the link of a gpu to the address `busid`, and adds the link if it is missing. */
static int find_or_add_link(struct tutti_inventory *inventory, uint32_t gpu, int64_t busid,
                            uint32_t *ret_link)
{
    *ret_link = tutti_detect_link(inventory, gpu, busid);
    if (*ret_link != TUTTI_NO_DEVICE)
        return TUTTI_OK;
    TUTTI_TRY(tutti_inventory_add(inventory, gpu, TUTTI_DEVICE_NVLINK, TUTTI_SOURCE_SYSFS,
                                  ret_link));
    return tutti_device_set_number(inventory, *ret_link, TUTTI_PROPERTY_TARGET, TUTTI_SOURCE_SYSFS,
                                   busid);
}

/* Sets the link from one GPU to another. The driver's min_bandwidth is the bandwidth of one link,
 * and max_bandwidth is that of all links between the two GPUs. Older drivers give neither, and the
 * number of links is then assumed to be 1. */
static int add_link(struct tutti_inventory *inventory, const struct node *from,
                    const struct node *to, const char *text)
{
    int64_t most = read_property(text, "max_bandwidth", 0);
    int64_t least = read_property(text, "min_bandwidth", 0);
    int64_t links = least > 0 && most % least == 0 ? most / least : 0;
    bool is_sure = links >= 1 && links <= MOST_LINKS;
    int64_t target_class;
    uint32_t link;

    TUTTI_TRY(find_or_add_link(inventory, from->gpu, to->busid, &link));
    target_class = tutti_device_number(inventory, inventory->devices[to->gpu].parent,
                                       TUTTI_PROPERTY_CLASS, -1);
    if (target_class >= 0)
        TUTTI_TRY(tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TCLASS,
                                          TUTTI_SOURCE_SYSFS, target_class));
    return tutti_device_set_number(inventory, link, TUTTI_PROPERTY_LINKS,
                                   is_sure ? TUTTI_SOURCE_SYSFS : TUTTI_SOURCE_ASSUMED,
                                   is_sure ? links : 1);
}

/* Returns the node with this number; NULL: none. */
static const struct node *find_node(const struct nodes *nodes, int64_t number)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i].number == number)
            return &nodes->list[i];
    return NULL;
}

/* Adds the xGMI links from a GPU to other GPUs that are one hop away. */
static int add_links(const char *root, struct tutti_inventory *inventory,
                     const struct nodes *nodes, const struct node *from)
{
    char folder[128], text[TUTTI_SYSFS_BYTES];
    struct dirent **names;
    int count, rc = TUTTI_OK;

    snprintf(folder, sizeof folder, NODES "/%d/io_links", (int)from->number);
    count = tutti_sysfs_names(root, folder, &names);
    for (int i = 0; rc == TUTTI_OK && i < count; i++) {
        const struct node *to;

        if (!tutti_sysfs_read(root, text, "%s/%s/properties", folder, names[i]->d_name) ||
            read_property(text, "type", 0) != LINK_XGMI ||
            read_property(text, "weight", HOP_WEIGHT) > HOP_WEIGHT)
            continue;
        to = find_node(nodes, read_property(text, "node_to", -1));
        if (to != NULL && to->busid != from->busid && to->gpu != TUTTI_NO_DEVICE)
            rc = add_link(inventory, from, to, text);
    }
    tutti_sysfs_free(names, count);
    return rc;
}

/* ---- together -------------------------------------------------------------------------------- */

static int add_gpus(const char *root, struct tutti_inventory *inventory, struct nodes *nodes)
{
    int64_t dev = 0;

    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i].is_gpu)
            TUTTI_TRY(add_gpu(root, inventory, nodes, &nodes->list[i], dev++));
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i].gpu != TUTTI_NO_DEVICE)
            TUTTI_TRY(add_links(root, inventory, nodes, &nodes->list[i]));
    return tutti_inventory_remark_shared(inventory);
}

int tutti_detect_kfd(const char *root, struct tutti_inventory *inventory)
{
    struct nodes nodes = {0};
    struct dirent **names;
    int count = tutti_sysfs_names(root, NODES, &names), rc;

    if (count == 0)
        return TUTTI_OK;
    nodes.list = calloc((size_t)count, sizeof *nodes.list);
    if (nodes.list == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %d nodes of KFD", count);
    } else {
        for (int i = 0; i < count && nodes.count < MOST_NODES; i++) {
            int64_t number;

            if (tutti_number_parse(names[i]->d_name, &number) && number >= 0 && number < INT32_MAX)
                read_node(root, number, &nodes.list[nodes.count++]);
        }
        rc = add_gpus(root, inventory, &nodes);
    }
    free(nodes.list);
    tutti_sysfs_free(names, count);
    return rc;
}
