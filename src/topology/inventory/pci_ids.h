/* SPDX-License-Identifier: Apache-2.0
 * What a PCI device's class and ids tell about it, and what the rate of its link does. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H
#define TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_PCI_NVIDIA 0x10deu
#define TUTTI_PCI_AMD 0x1002u
#define TUTTI_PCI_INTEL 0x8086u
#define TUTTI_PCI_NVSWITCH 0x068000u /* classes */
#define TUTTI_PCI_NVLINK_TO_CPU 0x068001u

/* One that computes, as far as that shows: a driver's device on it may tell more. */
bool tutti_pci_is_gpu(uint32_t pci_class, uint32_t vendor);
/* The compute capability of an NVIDIA GPU, such as 90; 0: of no family that is known. */
int64_t tutti_pci_sm(uint32_t vendor, uint32_t device);
/* The architecture of an AMD GPU, such as "gfx942"; NULL: of no family that is known. */
const char *tutti_pci_gcn(uint32_t vendor, uint32_t device);
/* MB/s of one NVLink each way, by the GPU's compute capability, as hwloc's tables have it. */
uint64_t tutti_nvlink_mbytes_per_s(int64_t sm);

/* GT/s and lanes whose product is that rate, in GB/s after the line code: the slowest generation
 * that needs no more than 16 lanes. false: of none. */
bool tutti_pci_link_of_rate(double gbytes_per_s, double *ret_gts, uint32_t *ret_lanes);

#endif
