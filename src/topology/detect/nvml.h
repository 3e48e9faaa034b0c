/* SPDX-License-Identifier: Apache-2.0
 * Declares the NVML phase of detection, which asks NVIDIA's driver for GPUs and their NVLinks. */
#ifndef TUTTI_TOPOLOGY_DETECT_NVML_H
#define TUTTI_TOPOLOGY_DETECT_NVML_H

#include "topology/inventory/inventory.h"

/* Adds all GPUs that NVML reports to the inventory, each below the pci with its address. A missing
 * pci is added below the cpu that the kernel's files under `root` name ("" or NULL: this machine).
 * The function does nothing without NVML. It removes a GPU that the driver has lost, and logs this.
 * TUTTI_ERR_ARGUMENT: the inventory is full; TUTTI_ERR_SYSTEM: no memory. */
int tutti_detect_nvml(const char *root, struct tutti_inventory *inventory);

#endif
