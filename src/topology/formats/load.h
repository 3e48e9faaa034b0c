/* SPDX-License-Identifier: Apache-2.0
 * A machine from whatever a user has of it.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LOAD_H
#define TUTTI_TOPOLOGY_FORMATS_LOAD_H

#include "topology/inventory/inventory.h"

/* `what` is, and in this order: the name of a known machine (formats/known.h); a file, or "-" for
 * standard input; a line (formats/line.h) where it has a blank, a ';' or a ':'. A file is what its
 * content says: XML of NCCL, RCCL or hwloc, whose gaps are filled in (tutti_inventory_complete),
 * the matrix of nvidia-smi topo -m (formats/matrix.h), or else lines. TUTTI_ERR_ARGUMENT: it is
 * none of them, or wrong in itself. */
int tutti_inventory_load(const char *what, struct tutti_inventory **ret_inventory);

/* Of a text at hand, `name` is what errors begin with. */
int tutti_inventory_parse(const char *name, const char *text, size_t length,
                          struct tutti_inventory **ret_inventory);

#endif
