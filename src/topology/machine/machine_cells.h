/* SPDX-License-Identifier: Apache-2.0
 * Reads the `cell` line of a machine's description (machine.h) into places, and writes it. */
#ifndef TUTTI_TOPOLOGY_MACHINE_CELLS_H
#define TUTTI_TOPOLOGY_MACHINE_CELLS_H

#include "topology/machine/machine_draft.h"

#include <stdio.h>

/* Sets places->cell and places->ncells from the draft; nodes must be placed already. If every node
 * has one cell, the machine counts as having no cells. places->cell may be set on error.
 * TUTTI_ERR_ARGUMENT: the list does not fit the ranks or the nodes; TUTTI_ERR_SYSTEM: no memory. */
int tutti_draft_place_cells(const struct tutti_draft *draft, struct tutti_placement *places);

/* Writes the `cell` line, or nothing if the machine has no cells. Errors of writing stay in `out`.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_write_cells(FILE *out, const struct tutti_placement *places);

#endif
