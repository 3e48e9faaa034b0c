/* SPDX-License-Identifier: Apache-2.0
 * How far apart the ranks of a shape live. */
#include "algorithms/cost.h"

#include <stddef.h>

enum tutti_level tutti_shape_level(const struct tutti_shape *shape)
{
    const struct tutti_places *places = shape->places;

    if (places == NULL || places->node == NULL)
        return TUTTI_LEVEL_TOP;
    if (places->nnodes == 1)
        return TUTTI_LEVEL_NODE;
    return places->group != NULL && places->ngroups == 1 ? TUTTI_LEVEL_GROUP : TUTTI_LEVEL_TOP;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* It divides all distances from the first rank to borders between nodes. */
uint32_t tutti_shape_together(const struct tutti_shape *shape, uint32_t first)
{
    const struct tutti_places *places = shape->places;
    uint32_t together = shape->nranks;

    if (places == NULL || places->node == NULL)
        return 1;
    for (uint32_t i = 1; i < shape->nranks && together > 1; i++) {
        uint32_t rank = (uint32_t)(((uint64_t)first + i) % shape->nranks);
        uint32_t before = rank > 0 ? rank - 1 : shape->nranks - 1;

        if (places->node[rank] != places->node[before])
            together = common_divisor(together, i);
    }
    return together;
}
