/* SPDX-License-Identifier: Apache-2.0
 * The `cell` line of a description: reading it into places, and writing it. */
#ifndef TUTTI_TOPOLOGY_MACHINE_CELLS_H
#define TUTTI_TOPOLOGY_MACHINE_CELLS_H

#include "topology/machine/machine_draft.h"

#include <stdio.h>

/* Sets places->cell and places->ncells from the draft; nodes must be placed already. Nodes of one
 * cell each count as nodes without cells. TUTTI_ERR_ARGUMENT: the list does not fit the ranks or
 * the nodes; TUTTI_ERR_SYSTEM: no memory. */
int tutti_draft_place_cells(const struct tutti_draft *draft, struct tutti_places *places);

/* Writes the `cell` line; nothing if the machine has no cells. TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_write_cells(FILE *out, const struct tutti_places *places);

#endif
