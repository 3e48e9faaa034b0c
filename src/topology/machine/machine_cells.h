/* SPDX-License-Identifier: Apache-2.0
 * The line of a description that tells the cells of nodes. */
#ifndef TUTTI_TOPOLOGY_MACHINE_CELLS_H
#define TUTTI_TOPOLOGY_MACHINE_CELLS_H

#include "topology/machine/machine_draft.h"

#include <stdio.h>

/* After nodes have been placed. */
int tutti_draft_place_cells(const struct tutti_draft *draft, struct tutti_places *places);

/* Nothing where there are none. TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_write_cells(FILE *out, const struct tutti_places *places);

#endif
