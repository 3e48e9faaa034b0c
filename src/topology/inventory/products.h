/* SPDX-License-Identifier: Apache-2.0
 * Recognizes gpus and ports by what an inventory tells about them: an architecture or a rate, a PCI
 * id, or the name of a product.
 *
 * *ret_source is the source of the result. It is above TUTTI_SOURCE_PRODUCT if the inventory tells
 * the value itself, and TUTTI_SOURCE_PRODUCT if an id or a name tells it. It is
 * TUTTI_SOURCE_ASSUMED if the value is a guess, or not known.
 */
#ifndef TUTTI_TOPOLOGY_INVENTORY_PRODUCTS_H
#define TUTTI_TOPOLOGY_INVENTORY_PRODUCTS_H

#include "topology/inventory/inventory.h"

/* Returns the compute capability of an NVIDIA gpu, such as 90; 0: not known. */
int64_t tutti_product_sm(const struct tutti_inventory *inventory, uint32_t gpu,
                         enum tutti_source *ret_source);
/* Returns the architecture of an AMD gpu, such as "gfx942"; "": not known, or not AMD's. */
const char *tutti_product_gcn(const struct tutti_inventory *inventory, uint32_t gpu,
                              enum tutti_source *ret_source);
/* Returns the Mbit/s of a port; 0: not known. The id of a card tells the highest rate of all its
 * ports together, so ports of one card share it. */
int64_t tutti_product_mbits(const struct tutti_inventory *inventory, uint32_t net,
                            enum tutti_source *ret_source);

/* Returns the compute capability for the name of a product, such as 100 for "NVIDIA GB200"; 0: no
 * word of the name is known. */
int64_t tutti_product_sm_named(const char *name);

#endif
