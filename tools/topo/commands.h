/* SPDX-License-Identifier: Apache-2.0
 * Declares the commands of tutti-topo. Each command is defined in a file of its own. */
#ifndef TUTTI_TOPO_COMMANDS_H
#define TUTTI_TOPO_COMMANDS_H

#include "common/request.h"

extern const struct command topo_show; /* runs if the command line names no command */
extern const struct command topo_matrix;
extern const struct command topo_search;
extern const struct command topo_explain;
extern const struct command topo_draw;
extern const struct command topo_export;
extern const struct command topo_machine;

#endif
