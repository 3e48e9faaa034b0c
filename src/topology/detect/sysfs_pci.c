/* SPDX-License-Identifier: Apache-2.0
 * Sets values of PCI devices that the kernel knows: the speed and width of their links, and their
 * NUMA nodes. */
#include "base/result.h"
#include "topology/detect/phases.h"
#include "topology/detect/sysfs.h"

#include <stdlib.h>
#include <string.h>

/* Larger widths are invalid; a VM that does not see the link has 255. */
#define MOST_LANES 32

/* The PCI link between a device and the port above it. */
struct link {
    double gts;     /* 0: not known */
    uint32_t lanes; /* 0: not known */
};

static double read_speed(const char *root, const char *address, const char *file)
{
    char text[TUTTI_SYSFS_BYTES];
    double gts;

    if (!tutti_sysfs_read(root, text, "sys/bus/pci/devices/%s/%s", address, file))
        return 0;
    text[strspn(text, "0123456789.")] = '\0';
    return tutti_real_parse(text, &gts) && gts > 0 && gts < 1e4 ? gts : 0;
}

static uint32_t read_lanes(const char *root, const char *address, const char *file)
{
    char text[TUTTI_SYSFS_BYTES];
    int64_t lanes;

    return tutti_sysfs_read(root, text, "sys/bus/pci/devices/%s/%s", address, file) &&
                   tutti_number_parse(text, &lanes) && lanes > 0 && lanes <= MOST_LANES
               ? (uint32_t)lanes
               : 0;
}

/* Reads the speed and width of one end of a link. An idle device lowers its speed but never its
 * width, so the maximum speed and the current width count. A width below the maximum is a limit of
 * the slot. */
static struct link read_end(const char *root, const char *address)
{
    struct link link = {
        .gts = read_speed(root, address, "max_link_speed"),
        .lanes = read_lanes(root, address, "current_link_width"),
    };

    if (link.gts <= 0)
        link.gts = read_speed(root, address, "current_link_speed");
    if (link.lanes == 0)
        link.lanes = read_lanes(root, address, "max_link_width");
    return link;
}

/* Finds the address of the port at the other end of a device's link: in sysfs, the folder of the
 * port holds the folder of the device. */
static bool find_port(const char *root, const char *address, char ret_port[32])
{
    char path[TUTTI_SYSFS_BYTES];
    int64_t busid;
    char *slash;

    if (!tutti_sysfs_link(root, path, "sys/bus/pci/devices/%s", address))
        return false;
    slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL || !tutti_busid_parse(slash + 1, &busid))
        return false;
    tutti_busid_write(busid, ret_port, 32);
    return true;
}

/* Combines both ends of a device's link: the lower speed and the smaller width count. */
static struct link read_link(const char *root, const char *address)
{
    struct link link = read_end(root, address), other = {0};
    char port[32];

    if (find_port(root, address, port))
        other = read_end(root, port);
    if (link.gts <= 0 || (other.gts > 0 && other.gts < link.gts))
        link.gts = other.gts;
    if (link.lanes == 0 || (other.lanes != 0 && other.lanes < link.lanes))
        link.lanes = other.lanes;
    return link;
}

/* Moves a pci whose place was assumed below the cpu of the NUMA node that the kernel gives, if
 * there is such a cpu. */
static int move_to_node(const char *root, struct tutti_inventory *inventory, uint32_t pci,
                        const char *address)
{
    uint32_t cpu = TUTTI_NO_DEVICE;
    char text[TUTTI_SYSFS_BYTES];
    int64_t node;

    if (inventory->devices[pci].found_by != TUTTI_SOURCE_ASSUMED ||
        !tutti_sysfs_read(root, text, "sys/bus/pci/devices/%s/numa_node", address) ||
        !tutti_number_parse(text, &node) || node < 0)
        return TUTTI_OK;
    while ((cpu = tutti_inventory_next_of(inventory, cpu, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE) {
        if (tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1) != node)
            continue;
        inventory->devices[pci].found_by = TUTTI_SOURCE_SYSFS;
        return inventory->devices[pci].parent == cpu ? TUTTI_OK
                                                     : tutti_inventory_move(inventory, pci, cpu);
    }
    return TUTTI_OK;
}

static int set_values(const char *root, struct tutti_inventory *inventory, uint32_t pci)
{
    char address[32];
    struct link link;

    tutti_busid_write(inventory->devices[pci].value[TUTTI_PROPERTY_BUSID].number, address,
                      sizeof address);
    TUTTI_TRY(move_to_node(root, inventory, pci, address));
    link = read_link(root, address);
    if (link.gts > 0)
        TUTTI_TRY(tutti_device_set_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED,
                                        TUTTI_SOURCE_SYSFS, link.gts));
    if (link.lanes == 0)
        return TUTTI_OK;
    return tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, TUTTI_SOURCE_SYSFS,
                                   link.lanes);
}

int tutti_detect_sysfs_pci(const char *root, struct tutti_inventory *inventory)
{
    /* The loop goes by index because devices move within the tree meanwhile. */
    for (uint32_t i = 0; i < inventory->count; i++)
        if (inventory->devices[i].kind == TUTTI_DEVICE_PCI && tutti_inventory_has(inventory, i) &&
            tutti_device_has(inventory, i, TUTTI_PROPERTY_BUSID))
            TUTTI_TRY(set_values(root, inventory, i));
    return TUTTI_OK;
}
