/* SPDX-License-Identifier: Apache-2.0
 * From hwloc's objects to an inventory, step by step: CPUs, PCI devices with what they are, links.
 * For hwloc_xml.c and its parts alone. */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_BUILD_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_BUILD_H

#include "topology/formats/hwloc_objects.h"
#include "topology/inventory/inventory.h"

struct tutti_hwloc_build {
    const struct tutti_hwloc *hwloc;
    struct tutti_inventory *inventory;
    enum tutti_source source;
    /* Of each object: its device, or the one to hang what is within it below. */
    uint32_t *device_of;
    /* Of each object that tutti_hwloc_home() was asked about: what it found, and is that the only
     * one? TUTTI_NO_DEVICE: not asked. */
    uint32_t *home_of;
    bool *is_sure;
};

/* The cpus, into device_of of the objects that they are: NUMA nodes, packages where there are none,
 * else the machine. */
int tutti_hwloc_add_cpus(struct tutti_hwloc_build *build);
/* The cpu that devices attached within an object are near; where it is of several, the first. */
uint32_t tutti_hwloc_home(struct tutti_hwloc_build *build, uint32_t object, bool *ret_is_sure);
/* Take the cpus out that have neither CPUs nor devices: memory of its own kind. */
void tutti_hwloc_drop_bare_cpus(struct tutti_hwloc_build *build);

/* The PCI devices that are GPUs or NICs, and the switches on their way. */
int tutti_hwloc_add_devices(struct tutti_hwloc_build *build);
bool tutti_hwloc_is_gpu(const struct tutti_hwloc *hwloc, uint32_t object);
bool tutti_hwloc_is_nic(const struct tutti_hwloc *hwloc, uint32_t object);
/* The gpu below a pci, and the nic below a pci or cpu, of what the operating system's devices
 * within an object say. */
int tutti_hwloc_add_gpu(struct tutti_hwloc_build *build, uint32_t object, uint32_t pci);
int tutti_hwloc_add_nic(struct tutti_hwloc_build *build, uint32_t object, uint32_t parent);

/* The links between GPUs. */
int tutti_hwloc_add_links(struct tutti_hwloc_build *build);

#endif
