/* SPDX-License-Identifier: Apache-2.0
 * Merges two views of one host: each device appears once, and each property has the value of its
 * best source. */
#include "topology/inventory/inventory.h"

#include "base/result.h"

#include <string.h>

/* Returns true if device i of `a` and device j of `b` have equal values of a property, or both have
 * none. Properties of the forms REAL, GTS and MASK are not compared here. */
static bool has_equal(const struct tutti_inventory *a, uint32_t i, const struct tutti_inventory *b,
                      uint32_t j, enum tutti_property property)
{
    enum tutti_property_form form = tutti_property_info(property)->form;

    if (tutti_device_has(a, i, property) != tutti_device_has(b, j, property))
        return false;
    if (!tutti_device_has(a, i, property))
        return true;
    return form == TUTTI_FORM_TEXT
               ? strcmp(a->devices[i].value[property].text, b->devices[j].value[property].text) == 0
               : a->devices[i].value[property].number == b->devices[j].value[property].number;
}

/* Returns true if two devices are the same, provided that their parents are the same. */
static bool is_same(const struct tutti_inventory *a, uint32_t i, const struct tutti_inventory *b,
                    uint32_t j)
{
    if (a->devices[i].kind != b->devices[j].kind)
        return false;
    switch (a->devices[i].kind) {
    case TUTTI_DEVICE_CPU:
        return has_equal(a, i, b, j, TUTTI_PROPERTY_HOST_HASH) &&
               has_equal(a, i, b, j, TUTTI_PROPERTY_NUMA);
    case TUTTI_DEVICE_PCI: return has_equal(a, i, b, j, TUTTI_PROPERTY_BUSID);
    case TUTTI_DEVICE_NVLINK:
    case TUTTI_DEVICE_PCILINK: return has_equal(a, i, b, j, TUTTI_PROPERTY_TARGET);
    case TUTTI_DEVICE_NET:
        return has_equal(a, i, b, j, TUTTI_PROPERTY_NET_NAME) &&
               has_equal(a, i, b, j, TUTTI_PROPERTY_PORT) &&
               has_equal(a, i, b, j, TUTTI_PROPERTY_DEV);
    case TUTTI_DEVICE_NIC: /* a pci has one nic; below a cpu the first port identifies it */
        return a->devices[a->devices[i].parent].kind == TUTTI_DEVICE_PCI ||
               (a->devices[i].first_child != TUTTI_NO_DEVICE &&
                b->devices[j].first_child != TUTTI_NO_DEVICE &&
                is_same(a, a->devices[i].first_child, b, b->devices[j].first_child));
    default: return true;
    }
}

/* Finds the pci in `into` with the same bus id on the same host; TUTTI_NO_DEVICE: none. All pci are
 * searched, because a pci may have another parent in the other view. */
static uint32_t find_pci(const struct tutti_inventory *into, const struct tutti_inventory *from,
                         uint32_t device)
{
    uint32_t cpu = tutti_inventory_above(from, device, TUTTI_DEVICE_CPU);

    for (uint32_t i = tutti_inventory_next_of(into, TUTTI_NO_DEVICE, TUTTI_DEVICE_PCI);
         i != TUTTI_NO_DEVICE; i = tutti_inventory_next_of(into, i, TUTTI_DEVICE_PCI))
        if (has_equal(into, i, from, device, TUTTI_PROPERTY_BUSID) &&
            has_equal(into, tutti_inventory_above(into, i, TUTTI_DEVICE_CPU), from, cpu,
                      TUTTI_PROPERTY_HOST_HASH))
            return i;
    return TUTTI_NO_DEVICE;
}

/* Finds the device of `into` that is `device` of `from`; TUTTI_NO_DEVICE: none. `likely` is tried
 * first: if both views list their devices in the same order it matches, and no search is needed. */
static uint32_t find_match(const struct tutti_inventory *into, uint32_t parent, uint32_t likely,
                           const struct tutti_inventory *from, uint32_t device)
{
    if (likely != TUTTI_NO_DEVICE && is_same(into, likely, from, device))
        return likely;
    if (from->devices[device].kind == TUTTI_DEVICE_PCI)
        return find_pci(into, from, device);
    for (uint32_t i = into->devices[parent].first_child; i != TUTTI_NO_DEVICE;
         i = into->devices[i].next)
        if (is_same(into, i, from, device))
            return i;
    return TUTTI_NO_DEVICE;
}

/* Copies to `device` each property for which `other` has a better source. */
static int merge_values(struct tutti_inventory *into, uint32_t device,
                        const struct tutti_inventory *from, uint32_t other)
{
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++)
        if (from->devices[other].value[property].found_by >
            into->devices[device].value[property].found_by)
            TUTTI_TRY(tutti_device_copy_value(into, device, property, from, other));
    if (from->devices[other].found_by > into->devices[device].found_by)
        into->devices[device].found_by = from->devices[other].found_by;
    return TUTTI_OK;
}

/* Merges device `other` of `from`, and all devices below it, into device `parent` of `into`. */
static int merge_below(struct tutti_inventory *into, uint32_t parent,
                       const struct tutti_inventory *from, uint32_t other)
{
    uint32_t likely = into->devices[parent].first_child;

    TUTTI_TRY(merge_values(into, parent, from, other));
    for (uint32_t child = from->devices[other].first_child; child != TUTTI_NO_DEVICE;
         child = from->devices[child].next) {
        uint32_t device = find_match(into, parent, likely, from, child);

        if (device == TUTTI_NO_DEVICE)
            TUTTI_TRY(tutti_inventory_add(into, parent, from->devices[child].kind,
                                          from->devices[child].found_by, &device));
        TUTTI_TRY(merge_below(into, device, from, child));
        likely = into->devices[device].next;
    }
    return TUTTI_OK;
}

int tutti_inventory_merge(struct tutti_inventory *into, const struct tutti_inventory *from)
{
    return merge_below(into, 0, from, 0);
}
