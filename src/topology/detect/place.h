/* SPDX-License-Identifier: Apache-2.0
 * Finds the place in the inventory of a device that the kernel or a driver reports, and adds this
 * place if it is missing. The kernel's files are read below a root directory, "" for this machine.
 * Functions that return a code return TUTTI_ERR_SYSTEM without memory, and the error of
 * tutti_inventory_add(). */
#ifndef TUTTI_TOPOLOGY_DETECT_PLACE_H
#define TUTTI_TOPOLOGY_DETECT_PLACE_H

#include "topology/inventory/inventory.h"

/* Finds the pci with this bus id. A missing pci is added below the cpu of the NUMA node that the
 * kernel names, or else below the first cpu. A missing cpu is added, too. `source` is recorded for
 * an added pci. */
int tutti_detect_ensure_pci(const char *root, struct tutti_inventory *inventory, int64_t busid,
                            enum tutti_source source, uint32_t *ret_pci);
/* Finds the first cpu, and adds one if the inventory has none. */
int tutti_detect_ensure_cpu(struct tutti_inventory *inventory, uint32_t *ret_cpu);
/* Returns the first child of this kind; TUTTI_NO_DEVICE: none. */
uint32_t tutti_detect_child(const struct tutti_inventory *inventory, uint32_t parent,
                            enum tutti_device_kind kind);

/* Returns the nvlink of a gpu to the device with this bus id; TUTTI_NO_DEVICE: none. */
uint32_t tutti_detect_link(const struct tutti_inventory *inventory, uint32_t gpu, int64_t busid);
/* Returns the next net after `net` with this name and port, or the first one for TUTTI_NO_DEVICE.
 * Port 0 means any port. A net without a port number counts as port 1. TUTTI_NO_DEVICE: none. */
uint32_t tutti_detect_next_net(const struct tutti_inventory *inventory, uint32_t net,
                               const char *name, uint32_t port);

/* Returns the PCI class that the kernel gives for a bus id; -1: the kernel knows no such device. */
int64_t tutti_detect_pci_class(const char *root, int64_t busid);

#endif
