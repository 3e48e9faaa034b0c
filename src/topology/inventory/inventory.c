/* SPDX-License-Identifier: Apache-2.0
 * Creates, changes, copies and walks the tree of devices. */
#include "topology/inventory/inventory.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[TUTTI_DEVICE_COUNT] = {
    "system", "cpu", "pci", "pcilink", "gpu", "nvlink", "c2c", "nic", "net",
};

const char *tutti_device_kind_name(enum tutti_device_kind kind)
{
    return kind_names[kind];
}

enum tutti_device_kind tutti_device_kind_named(const char *name)
{
    if (strcmp(name, "xgmi") == 0)
        return TUTTI_DEVICE_NVLINK;
    for (int kind = 0; kind < TUTTI_DEVICE_COUNT; kind++)
        if (strcmp(name, kind_names[kind]) == 0)
            return (enum tutti_device_kind)kind;
    return TUTTI_DEVICE_COUNT;
}

bool tutti_device_fits(enum tutti_device_kind parent, enum tutti_device_kind kind)
{
    static const uint32_t below[TUTTI_DEVICE_COUNT] = {
        [TUTTI_DEVICE_SYSTEM] = TUTTI_ON(CPU),
        [TUTTI_DEVICE_CPU] = TUTTI_ON(PCI) | TUTTI_ON(NIC),
        [TUTTI_DEVICE_PCI] = TUTTI_ON(PCI) | TUTTI_ON(GPU) | TUTTI_ON(NIC) | TUTTI_ON(PCILINK),
        [TUTTI_DEVICE_GPU] = TUTTI_ON(NVLINK) | TUTTI_ON(C2C),
        [TUTTI_DEVICE_NIC] = TUTTI_ON(NET),
    };

    return (below[parent] & (1u << kind)) != 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Makes room for one more device. */
static int make_room(struct tutti_inventory *inventory)
{
    if (inventory->count == TUTTI_INVENTORY_DEVICES)
        return tutti_note(TUTTI_ERR_ARGUMENT, "more than %u devices; no machine has so many",
                          TUTTI_INVENTORY_DEVICES);
    return TUTTI_ARRAY_ROOM(inventory->devices, inventory->count, inventory->capacity, "devices");
}

/* Appends a device to the array, for which there is room. The device is not in the tree yet. */
static void append(struct tutti_inventory *inventory, enum tutti_device_kind kind,
                   enum tutti_source source)
{
    inventory->devices[inventory->count++] = (struct tutti_device){
        .kind = kind, .found_by = source, .parent = TUTTI_NO_DEVICE,
        .first_child = TUTTI_NO_DEVICE, .last_child = TUTTI_NO_DEVICE, .next = TUTTI_NO_DEVICE,
    };
}

int tutti_inventory_create(struct tutti_inventory **ret_inventory)
{
    struct tutti_inventory *inventory = calloc(1, sizeof *inventory);
    int rc;

    if (inventory == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an inventory");
    rc = make_room(inventory);
    if (rc != TUTTI_OK) {
        free(inventory);
        return rc;
    }
    append(inventory, TUTTI_DEVICE_SYSTEM, TUTTI_SOURCE_NONE);
    *ret_inventory = inventory;
    /* NCCL's files must have a version; it is 1 until a better source sets another. */
    return tutti_device_set_number(inventory, 0, TUTTI_PROPERTY_VERSION, TUTTI_SOURCE_ASSUMED, 1);
}

static void free_values(struct tutti_device *device)
{
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
        struct tutti_value *value = &device->value[property];

        if (value->found_by != TUTTI_SOURCE_NONE && tutti_property_is_text(property))
            free(value->text);
        *value = (struct tutti_value){0};
    }
}

void tutti_inventory_destroy(struct tutti_inventory *inventory)
{
    if (inventory == NULL)
        return;
    for (uint32_t i = 0; i < inventory->count; i++)
        free_values(&inventory->devices[i]);
    free(inventory->devices);
    free(inventory->remarks);
    free(inventory);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Makes a device the last child of `parent`. */
static void attach(struct tutti_inventory *inventory, uint32_t device, uint32_t parent)
{
    struct tutti_device *above = &inventory->devices[parent];

    inventory->devices[device].parent = parent;
    inventory->devices[device].next = TUTTI_NO_DEVICE;
    if (above->last_child == TUTTI_NO_DEVICE)
        above->first_child = device;
    else
        inventory->devices[above->last_child].next = device;
    above->last_child = device;
}

/* Takes a device from the list of its parent's children. */
static void detach(struct tutti_inventory *inventory, uint32_t device)
{
    struct tutti_device *above = &inventory->devices[inventory->devices[device].parent];
    uint32_t next = inventory->devices[device].next, before = TUTTI_NO_DEVICE;

    for (uint32_t i = above->first_child; i != device; i = inventory->devices[i].next)
        before = i;
    if (before == TUTTI_NO_DEVICE)
        above->first_child = next;
    else
        inventory->devices[before].next = next;
    if (above->last_child == device)
        above->last_child = before;
}

int tutti_inventory_add(struct tutti_inventory *inventory, uint32_t parent,
                        enum tutti_device_kind kind, enum tutti_source source,
                        uint32_t *ret_device)
{
    if (!tutti_device_fits(inventory->devices[parent].kind, kind))
        return tutti_note(TUTTI_ERR_ARGUMENT, "a %s does not go below a %s", kind_names[kind],
                          kind_names[inventory->devices[parent].kind]);
    TUTTI_TRY(make_room(inventory));
    append(inventory, kind, source);
    attach(inventory, inventory->count - 1, parent);
    *ret_device = inventory->count - 1;
    return TUTTI_OK;
}

/* Returns true if `device` is `above`, or below it. */
static bool is_in_subtree(const struct tutti_inventory *inventory, uint32_t device, uint32_t above)
{
    for (; device != TUTTI_NO_DEVICE; device = inventory->devices[device].parent)
        if (device == above)
            return true;
    return false;
}

int tutti_inventory_move(struct tutti_inventory *inventory, uint32_t device, uint32_t parent)
{
    const struct tutti_device *devices = inventory->devices;

    if (!tutti_device_fits(devices[parent].kind, devices[device].kind) ||
        is_in_subtree(inventory, parent, device))
        return tutti_note(TUTTI_ERR_ARGUMENT, "a %s does not go below a %s, or below itself",
                          kind_names[devices[device].kind], kind_names[devices[parent].kind]);
    detach(inventory, device);
    attach(inventory, device, parent);
    return TUTTI_OK;
}

void tutti_inventory_remove(struct tutti_inventory *inventory, uint32_t device)
{
    detach(inventory, device);
    inventory->devices[device].parent = device;
}

bool tutti_inventory_has(const struct tutti_inventory *inventory, uint32_t device)
{
    for (; device != 0; device = inventory->devices[device].parent)
        if (inventory->devices[device].parent == device)
            return false;
    return true;
}

uint32_t tutti_inventory_next(const struct tutti_inventory *inventory, uint32_t device)
{
    const struct tutti_device *devices = inventory->devices;

    if (device == TUTTI_NO_DEVICE)
        return 0;
    if (devices[device].first_child != TUTTI_NO_DEVICE)
        return devices[device].first_child;
    while (device != 0 && devices[device].next == TUTTI_NO_DEVICE)
        device = devices[device].parent;
    return device == 0 ? TUTTI_NO_DEVICE : devices[device].next;
}

uint32_t tutti_inventory_next_of(const struct tutti_inventory *inventory, uint32_t device,
                                 enum tutti_device_kind kind)
{
    do
        device = tutti_inventory_next(inventory, device);
    while (device != TUTTI_NO_DEVICE && inventory->devices[device].kind != kind);
    return device;
}

uint32_t tutti_inventory_above(const struct tutti_inventory *inventory, uint32_t device,
                               enum tutti_device_kind kind)
{
    while (device != TUTTI_NO_DEVICE && inventory->devices[device].kind != kind)
        device = inventory->devices[device].parent;
    return device;
}

uint32_t tutti_inventory_find_pci(const struct tutti_inventory *inventory, int64_t busid)
{
    uint32_t device = TUTTI_NO_DEVICE;

    while ((device = tutti_inventory_next_of(inventory, device, TUTTI_DEVICE_PCI)) !=
           TUTTI_NO_DEVICE)
        if (tutti_device_has(inventory, device, TUTTI_PROPERTY_BUSID) &&
            inventory->devices[device].value[TUTTI_PROPERTY_BUSID].number == busid)
            return device;
    return TUTTI_NO_DEVICE;
}

/* ---- whole inventories ----------------------------------------------------------------------- */

int tutti_inventory_copy(const struct tutti_inventory *inventory,
                         struct tutti_inventory **ret_copy)
{
    struct tutti_inventory *copy = calloc(1, sizeof *copy);
    bool is_complete = true;

    if (copy == NULL)
        goto no_memory;
    copy->devices = malloc(inventory->count * sizeof *copy->devices);
    if (copy->devices == NULL)
        goto no_memory;
    copy->count = copy->capacity = inventory->count;
    memcpy(copy->devices, inventory->devices, inventory->count * sizeof *copy->devices);
    for (uint32_t i = 0; i < copy->count; i++)
        for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
            struct tutti_value *value = &copy->devices[i].value[property];

            if (value->found_by == TUTTI_SOURCE_NONE || !tutti_property_is_text(property))
                continue;
            value->text = strdup(value->text);
            is_complete = is_complete && value->text != NULL;
        }
    if (inventory->remarks != NULL) {
        copy->remarks = strdup(inventory->remarks);
        is_complete = is_complete && copy->remarks != NULL;
    }
    if (!is_complete)
        goto no_memory;
    *ret_copy = copy;
    return TUTTI_OK;

no_memory:
    tutti_inventory_destroy(copy);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an inventory of %u devices",
                      inventory->count);
}
