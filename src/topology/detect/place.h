/* SPDX-License-Identifier: Apache-2.0
 * The place in the inventory of a device that a driver reports; it is added if it is missing. The
 * kernel's files are read below a root directory, "" for this machine. */
#ifndef TUTTI_TOPOLOGY_DETECT_PLACE_H
#define TUTTI_TOPOLOGY_DETECT_PLACE_H

#include "topology/inventory/inventory.h"

/* The pci with that address. A missing one is added below the cpu that the kernel names, else below
 * the first cpu; a cpu is added if there is none. `source` is recorded for an added pci. */
int tutti_place_pci(const char *root, struct tutti_inventory *inventory, int64_t busid,
                    enum tutti_source source, uint32_t *ret_pci);
/* The first cpu; it is added if there is none. */
int tutti_place_cpu(struct tutti_inventory *inventory, uint32_t *ret_cpu);
/* The first child of that kind; TUTTI_NO_DEVICE: none. */
uint32_t tutti_place_child(const struct tutti_inventory *inventory, uint32_t parent,
                           enum tutti_device_kind kind);

/* The PCI class of an address according to the kernel; -1: it knows no such device. */
int64_t tutti_place_class(const char *root, int64_t busid);

#endif
