/* SPDX-License-Identifier: Apache-2.0
 * Places a host's devices in a picture. NUMA nodes are in a row at the top. Below them are the PCI
 * switches, level by level, and below these are all gpus and nics in one row. Children are below
 * their parent's box, so that the links between them are vertical. Lengths are in pixels.
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
#define LAYOUT_LEAF 54.0      /* height of a gpu or nic */
#define LAYOUT_SWITCH 22.0    /* height of a PCI switch */
#define LAYOUT_CPU 60.0       /* height of a cpu */
#define LAYOUT_CACHES 20.0    /* height that is added to a cpu whose caches are known */
#define LAYOUT_BAR 26.0       /* height of an nvswitch */
#define LAYOUT_SMALL 10.0     /* font size of small text */
#define LAYOUT_BOLD 12.0      /* font size of bold text */

/* A rectangle of the picture. */
struct box {
    double x, y, width, height; /* (x, y) is the upper left corner; width 0: not drawn */
};

struct layout {
    const struct subject *subject;
    uint32_t host;
    struct box *box;   /* one for each node of the graph; owned */
    uint32_t *parent;  /* for each node: its parent in the drawn tree, or TUTTI_NO_NODE; owned */
    uint32_t *order;   /* the host's nodes in the order of the inventory; owned */
    uint32_t norder;   /* number of these nodes */
    uint32_t ncpus;    /* number of cpus among them */
    double bus_y;      /* y of the line that joins more than two cpus; 0: there is none */
    double width, height; /* size of the whole layout */
};

/* Places the host's devices, with the upper left corner of the layout at (x, y). The layout borrows
 * `subject`. The caller releases the layout with layout_fini. */
void layout_make(const struct subject *subject, uint32_t host, double x, double y,
                 struct layout *ret_layout);
void layout_fini(struct layout *layout);

/* Writes the lines of text in a cpu's box. Unused lines are "". */
void layout_cpu_text(const struct subject *subject, uint32_t node, char lines[3][NAME_BYTES]);
/* Returns the name of a node's model without the maker's name. */
const char *layout_model(const struct subject *subject, uint32_t node);
/* Returns the number of last-level caches of a NUMA node, or 0 if it is not known. */
uint32_t layout_caches(const struct subject *subject, uint32_t node);
/* Returns the node of a nic's first port, or TUTTI_NO_NODE, and the number of its ports. */
uint32_t layout_ports(const struct subject *subject, uint32_t nic, uint32_t *ret_count);

#endif
