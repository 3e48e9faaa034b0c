/* SPDX-License-Identifier: Apache-2.0
 * The verbs phase of detection: the ports of RDMA devices, as their driver knows them. */
#ifndef TUTTI_TOPOLOGY_DETECT_VERBS_H
#define TUTTI_TOPOLOGY_DETECT_VERBS_H

#include "topology/inventory/inventory.h"

/* Tell of each port that is active its rate, GUID, layer and most connections: of the net of the
 * device's name, else of a new one at the place that the kernel's files under `root` name ("" or
 * NULL: of this machine). Ports that are not active, or of devices that this process may not open,
 * are taken out. Without libibverbs, nothing. */
int tutti_detect_verbs(const char *root, struct tutti_inventory *inventory);

#endif
