/* SPDX-License-Identifier: Apache-2.0
 * Loads a machine from whatever form the user has.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LOAD_H
#define TUTTI_TOPOLOGY_FORMATS_LOAD_H

#include "topology/inventory/inventory.h"

/* Loads `what`, which is tried in this order: the name of a known machine (formats/known.h); a line
 * (formats/line.h), if it contains a blank, ';' or ':' and no such file exists; a file, or "-" for
 * standard input. The content of a file decides how it is read: XML of NCCL, RCCL or hwloc, which
 * is completed with tutti_inventory_complete(); the matrix of nvidia-smi topo -m
 * (formats/matrix.h); or else lines. The caller destroys the inventory. TUTTI_ERR_ARGUMENT: it is
 * none of these, or has an error. */
int tutti_inventory_load(const char *what, struct tutti_inventory **ret_inventory);

/* The same for the text of a file; `name` begins error messages. `text` must end in zero; `length`
 * does not count it. */
int tutti_inventory_parse(const char *name, const char *text, size_t length,
                          struct tutti_inventory **ret_inventory);

#endif
