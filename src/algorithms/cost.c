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
