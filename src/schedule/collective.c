/* SPDX-License-Identifier: Apache-2.0
 * Reads the columns of the table of collectives that kernels do not need, and searches the table.
 */
#include "schedule/collective.h"

#include <stdio.h>
#include <string.h>

_Static_assert(TUTTI_COLLECTIVE_COUNT <= 16, "a column has 16 fields of four bits");

struct row {
    const char *name;
    uint8_t call, vector_call;
};

static const struct row rows[TUTTI_COLLECTIVE_COUNT] = {
#define ROW(collective, name, call, v, ...) [collective] = {name, call, v},
    TUTTI_COLLECTIVES(ROW)
#undef ROW
};

const char *tutti_collective_name(enum tutti_collective collective)
{
    return (unsigned)collective < TUTTI_COLLECTIVE_COUNT ? rows[collective].name : "unknown";
}

enum tutti_collective tutti_collective_find(const char *name, size_t length)
{
    uint32_t found = 0;

    while (found < TUTTI_COLLECTIVE_COUNT && (strlen(rows[found].name) != length ||
                                              memcmp(rows[found].name, name, length) != 0))
        found++;
    return (enum tutti_collective)found;
}

const char *tutti_collective_list(uint32_t which, char text[TUTTI_COLLECTIVE_LIST_BYTES])
{
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < TUTTI_COLLECTIVE_COUNT && at < TUTTI_COLLECTIVE_LIST_BYTES; i++) {
        const char *comma = i > 0 ? ", " : "", *name = rows[i].name;
        bool has_v = (which & TUTTI_LIST_VECTORS) != 0 && rows[i].vector_call != TUTTI_NO_CALL;

        if ((which & TUTTI_LIST_WITH_DATA) == 0 || tutti_collective_has_data(i))
            at += (size_t)snprintf(text + at, TUTTI_COLLECTIVE_LIST_BYTES - at,
                                   has_v ? "%s%s, %sv" : "%s%s", comma, name, name);
    }
    return text;
}

uint8_t tutti_collective_call(enum tutti_collective collective, bool is_vector)
{
    return is_vector ? rows[collective].vector_call : rows[collective].call;
}

enum tutti_collective tutti_collective_of_call(uint8_t call, bool *ret_is_vector)
{
    uint32_t found = 0;

    while (found < TUTTI_COLLECTIVE_COUNT && rows[found].call != call &&
           (rows[found].vector_call != call || call == TUTTI_NO_CALL))
        found++;
    *ret_is_vector = found < TUTTI_COLLECTIVE_COUNT && rows[found].call != call;
    return (enum tutti_collective)found;
}

bool tutti_collective_in_place_shift(enum tutti_collective collective, uint32_t rank, uint32_t root,
                                     uint32_t chunks_per_block, int64_t *ret_shift)
{
    int64_t block = (int64_t)rank * chunks_per_block;

    if (!tutti_collective_has_input(collective, rank, root) ||
        !tutti_collective_has_output(collective, rank, root))
        return false;
    switch (tutti_collective_in_place(collective)) {
    case TUTTI_AT_SAME_PLACE: *ret_shift = 0; return true;
    case TUTTI_AT_OWN_BLOCK:
        *ret_shift = tutti_output_is_per_rank(collective) ? block : -block;
        return true;
    default: return false;
    }
}
