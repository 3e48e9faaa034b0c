/* SPDX-License-Identifier: Apache-2.0
 * The commands of tutti-topo, each in its own file. */
#ifndef TUTTI_TOPO_COMMANDS_H
#define TUTTI_TOPO_COMMANDS_H

#include "common/request.h"

extern const struct command topo_show; /* also run if no command is given */
extern const struct command topo_matrix;
extern const struct command topo_search;
extern const struct command topo_explain;
extern const struct command topo_draw;
extern const struct command topo_export;
extern const struct command topo_machine;

#endif
