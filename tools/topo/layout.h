/* SPDX-License-Identifier: Apache-2.0
 * The positions of a host's devices in a picture: NUMA nodes in a row, below them PCI switches,
 * level by level, and all gpus and nics in one row. Children stand below their parent's box, so
 * that links upwards are vertical.
 *
 *   [ cpu 0          ]---[ cpu 1          ]
 *     |        |           |        |
 *   [ pci   ][ pci   ]   [ pci   ][ pci   ]
 *    |  |  |  |  |  |     |  |  |  |  |  |
 *    g  g  n  g  g  n     g  g  n  g  g  n        ports are described in their nic's box
 *    |  |     |  |        |  |     |  |
 *   [ nvswitch                          ]
 */
#ifndef TUTTI_TOPO_LAYOUT_H
#define TUTTI_TOPO_LAYOUT_H

#include "topo/subject.h"

#define LAYOUT_PORT 52.0      /* width of a gpu, and of a nic for each port */
#define LAYOUT_LEAF 54.0      /* heights */
#define LAYOUT_SWITCH 22.0
#define LAYOUT_CPU 60.0
#define LAYOUT_CACHES 20.0    /* added for a cpu whose caches are known */
#define LAYOUT_BAR 26.0       /* an nvswitch */
#define LAYOUT_SMALL 10.0     /* font sizes */
#define LAYOUT_BOLD 12.0

struct box {
    double x, y, width, height; /* width 0: not drawn */
};

struct layout {
    const struct subject *subject;
    uint32_t host;
    struct box *box;   /* per node of the graph */
    uint32_t *parent;  /* per node: its parent in the drawn tree, or TUTTI_NO_NODE */
    uint32_t *order;   /* the host's nodes in the order of the inventory */
    uint32_t norder;
    uint32_t ncpus;
    double bus_y;      /* height of the bus that joins more than two cpus; 0: none */
    double width, height; /* from the corner where it was placed */
};

/* Places the host with its upper left corner at (x, y). */
void layout_make(const struct subject *subject, uint32_t host, double x, double y,
                 struct layout *ret_layout);
void layout_fini(struct layout *layout);

/* The lines of text in a cpu's box; unused ones are "". They determine the box's width. */
void layout_cpu_text(const struct subject *subject, uint32_t node, char lines[3][NAME_BYTES]);
/* The model's name without its maker. */
const char *layout_model(const struct subject *subject, uint32_t node);
/* The number of last-level caches of a NUMA node; 0: not known. */
uint32_t layout_caches(const struct subject *subject, uint32_t node);
/* The first port of a nic, and their number. */
uint32_t layout_ports(const struct subject *subject, uint32_t nic, uint32_t *ret_count);

#endif
