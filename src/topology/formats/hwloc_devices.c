/* SPDX-License-Identifier: Apache-2.0
 * Adds the PCI tree of hwloc's XML to an inventory. Only GPUs, NICs and the switches above them are
 * added, because no other PCI devices matter for communication. */
#include "base/result.h"
#include "topology/formats/hwloc_build.h"
#include "topology/inventory/pci_ids.h"

#include <stdlib.h>
#include <string.h>

/* The place of an object in the PCI tree. Bridges below a host bridge alternate: first a root port
 * or a switch's downstream port, then, at the other end of its link, a switch's upstream port. The
 * upstream ports represent the switches.
 *
 *   cpu -- root port -- [upstream -- downstream] -- [upstream -- downstream] -- device
 *            1              2            3              4            5
 */
struct route {
    bool is_wanted;  /* a GPU or NIC is at or below this object */
    uint8_t nbridges; /* bridges from the host bridge to this object, including the object */
};

/* The speed of the first PCIe generation, to which idle links fall. */
#define IDLE_GTS 2.5

struct link {
    double gts;     /* 0: not known */
    uint32_t lanes; /* 0: not known */
};

/* Returns the speed and width that give the rate which one end of a link reports. */
static struct link link_of(const struct tutti_hwloc_object *object)
{
    struct link link = {0};

    if (object->gbytes_per_s > 0)
        tutti_pci_link_of_rate(object->gbytes_per_s, &link.gts, &link.lanes);
    return link;
}

/* Combines the rates that both ends of a link report. An idle port may report 2.5 GT/s while the
 * device's driver reports the full speed. So the speed of a port at IDLE_GTS is ignored, and only
 * its number of lanes counts. */
static struct link link_between(const struct tutti_hwloc_object *device,
                                const struct tutti_hwloc_object *port)
{
    struct link own = link_of(device), other = {0};

    if (port->kind == TUTTI_HWLOC_BRIDGE && !port->is_host_bridge)
        other = link_of(port);
    if (own.lanes == 0)
        return other;
    if (other.lanes == 0)
        return own;
    return (struct link){
        .gts = other.gts > IDLE_GTS && other.gts < own.gts ? other.gts : own.gts,
        .lanes = other.lanes < own.lanes ? other.lanes : own.lanes,
    };
}

/* ---- one device ------------------------------------------------------------------------------ */

/* Adds the pci of an object. If the object's cpu is not sure, the place is marked as assumed. */
static int add_pci(struct tutti_hwloc_build *build, uint32_t object, uint32_t parent, bool is_sure)
{
    const struct tutti_hwloc_object *from = &build->hwloc->objects[object];
    struct link link = link_between(from, &build->hwloc->objects[from->parent]);
    const struct {
        enum tutti_property property;
        int64_t number;
    } numbers[] = {
        {TUTTI_PROPERTY_BUSID, from->busid},
        {TUTTI_PROPERTY_CLASS, from->pci_class},
        {TUTTI_PROPERTY_PCI_VENDOR, from->vendor},
        {TUTTI_PROPERTY_PCI_DEVICE, from->device},
        {TUTTI_PROPERTY_SUBVENDOR, from->subvendor},
        {TUTTI_PROPERTY_SUBDEVICE, from->subdevice},
    };
    uint32_t pci;

    TUTTI_TRY(tutti_inventory_add(build->inventory, parent, TUTTI_DEVICE_PCI,
                                  is_sure ? build->source : TUTTI_SOURCE_ASSUMED, &pci));
    build->device_of[object] = pci;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        TUTTI_TRY(tutti_device_set_number(build->inventory, pci, numbers[i].property,
                                          build->source, numbers[i].number));
    if (link.lanes == 0)
        return TUTTI_OK;
    TUTTI_TRY(tutti_device_set_real(build->inventory, pci, TUTTI_PROPERTY_LINK_SPEED,
                                    TUTTI_SOURCE_ASSUMED, link.gts));
    return tutti_device_set_number(build->inventory, pci, TUTTI_PROPERTY_LINK_WIDTH,
                                   TUTTI_SOURCE_ASSUMED, link.lanes);
}

