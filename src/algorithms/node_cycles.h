/* SPDX-License-Identifier: Apache-2.0
 * Cycles through all ranks that go from node to node, for machines whose best orders are not known.
 * All ranks of a node follow one another, and each cycle enters and leaves a node at other ranks:
 *
 *   nodes of 4      node 0      node 1      node 2
 *   cycle 0         0 1 2 3  >  7 6 5 4  >  8 9 10 11  >     enters node 0 at rank 0
 *   cycle 1         2 3 0 1  >  5 4 7 6  >  10 11 8 9  >     enters node 0 at rank 2
 *
 * If both directions of every cycle are used, each rank receives from outside its node in one of
 * them, and sends out of its node in one of them. So all network ports of a node are equally busy.
 * Every second node is walked backwards, so that a cycle goes from the port of one node to the port
 * with the same index in the next node; these are often on one switch (a rail). With an odd number
 * of nodes the last step of a cycle changes rails.
 */
#ifndef TUTTI_ALGORITHMS_NODE_CYCLES_H
#define TUTTI_ALGORITHMS_NODE_CYCLES_H

#include "schedule/shape.h"

struct tutti_node_cycles {
    uint32_t *cycles; /* `ncycles` orders of all ranks, one after another */
    uint32_t ncycles;
    uint32_t smallest; /* ranks of the smallest node; 1 if there is one node, or none is known */
};

/* Count the cycles, at most TUTTI_RINGS_MOST / 2, and set `smallest`; `cycles` becomes NULL. Takes
 * time proportional to the number of ranks. There is one cycle if all ranks share a node, or if
 * each has a node of its own. The errors are those of tutti_node_cycles_make. */
int tutti_node_cycles_count(const struct tutti_shape *shape, struct tutti_node_cycles *ret_cycles);
/* Make the cycles. Nodes of a group follow one another. The caller frees `cycles`.
 * TUTTI_ERR_SYSTEM: no memory. TUTTI_ERR_ARGUMENT: the places name a node or group that does not
 * exist, or one that is empty. */
int tutti_node_cycles_make(const struct tutti_shape *shape, struct tutti_node_cycles *ret_cycles);

#endif
