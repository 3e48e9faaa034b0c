/* SPDX-License-Identifier: Apache-2.0
 * Holds a matrix of nvidia-smi as it was read, before devices are made from the matrix. */
#ifndef TUTTI_TOPOLOGY_FORMATS_MATRIX_PARTS_H
#define TUTTI_TOPOLOGY_FORMATS_MATRIX_PARTS_H

#include "topology/inventory/inventory.h"

#define TUTTI_MATRIX_DEVICES 128

/* The distance of two devices, from the nearest to the farthest. */
enum tutti_matrix_nearness {
    TUTTI_MATRIX_SELF,
    TUTTI_MATRIX_PIX,
    TUTTI_MATRIX_PXB,
    TUTTI_MATRIX_NODE,   /* also PHB: within a NUMA node */
    TUTTI_MATRIX_SYS,
    TUTTI_MATRIX_NVLINK, /* the distance by PCI is not given */
};

struct tutti_matrix_cell {
    enum tutti_matrix_nearness nearness;
    uint32_t nlinks;
};

struct tutti_matrix_device {
    char name[48];
    char affinity[256]; /* list of CPUs; may be "" */
    bool is_gpu, has_row;
};

struct tutti_matrix {
    struct tutti_matrix_device devices[TUTTI_MATRIX_DEVICES];
    struct tutti_matrix_cell cells[TUTTI_MATRIX_DEVICES][TUTTI_MATRIX_DEVICES];
    uint32_t count;
};

/* Makes the devices of a matrix. `source` is recorded for the values that the matrix gives; guesses
 * are ASSUMED. The caller destroys the inventory. TUTTI_ERR_SYSTEM: no memory. */
int tutti_matrix_build(const struct tutti_matrix *matrix, enum tutti_source source,
                       struct tutti_inventory **ret_inventory);

#endif
