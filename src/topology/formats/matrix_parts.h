/* SPDX-License-Identifier: Apache-2.0
 * Holds a matrix of nvidia-smi as it was read, before devices are made from the matrix. */
#ifndef TUTTI_TOPOLOGY_FORMATS_MATRIX_PARTS_H
#define TUTTI_TOPOLOGY_FORMATS_MATRIX_PARTS_H

#include "topology/inventory/inventory.h"

/* Upper bound for the devices of a matrix. */
#define TUTTI_MATRIX_DEVICES 128

/* The distance of two devices, from the nearest to the farthest. */
enum tutti_matrix_distance {
    TUTTI_MATRIX_SELF,   /* X: the same device */
    TUTTI_MATRIX_PIX,    /* one PCI switch */
    TUTTI_MATRIX_PXB,    /* several PCI switches */
    TUTTI_MATRIX_NODE,   /* NODE or PHB: within a NUMA node */
    TUTTI_MATRIX_SYS,    /* between NUMA nodes */
    TUTTI_MATRIX_NVLINK, /* NV4: joined by NVLinks; the distance by PCI is not given */
};

struct tutti_matrix_cell {
    enum tutti_matrix_distance distance;
    uint32_t nlinks; /* NVLinks; 0 unless the distance is NVLINK */
};

struct tutti_matrix_device {
    char name[48];      /* such as GPU0 or mlx5_0 */
    char model[64];     /* name of the product, from nvidia-smi -L; "": not given */
    char affinity[256]; /* list of the CPUs near to it, such as "0-31"; may be "" */
    bool is_gpu;        /* false: a NIC */
    bool has_row;       /* the matrix has a row for it, not only a column */
};

struct tutti_matrix {
    struct tutti_matrix_device devices[TUTTI_MATRIX_DEVICES];
    struct tutti_matrix_cell cells[TUTTI_MATRIX_DEVICES][TUTTI_MATRIX_DEVICES]; /* [row][column] */
    uint32_t count; /* of devices */
};

/* Makes the devices of a matrix. `source` is recorded for the values that the matrix gives; guesses
 * are ASSUMED. The caller destroys the inventory. TUTTI_ERR_SYSTEM: no memory. */
int tutti_matrix_build(const struct tutti_matrix *matrix, enum tutti_source source,
                       struct tutti_inventory **ret_inventory);

#endif
