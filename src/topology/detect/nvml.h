/* SPDX-License-Identifier: Apache-2.0
 * The NVML phase of detection: NVIDIA's GPUs with their NVLinks, as reported by the driver. */
#ifndef TUTTI_TOPOLOGY_DETECT_NVML_H
#define TUTTI_TOPOLOGY_DETECT_NVML_H

#include "topology/inventory/inventory.h"

/* Adds all GPUs that NVML reports to the inventory, below the pci with their address. A pci that is
 * not there yet is added below the cpu that the kernel's files under `root` name ("" or NULL: this
 * machine). Does nothing without NVML. A GPU that is lost is removed, and a log line says so. */
int tutti_detect_nvml(const char *root, struct tutti_inventory *inventory);

#endif
