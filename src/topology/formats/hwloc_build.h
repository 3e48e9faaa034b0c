/* SPDX-License-Identifier: Apache-2.0
 * Declares the steps from hwloc's objects to an inventory: CPUs, PCI devices with their functions,
 * links. Only hwloc_xml.c and its parts include this header. Functions that return a code return
 * TUTTI_ERR_SYSTEM without memory, and TUTTI_ERR_ARGUMENT if the inventory is full. */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_BUILD_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_BUILD_H

#include "topology/formats/hwloc_objects.h"
#include "topology/inventory/inventory.h"

/* The state of the conversion. */
struct tutti_hwloc_build {
    const struct tutti_hwloc *hwloc;
    struct tutti_inventory *inventory;
    enum tutti_source source; /* recorded for all values that the XML states */
    /* Per object: its device, or the device below which the objects within it are placed. */
    uint32_t *device_of;
    /* Per object: the results of tutti_hwloc_home(); TUTTI_NO_DEVICE before the first call. */
    uint32_t *home_of;
    bool *is_sure;
};

/* Adds the cpus and sets device_of for the objects that they stand for: NUMA nodes; packages if
 * there are no NUMA nodes; else the machine. */
int tutti_hwloc_add_cpus(struct tutti_hwloc_build *build);
/* Returns the home of an object: the cpu that is close to devices attached to the object. If
 * several cpus are, this is the first one, and *ret_is_sure is false. */
uint32_t tutti_hwloc_home(struct tutti_hwloc_build *build, uint32_t object, bool *ret_is_sure);
/* Removes cpus that have neither CPUs nor devices, such as nodes of GPU or CXL memory. At least one
 * cpu remains. */
void tutti_hwloc_remove_bare_cpus(struct tutti_hwloc_build *build);

/* Adds the PCI devices that are GPUs or NICs, and the switches above them. */
int tutti_hwloc_add_devices(struct tutti_hwloc_build *build);
/* Return true if an object is a GPU, or a network card or interface that leads to other hosts. */
bool tutti_hwloc_is_gpu(const struct tutti_hwloc *hwloc, uint32_t object);
bool tutti_hwloc_is_nic(const struct tutti_hwloc *hwloc, uint32_t object);
/* Add the gpu below a pci (several gpus for a partitioned device), or the nic and its nets below a
 * pci or cpu. Both functions read the
 * operating system's devices within the object. */
int tutti_hwloc_add_gpu(struct tutti_hwloc_build *build, uint32_t object, uint32_t pci);
int tutti_hwloc_add_nic(struct tutti_hwloc_build *build, uint32_t object, uint32_t parent);

/* Adds the links between GPUs, and from GPUs to switches and CPUs. */
int tutti_hwloc_add_links(struct tutti_hwloc_build *build);

#endif
