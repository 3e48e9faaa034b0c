/* SPDX-License-Identifier: Apache-2.0
 * Names options, and computes at which ranks the nodes and groups of a placement begin.
 */
#include "schedule/shape.h"

#include <stddef.h>

const char *tutti_option_name(enum tutti_option option)
{
    static const char *const names[TUTTI_OPTION_COUNT] = {
        [TUTTI_SEGMENTS] = "segments",   [TUTTI_RADIX] = "radix",
        [TUTTI_WINDOW] = "window",       [TUTTI_AGGREGATE] = "aggregate",
        [TUTTI_DOUBLINGS] = "doublings", [TUTTI_CHANNELS] = "channels",
    };

    return (unsigned)option < TUTTI_OPTION_COUNT ? names[option] : "unknown";
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

/* The greatest common divisor of all ranks whose home differs from that of the rank before; 0 if
 * there are none. *ret_borders is the number of these ranks. `home` has the node, or the group, of
 * each rank; NULL: not known. */
static uint32_t find_align(const uint32_t *home, uint32_t nranks, uint32_t *ret_borders)
{
    uint32_t divisor = 0;

    *ret_borders = 0;
    for (uint32_t rank = 1; home != NULL && rank < nranks; rank++)
        if (home[rank] != home[rank - 1]) {
            divisor = common_divisor(divisor, rank);
            ++*ret_borders;
        }
    return divisor;
}

void tutti_placement_align(struct tutti_placement *places)
{
    uint32_t borders;

    places->group_align = find_align(places->group, places->nranks, &borders);
    places->node_align = find_align(places->node, places->nranks, &borders);
    /* Each node has one run of ranks if there are as many runs as nodes. */
    places->is_block = places->node == NULL || borders + 1 == places->nnodes;
}
