/* SPDX-License-Identifier: Apache-2.0
 * Loads a machine from any form in which a user may give it: a name, a line or a file.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LOAD_H
#define TUTTI_TOPOLOGY_FORMATS_LOAD_H

#include "topology/inventory/inventory.h"

/* Loads `what`, which is tried in this order: the name of a known machine (formats/known.h); a line
 * (formats/line.h), if it contains a blank, ';' or ':' and no such file exists; a file, or "-" for
 * standard input. In a line, hosts may be a known machine of one host, and racks one whose hosts
 * share an NVSwitch: "4 hosts: dgx-h100", "32 racks: gb200-nvl72". The content of a file decides
 * how it is read. It may be XML of NCCL, RCCL or hwloc, which is completed with
 * tutti_inventory_complete(). It may be the matrix of nvidia-smi topo -m (formats/matrix.h), or
 * else lines. The caller destroys the inventory. TUTTI_ERR_ARGUMENT: `what` is none of these, or
 * has an error; TUTTI_ERR_SYSTEM: no memory. */
int tutti_formats_load(const char *what, struct tutti_inventory **ret_inventory);

/* Does the same for the text of a file; `name` begins error messages. `text` must end in zero,
 * which `length` does not count. */
int tutti_formats_parse(const char *name, const char *text, size_t length,
                        struct tutti_inventory **ret_inventory);

#endif
