/* SPDX-License-Identifier: Apache-2.0
 * The phases of detection. Each puts what it finds into an inventory that may hold devices already.
 * `root` is never NULL: "" is this machine. What is not there is no failure. */
#ifndef TUTTI_TOPOLOGY_DETECT_PHASES_H
#define TUTTI_TOPOLOGY_DETECT_PHASES_H

#include "topology/inventory/inventory.h"

/* CPUs, caches, and the PCI tree, into an inventory that is empty yet. */
int tutti_detect_hwloc(const char *root, struct tutti_inventory *inventory);
/* The same without devices. */
int tutti_detect_hwloc_cpus(const char *root, struct tutti_inventory *inventory);
/* AMD's GPUs and their links, of the kernel's driver. */
int tutti_detect_kfd(const char *root, struct tutti_inventory *inventory);
/* Ports of RDMA devices, and network interfaces. */
int tutti_detect_sysfs_nics(const char *root, struct tutti_inventory *inventory);
/* Speeds and NUMA nodes of the PCI devices that are known by now. */
int tutti_detect_sysfs_pci(const char *root, struct tutti_inventory *inventory);

#endif
