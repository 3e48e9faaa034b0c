/* SPDX-License-Identifier: Apache-2.0
 * Reads the matrix that `nvidia-smi topo -m` prints, which is the form in which people usually post
 * a machine.
 *
 *           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
 *   GPU0     X      NV12    PXB     0-31            0
 *   GPU1    NV12     X      SYS     32-63           1
 *   NIC0    PXB     SYS      X
 *
 *   NIC Legend:
 *     NIC0: mlx5_0
 *
 * Lines of `nvidia-smi -L` before or after it give the products, whose NVLinks and ports differ in
 * rate: NV18 may be Hopper's or Blackwell's. Without such lines the generation is guessed.
 *
 *   GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
 *
 * The matrix shows how far devices are from each other, but not the devices between them. The
 * reader builds the smallest set of devices that explains the matrix. Devices closer than SYS share
 * a NUMA node, PIX means one shared PCI switch, and PXB a switch above such switches. NVLinks are
 * direct if a GPU can have that many, and else lead to an NVSwitch. Guesses are marked ASSUMED, and
 * bus ids are invented. Other text before and after the matrix is ignored.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_MATRIX_H
#define TUTTI_TOPOLOGY_FORMATS_MATRIX_H

#include "topology/inventory/inventory.h"

/* Returns true if the text has a line that is the header of such a matrix. */
bool tutti_matrix_is(const char *text);

/* Reads the first matrix of a text that ends in zero. `source` is recorded for the values that the
 * matrix gives. The caller destroys the inventory. TUTTI_ERR_ARGUMENT: the matrix is invalid, and
 * the message begins with "name:line:". TUTTI_ERR_SYSTEM: no memory. */
int tutti_matrix_read(const char *name, const char *text, enum tutti_source source,
                      struct tutti_inventory **ret_inventory);

#endif
