/* SPDX-License-Identifier: Apache-2.0
 * Loads the machine that --topo names, in any form in which machines are described. */
#ifndef TUTTI_TOOLS_TOPO_MACHINE_H
#define TUTTI_TOOLS_TOPO_MACHINE_H

#include "topology/formats/hints.h"
#include "topology/graph/paths.h"
#include "topology/machine/machine.h"

/* Loads `what`, which is either what tutti_machine_load takes or what tutti_formats_load takes. The
 * latter describes devices: the machine then has a rank for each gpu, and the rings and trees that
 * the search finds. `hints` replace guesses about the devices, and a line on stderr says which
 * rates are guesses; it begins with `command`. `nranks` is the number of ranks; 0: that of the
 * machine. The caller destroys the machine. TUTTI_ERR_ARGUMENT: `what` is neither, has an error,
 * does not have `nranks` gpus, or does not fit the hints. TUTTI_ERR_SYSTEM: no memory. */
int topo_machine_load(const char *command, const char *what, const struct tutti_hints *hints,
                      uint32_t nranks, struct tutti_machine **ret_machine);

/* Returns true if an NVSwitch joins gpus of several hosts. */
bool topo_machine_is_joined(const struct tutti_graph *graph);

/* Makes the machine from the gpus of a graph. The plans are those of the first host with gpus, or
 * of all hosts if an NVSwitch joins them. */
int topo_machine_make(const struct tutti_paths *paths, struct tutti_machine **ret_machine);

#endif
