/* SPDX-License-Identifier: Apache-2.0
 * Describes a cluster of many like hosts by levels. Such a description has no links and paths, so
 * that it may have far more hosts than a graph. */
#ifndef TUTTI_TOOLS_TOPO_LEVELS_H
#define TUTTI_TOOLS_TOPO_LEVELS_H

#include <stdbool.h>

/* Writes the description by levels of a line such as "64 hosts: dgx-h100". The costs of its levels
 * are those of the machine of two such hosts: between hosts, of the fastest path. Returns false if
 * the text is no such line, or if nothing can be made of it. On success the caller frees
 * *ret_text. */
bool topo_levels_write(const char *line, char **ret_text);

#endif
