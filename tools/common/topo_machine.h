/* SPDX-License-Identifier: Apache-2.0
 * Loads the machine that --topo names, in any form in which machines are described, or detects
 * this machine. */
#ifndef TUTTI_TOOLS_TOPO_MACHINE_H
#define TUTTI_TOOLS_TOPO_MACHINE_H

#include "topology/formats/hints.h"
#include "topology/graph/paths.h"
#include "topology/machine/machine.h"

/* The name of this machine among the others. A file of that name is "./this". */
#define TOPO_MACHINE_HERE "this"

/* Loads `what`, which is either the name above, or what tutti_machine_load or tutti_formats_load
 * takes. The latter describes devices: the machine then has a rank for each gpu, and the rings and
 * trees that the search finds. `hints` replace guesses about the devices, and a line on stderr says
 * which rates are guesses; it begins with `command`. `nranks` is the number of ranks; 0: that of
 * the machine. The caller destroys the machine. TUTTI_ERR_ARGUMENT: `what` is none of these, has an
 * error, does not have `nranks` gpus, or does not fit the hints. TUTTI_ERR_SYSTEM: no memory. */
int topo_machine_load(const char *command, const char *what, const struct tutti_hints *hints,
                      uint32_t nranks, struct tutti_machine **ret_machine);

/* Makes this machine. If it has several gpus, there is a rank for each, as topo_machine_load would
 * make it of its devices. Otherwise `nranks` processes on its cores are the ranks, with the rates
 * of TUTTI_MACHINE, or those that the library assumes. `nranks` may be 0: one for each core. Writes
 * what the ranks are, such as "a rank for each of its 8 gpus". The caller destroys the machine. The
 * errors are those of topo_machine_load, and TUTTI_ERR_USAGE for a wrong TUTTI_MACHINE. */
#define TOPO_MACHINE_ABOUT 160
int topo_machine_here(uint32_t nranks, struct tutti_machine **ret_machine,
                      char ret_about[TOPO_MACHINE_ABOUT]);

/* Makes the machine from the gpus of a graph. The plans are those of the first part with gpus
 * (graph/parts.h), or of all hosts if they are one domain. */
int topo_machine_make(const struct tutti_paths *paths, struct tutti_machine **ret_machine);

#endif
