/* SPDX-License-Identifier: Apache-2.0
 * Compares inventories. */
#ifndef TUTTI_TESTS_INVENTORIES_H
#define TUTTI_TESTS_INVENTORIES_H

#include "topology/inventory/inventory.h"

#include <string.h>

static inline uint32_t inventory_depth(const struct tutti_inventory *inventory, uint32_t device)
{
    uint32_t depth = 0;

    for (; device != 0; device = inventory->devices[device].parent)
        depth++;
    return depth;
}

static inline bool inventory_values_equal(const struct tutti_device *a,
                                          const struct tutti_device *b)
{
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
        const struct tutti_value *left = &a->value[property], *right = &b->value[property];
        enum tutti_property_form form = tutti_property_info(property)->form;
        bool is_text = form == TUTTI_FORM_TEXT || form == TUTTI_FORM_MASK;
        bool is_real = form == TUTTI_FORM_REAL || form == TUTTI_FORM_GTS;

        if ((left->found_by == TUTTI_SOURCE_NONE) != (right->found_by == TUTTI_SOURCE_NONE))
            return false;
        if (left->found_by == TUTTI_SOURCE_NONE)
            continue;
        if (is_text   ? strcmp(left->text, right->text) != 0
            : is_real ? left->real < right->real || left->real > right->real
                      : left->number != right->number)
            return false;
    }
    return true;
}

/* Returns true if both trees have the same kinds, order and values. Sources are not compared. */
static inline bool inventories_equal(const struct tutti_inventory *a,
                                     const struct tutti_inventory *b)
{
    uint32_t i = 0, j = 0;

    while (i != TUTTI_NO_DEVICE && j != TUTTI_NO_DEVICE) {
        if (a->devices[i].kind != b->devices[j].kind ||
            inventory_depth(a, i) != inventory_depth(b, j) ||
            !inventory_values_equal(&a->devices[i], &b->devices[j]))
            return false;
        i = tutti_inventory_next(a, i);
        j = tutti_inventory_next(b, j);
    }
    return i == j;
}

#endif
