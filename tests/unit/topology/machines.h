/* SPDX-License-Identifier: Apache-2.0
 * Machines for tests, from a line of text. */
#ifndef TESTS_UNIT_TOPOLOGY_MACHINES_H
#define TESTS_UNIT_TOPOLOGY_MACHINES_H

#include "topology/formats/line.h"
#include "topology/graph/paths.h"

struct machine {
    struct tutti_inventory *inventory;
    struct tutti_graph *graph;
    struct tutti_paths *paths;
};

/* Fails the test with the reason where the line is not good. */
static inline struct machine open_machine(const char *line)
{
    struct machine machine = {0};
    int rc = tutti_line_read("line", line, &machine.inventory);

    if (rc == 0)
        rc = tutti_graph_build(machine.inventory, &machine.graph);
    if (rc == 0)
        rc = tutti_paths_find(machine.graph, &machine.paths);
    if (rc != 0)
        fail_msg("%s: %s", line, tutti_last_message());
    return machine;
}

static inline void close_machine(struct machine *machine)
{
    tutti_paths_destroy(machine->paths);
    tutti_graph_destroy(machine->graph);
    tutti_inventory_destroy(machine->inventory);
}

#endif
