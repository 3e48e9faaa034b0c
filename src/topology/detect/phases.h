/* SPDX-License-Identifier: Apache-2.0
 * The phases of detection. Each adds what it finds to an inventory that may already hold devices.
 * `root` is never NULL; "" is this machine. Missing hardware or files are not errors. */
#ifndef TUTTI_TOPOLOGY_DETECT_PHASES_H
#define TUTTI_TOPOLOGY_DETECT_PHASES_H

#include "topology/inventory/inventory.h"

/* CPUs, caches, and the PCI tree. The inventory must be empty; its contents are replaced. */
int tutti_detect_hwloc(const char *root, struct tutti_inventory *inventory);
/* As tutti_detect_hwloc(), but only CPUs and caches, without devices. */
int tutti_detect_hwloc_cpus(const char *root, struct tutti_inventory *inventory);
/* AMD's GPUs and their links, from the kernel's driver. */
int tutti_detect_kfd(const char *root, struct tutti_inventory *inventory);
/* Ports of RDMA devices, and network interfaces. */
int tutti_detect_sysfs_nics(const char *root, struct tutti_inventory *inventory);
/* Speeds and NUMA nodes of the PCI devices that are in the inventory already. */
int tutti_detect_sysfs_pci(const char *root, struct tutti_inventory *inventory);

#endif
