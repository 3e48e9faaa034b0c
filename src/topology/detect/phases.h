/* SPDX-License-Identifier: Apache-2.0
 * Declares the phases of detection that also run for another root directory (detect.h). They use
 * hwloc and the kernel's files. Each phase adds devices or values to an inventory that may already
 * hold devices. `root` is never NULL; "" is this machine. Missing hardware or files are not errors.
 * TUTTI_ERR_ARGUMENT: the inventory is full; TUTTI_ERR_SYSTEM: no memory, or hwloc fails. */
#ifndef TUTTI_TOPOLOGY_DETECT_PHASES_H
#define TUTTI_TOPOLOGY_DETECT_PHASES_H

#include "topology/inventory/inventory.h"

/* Finds CPUs, caches and the PCI tree. The inventory must be empty; its contents are replaced. If
 * `root` has no CPUs, nothing is found. Another root changes the environment during the call. */
int tutti_detect_hwloc(const char *root, struct tutti_inventory *inventory);
/* Does the same as tutti_detect_hwloc(), but finds only CPUs and caches, without devices. */
int tutti_detect_hwloc_cpus(const char *root, struct tutti_inventory *inventory);
/* Finds AMD's GPUs and their links, as the kernel's driver lists them. */
int tutti_detect_kfd(const char *root, struct tutti_inventory *inventory);
/* Finds the ports of RDMA devices, and network interfaces. Removes nets that are down. */
int tutti_detect_sysfs_nics(const char *root, struct tutti_inventory *inventory);
/* Sets speeds and NUMA nodes of the PCI devices that are in the inventory already. */
int tutti_detect_sysfs_pci(const char *root, struct tutti_inventory *inventory);

#endif
