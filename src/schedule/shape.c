/* SPDX-License-Identifier: Apache-2.0
 * Computes how the nodes and groups of places lie among the rank numbers.
 */
#include "schedule/shape.h"

#include <stddef.h>

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The greatest common divisor of all ranks whose home differs from that of the rank before; 0 if
 * there are none. *ret_borders is the number of these ranks. of[i] is the home of rank i; NULL: not
 * known. */
static uint32_t align(const uint32_t *of, uint32_t nranks, uint32_t *ret_borders)
{
    uint32_t divisor = 0;

    *ret_borders = 0;
    for (uint32_t rank = 1; of != NULL && rank < nranks; rank++)
        if (of[rank] != of[rank - 1]) {
            divisor = common_divisor(divisor, rank);
            ++*ret_borders;
        }
    return divisor;
}

void tutti_placement_align(struct tutti_placement *places)
{
    uint32_t borders;

    places->group_align = align(places->group, places->nranks, &borders);
    places->node_align = align(places->node, places->nranks, &borders);
    places->is_block = places->node == NULL || borders + 1 == places->nnodes;
}
