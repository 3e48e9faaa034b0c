/* SPDX-License-Identifier: Apache-2.0
 * The NVML phase of detection: NVIDIA's GPUs with their NVLinks, as their driver knows them. */
#ifndef TUTTI_TOPOLOGY_DETECT_NVML_H
#define TUTTI_TOPOLOGY_DETECT_NVML_H

#include "topology/inventory/inventory.h"

/* Put all GPUs that NVML knows into the inventory, below the pci of their address; a pci that
 * nobody has found goes below the cpu that the kernel's files under `root` name ("" or NULL: of
 * this machine). Without NVML, nothing. A GPU that is lost is taken out, in a line that says so. */
int tutti_detect_nvml(const char *root, struct tutti_inventory *inventory);

#endif
