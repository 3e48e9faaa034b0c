/* SPDX-License-Identifier: Apache-2.0
 * Declares the verbs phase of detection, which asks libibverbs for the ports of RDMA devices. */
#ifndef TUTTI_TOPOLOGY_DETECT_VERBS_H
#define TUTTI_TOPOLOGY_DETECT_VERBS_H

#include "topology/inventory/inventory.h"

/* Sets rate, GUID, layer and maximum number of connections of each active port on its net. A port
 * without a net gets a new net at the place that the kernel's files under `root` name ("" or NULL:
 * this machine). The function removes the nets of ports that are not active, and of devices that
 * this process may not open. It does nothing without libibverbs. TUTTI_ERR_ARGUMENT: the inventory
 * is full; TUTTI_ERR_SYSTEM: no memory. */
int tutti_detect_verbs(const char *root, struct tutti_inventory *inventory);

#endif