/* Returns true for I/O objects: bridges, PCI devices, and devices of the operating system. */
static bool is_io(const struct tutti_hwloc_object *object)
{
    return object->kind >= TUTTI_HWLOC_BRIDGE;
}

/* Returns true if the object is an operating system's device that is on no PCI bus. */
static bool stands_alone(const struct tutti_hwloc *hwloc, uint32_t object)
{
    return hwloc->objects[object].kind == TUTTI_HWLOC_OSDEV &&
           !is_io(&hwloc->objects[hwloc->objects[object].parent]);
}

/* Returns true if the host bridge above a device is close to exactly one cpu. */
static bool is_home_sure(struct tutti_hwloc_build *build, uint32_t object)
{
    const struct tutti_hwloc_object *objects = build->hwloc->objects;
    bool is_sure;

    while (is_io(&objects[object]))
        object = objects[object].parent;
    tutti_hwloc_home(build, object, &is_sure);
    return is_sure;
}

/* Adds one wanted object. The caller adds objects in the order of the text, so every parent comes
 * before its children. */
static int add_object(struct tutti_hwloc_build *build, struct route *routes, uint32_t object)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    const struct tutti_hwloc_object *from = &hwloc->objects[object];
    bool is_below_io = is_io(&hwloc->objects[from->parent]), is_sure = true;
    uint32_t parent = is_below_io ? build->device_of[from->parent]
                                  : tutti_hwloc_home(build, from->parent, &is_sure);

    if (is_below_io)
        routes[object].nbridges = routes[from->parent].nbridges;
    build->device_of[object] = parent;
    if (from->kind == TUTTI_HWLOC_OSDEV)
        return tutti_hwloc_add_nic(build, object, parent);
    /* Host bridges, root ports and downstream ports get no pci: what is below them is placed at
     * their parent. */
    if (from->kind == TUTTI_HWLOC_BRIDGE) {
        routes[object].nbridges += !from->is_host_bridge;
        if (from->is_host_bridge || routes[object].nbridges % 2 == 1)
            return TUTTI_OK;
    }
    if (build->inventory->devices[parent].kind == TUTTI_DEVICE_CPU)
        is_sure = is_home_sure(build, object);
    TUTTI_TRY(add_pci(build, object, parent, is_sure));
    if (from->kind == TUTTI_HWLOC_BRIDGE)
        return TUTTI_OK;
    if (tutti_hwloc_is_gpu(hwloc, object))
        return tutti_hwloc_add_gpu(build, object, build->device_of[object]);
    if (tutti_hwloc_is_nic(hwloc, object))
        return tutti_hwloc_add_nic(build, object, build->device_of[object]);
    return TUTTI_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Marks the GPUs and NICs, and all I/O objects above them. */
static void find_wanted(const struct tutti_hwloc *hwloc, struct route *routes)
{
    for (uint32_t i = 0; i < hwloc->nobjects; i++) {
        const struct tutti_hwloc_object *object = &hwloc->objects[i];
        bool is_wanted = object->kind == TUTTI_HWLOC_PCI
                             ? tutti_hwloc_is_gpu(hwloc, i) || tutti_hwloc_is_nic(hwloc, i)
                             : stands_alone(hwloc, i) && tutti_hwloc_is_nic(hwloc, i);

        if (!is_wanted)
            continue;
        for (uint32_t at = i; at != TUTTI_NO_OBJECT && is_io(&hwloc->objects[at]);
             at = hwloc->objects[at].parent)
            routes[at].is_wanted = true;
    }
}

int tutti_hwloc_add_devices(struct tutti_hwloc_build *build)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    struct route *routes = calloc(hwloc->nobjects, sizeof *routes);
    int rc = TUTTI_OK;

    if (routes == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u objects", hwloc->nobjects);
    find_wanted(hwloc, routes);
    for (uint32_t i = 0; rc == TUTTI_OK && i < hwloc->nobjects; i++)
        if (routes[i].is_wanted)
            rc = add_object(build, routes, i);
    free(routes);
    return rc;
}
