/* SPDX-License-Identifier: Apache-2.0
 * What the class and ids of a PCI device tell about it, and what the rate of its link tells. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H
#define TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_PCI_NVIDIA 0x10deu
#define TUTTI_PCI_AMD 0x1002u
#define TUTTI_PCI_INTEL 0x8086u
#define TUTTI_PCI_NVSWITCH 0x068000u /* classes */
#define TUTTI_PCI_NVLINK_TO_CPU 0x068001u

/* True if the class and vendor indicate a GPU that computes. False is not final: a driver's device
 * on it may show that it is one. */
bool tutti_pci_is_gpu(uint32_t pci_class, uint32_t vendor);
/* The compute capability of an NVIDIA GPU, such as 90; 0: the family is not known. */
int64_t tutti_pci_sm(uint32_t vendor, uint32_t device);
/* The architecture of an AMD GPU, such as "gfx942"; NULL: the family is not known. */
const char *tutti_pci_gcn(uint32_t vendor, uint32_t device);
/* MB/s of one NVLink each way for a GPU of this compute capability, as in hwloc's tables. */
uint64_t tutti_nvlink_mbytes_per_s(int64_t sm);

/* The GT/s and lanes of a link with that rate, in GB/s after the line code: the slowest generation
 * that needs no more than 16 lanes. False if no generation has that rate. */
bool tutti_pci_link_of_rate(double gbytes_per_s, double *ret_gts, uint32_t *ret_lanes);

#endif
