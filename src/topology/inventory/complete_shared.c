/* SPDX-License-Identifier: Apache-2.0
 * Brings together the gpus that are one device: ranks that share a GPU, and partitions of a GPU. */
#include "topology/inventory/complete.h"

#include "base/result.h"

static int64_t hash_of(const struct tutti_inventory *inventory, uint32_t device)
{
    return tutti_device_number(inventory,
                               tutti_inventory_above(inventory, device, TUTTI_DEVICE_CPU),
                               TUTTI_PROPERTY_HOST_HASH, 0);
}

/* Returns the first pci with a gpu, the bus id of `pci` and its host; this may be `pci` itself. */
static uint32_t find_first(const struct tutti_inventory *inventory, uint32_t pci)
{
    int64_t busid = tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, -1);
    uint32_t gpu = TUTTI_NO_DEVICE;

    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        uint32_t other = inventory->devices[gpu].parent;

        if (tutti_device_number(inventory, other, TUTTI_PROPERTY_BUSID, -1) == busid &&
            hash_of(inventory, other) == hash_of(inventory, pci))
            return other;
    }
    return pci;
}

/* Returns the number of gpus that are not the first of their pci. */
static uint32_t count_shared(const struct tutti_inventory *inventory)
{
    uint32_t gpu = TUTTI_NO_DEVICE, before = TUTTI_NO_DEVICE, count = 0;

    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        count += before != TUTTI_NO_DEVICE &&
                 inventory->devices[gpu].parent == inventory->devices[before].parent;
        before = gpu;
    }
    return count;
}

int tutti_inventory_remark_shared(struct tutti_inventory *inventory)
{
    uint32_t count = count_shared(inventory);

    if (count == 0)
        return TUTTI_OK;
    return tutti_inventory_remark(inventory,
                                  "%u gpu%s on the device of another gpu, as a rank or a "
                                  "partition of it; the gpus of a device share its links",
                                  count, count == 1 ? " is" : "s are");
}

/* Moves each gpu whose bus id is listed again to the pci that has this bus id first. */
int tutti_inventory_complete_shared(struct tutti_inventory *inventory)
{
    uint32_t gpu = TUTTI_NO_DEVICE, next;

    for (gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU); gpu != TUTTI_NO_DEVICE;
         gpu = next) {
        uint32_t pci = inventory->devices[gpu].parent, first = pci;

        next = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU);
        if (tutti_device_has(inventory, pci, TUTTI_PROPERTY_BUSID))
            first = find_first(inventory, pci);
        if (first == pci)
            continue;
        TUTTI_TRY(tutti_inventory_move(inventory, gpu, first));
        if (inventory->devices[pci].first_child == TUTTI_NO_DEVICE)
            tutti_inventory_remove(inventory, pci);
    }
    return tutti_inventory_remark_shared(inventory);
}
