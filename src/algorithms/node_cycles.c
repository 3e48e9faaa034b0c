/* SPDX-License-Identifier: Apache-2.0
 * Makes cycles that go from node to node.
 */
#include "algorithms/node_cycles.h"

#include "algorithms/nodes.h"
#include "algorithms/ring.h"
#include "base/result.h"

#include <stdlib.h>

/* The number of cycles for nodes of at most `size` ranks. Cycle i enters a node at rank 2 i, and in
 * the other direction at rank 2 i - 1. If the size is even, half as many cycles as ranks enter at
 * each rank once. If it is odd, as many as ranks enter at each rank twice. */
static uint32_t count_for(uint32_t size)
{
    uint32_t count = size % 2 == 0 ? size / 2 : size;

    return count < TUTTI_RINGS_MOST / 2 ? count : TUTTI_RINGS_MOST / 2;
}

/* Count the cycles through these nodes. */
static struct tutti_node_cycles count_through(const struct tutti_nodes *nodes)
{
    if (nodes->ranks.count == 1)
        return (struct tutti_node_cycles){.ncycles = 1, .smallest = 1};
    return (struct tutti_node_cycles){.ncycles = count_for(nodes->ranks.most),
                                      .smallest = nodes->ranks.least};
}

int tutti_node_cycles_count(const struct tutti_shape *shape, struct tutti_node_cycles *ret_cycles)
{
    struct tutti_nodes nodes;

    TUTTI_TRY(tutti_nodes_init(shape, &nodes));
    *ret_cycles = count_through(&nodes);
    tutti_nodes_fini(&nodes);
    return TUTTI_OK;
}

/* Write the ranks of one node in the order of cycle number `index`. */
static void walk_node(const struct tutti_nodes *nodes, uint32_t node, uint32_t index,
                      bool is_backward, uint32_t *order)
{
    uint32_t size = tutti_homes_size(&nodes->ranks, node);

    for (uint32_t i = 0; i < size; i++) {
        uint32_t step = is_backward ? size - 1 - i : i;
        uint32_t member = (uint32_t)((2 * (uint64_t)index + step) % size);

        order[i] = tutti_homes_item(&nodes->ranks, node, member);
    }
}

int tutti_node_cycles_make(const struct tutti_shape *shape, struct tutti_node_cycles *ret_cycles)
{
    struct tutti_node_cycles cycles;
    struct tutti_nodes nodes;
    uint32_t *order;

    TUTTI_TRY(tutti_nodes_init(shape, &nodes));
    cycles = count_through(&nodes);
    cycles.cycles = malloc((size_t)cycles.ncycles * shape->nranks * sizeof *cycles.cycles);
    if (cycles.cycles == NULL) {
        tutti_nodes_fini(&nodes);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u cycles of %u ranks", cycles.ncycles,
                          shape->nranks);
    }
    order = cycles.cycles;
    for (uint32_t index = 0; index < cycles.ncycles; index++)
        for (uint32_t i = 0; i < nodes.nodes.first[nodes.nodes.count]; i++) {
            uint32_t node = nodes.nodes.items[i];

            walk_node(&nodes, node, index, i % 2 == 1, order);
            order += tutti_homes_size(&nodes.ranks, node);
        }
    tutti_nodes_fini(&nodes);
    *ret_cycles = cycles;
    return TUTTI_OK;
}
