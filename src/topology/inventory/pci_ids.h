/* SPDX-License-Identifier: Apache-2.0
 * Infers facts about a PCI device from its class and ids, and from the rate of its link. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H
#define TUTTI_TOPOLOGY_INVENTORY_PCI_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* PCI ids of vendors. */
#define TUTTI_PCI_NVIDIA 0x10deu
#define TUTTI_PCI_AMD 0x1002u
#define TUTTI_PCI_INTEL 0x8086u
/* PCI classes: base class, subclass, interface. */
#define TUTTI_PCI_CLASS_ETHERNET 0x020000u
#define TUTTI_PCI_CLASS_INFINIBAND 0x020700u
#define TUTTI_PCI_CLASS_SCREEN 0x030000u /* a GPU with a screen */
#define TUTTI_PCI_CLASS_GPU 0x030200u    /* a GPU without a screen */
#define TUTTI_PCI_CLASS_BRIDGE 0x060400u
#define TUTTI_PCI_CLASS_NVSWITCH 0x068000u
#define TUTTI_PCI_CLASS_NVLINK_TO_CPU 0x068001u /* IBM's bridge between NVLink and the CPU */

/* Returns true if the class and vendor indicate a GPU that computes. False is not final, because a
 * driver's device below the PCI device may show that it is a GPU. */
bool tutti_pci_is_gpu(uint32_t pci_class, uint32_t vendor);
/* Returns the compute capability of an NVIDIA GPU, such as 90; 0: the family is not known. */
int64_t tutti_pci_compute_capability(uint32_t vendor, uint32_t device);
/* Returns the architecture of an AMD GPU, such as "gfx942"; NULL: the family is not known. */
const char *tutti_pci_gcn(uint32_t vendor, uint32_t device);
/* Returns the MB/s of one NVLink in each direction for a GPU of compute capability `sm`, as in
 * hwloc's tables. The result is never 0. */
uint64_t tutti_nvlink_mbytes_per_s(int64_t sm);

/* Finds the GT/s and the number of lanes, at most 16, of a link from its rate in GB/s of data,
 * without the overhead of the line code. If several generations fit, the slowest one is taken.
 * Returns false if none fits. */
bool tutti_pci_link_of_rate(double gbytes_per_s, double *ret_gts, uint32_t *ret_lanes);

#endif
