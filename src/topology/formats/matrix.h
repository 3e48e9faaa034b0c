/* SPDX-License-Identifier: Apache-2.0
 * The matrix that `nvidia-smi topo -m` prints, which is what people post of a machine.
 *
 *           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
 *   GPU0     X      NV12    PXB     0-31            0
 *   GPU1    NV12     X      SYS     32-63           1
 *   NIC0    PXB     SYS      X
 *
 *   NIC Legend:
 *     NIC0: mlx5_0
 *
 * It tells how far devices are from each other, not what is between them. So the fewest devices are
 * made that explain it: who is nearer than SYS shares a NUMA node, PIX one PCIe switch, PXB a
 * switch above those; NVLinks are direct where a GPU can have so many, and else lead to an
 * NVSwitch. What that is guessed from is ASSUMED. Bus ids are invented. What stands before the
 * matrix, and text after it, is passed over.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_MATRIX_H
#define TUTTI_TOPOLOGY_FORMATS_MATRIX_H

#include "topology/inventory/inventory.h"

/* Has the text a line that heads such a matrix? */
bool tutti_matrix_is(const char *text);

/* Read the first one. TUTTI_ERR_ARGUMENT with "name:line: what is wrong"; TUTTI_ERR_SYSTEM. */
int tutti_matrix_read(const char *name, const char *text, enum tutti_source source,
                      struct tutti_inventory **ret_inventory);

#endif
