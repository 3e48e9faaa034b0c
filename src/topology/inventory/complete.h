/* SPDX-License-Identifier: Apache-2.0
 * Declares the parts of tutti_inventory_complete() that have a file of their own. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_COMPLETE_H
#define TUTTI_TOPOLOGY_INVENTORY_COMPLETE_H

#include "topology/inventory/inventory.h"

/* Tells the hosts of a file apart, and joins those that one NVLink domain joins (see
 * tutti_inventory_complete()). TUTTI_ERR_SYSTEM: no memory. */
int tutti_inventory_complete_hosts(struct tutti_inventory *inventory);

/* Brings the gpus with one bus id together below one pci, and remarks on them. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_inventory_complete_shared(struct tutti_inventory *inventory);

#endif
