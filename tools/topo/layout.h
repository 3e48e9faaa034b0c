/* SPDX-License-Identifier: Apache-2.0
 * Where the devices of a host stand in a picture: NUMA nodes in a row, below them PCI switches,
 * level by level, and all gpus and nics in one row. What hangs below a box stands below it, so
 * links up are plumb lines.
 *
 *   [ cpu 0          ]---[ cpu 1          ]
 *     |        |           |        |
 *   [ pci   ][ pci   ]   [ pci   ][ pci   ]
 *    |  |  |  |  |  |     |  |  |  |  |  |
 *    g  g  n  g  g  n     g  g  n  g  g  n        ports are told of in their nic's box
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
#define LAYOUT_CACHES 20.0    /* more for a cpu whose caches are known */
#define LAYOUT_BAR 26.0       /* an nvswitch */
#define LAYOUT_SMALL 10.0     /* sizes of letters */
#define LAYOUT_BOLD 12.0

struct box {
    double x, y, width, height; /* width 0: not drawn */
};

struct layout {
    const struct subject *subject;
    uint32_t host;
    struct box *box;   /* of each node of the graph */
    uint32_t *parent;  /* in the drawn tree; TUTTI_NO_NODE */
    uint32_t *order;   /* nodes of the host as the inventory has them */
    uint32_t norder;
    uint32_t ncpus;
    double bus_y;      /* what joins more than two cpus; 0: none */
    double width, height; /* from the corner at which it was placed */
};

/* Place the host with its upper left corner at (x, y). */
void layout_make(const struct subject *subject, uint32_t host, double x, double y,
                 struct layout *ret_layout);
void layout_fini(struct layout *layout);

/* The lines of text in a box, "" at the end; those of a cpu set its width. */
void layout_cpu_text(const struct subject *subject, uint32_t node, char lines[3][NAME_BYTES]);
/* The model without its maker. */
const char *layout_model(const struct subject *subject, uint32_t node);
/* CPUs of each of its last-level caches, as the inventory has them; count 0: not known. */
uint32_t layout_caches(const struct subject *subject, uint32_t node);
/* The ports of a nic: the first, and how many. */
uint32_t layout_ports(const struct subject *subject, uint32_t nic, uint32_t *ret_count);

#endif
