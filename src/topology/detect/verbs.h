/* SPDX-License-Identifier: Apache-2.0
 * The verbs phase of detection: the ports of RDMA devices, as reported by their driver. */
#ifndef TUTTI_TOPOLOGY_DETECT_VERBS_H
#define TUTTI_TOPOLOGY_DETECT_VERBS_H

#include "topology/inventory/inventory.h"

/* Sets rate, GUID, layer and maximum number of connections of each active port on its net. A port
 * without a net gets a new one at the place that the kernel's files under `root` name ("" or NULL:
 * this machine). Removes nets of ports that are not active, and of devices that this process may
 * not open. Does nothing without libibverbs. */
int tutti_detect_verbs(const char *root, struct tutti_inventory *inventory);

#endif
