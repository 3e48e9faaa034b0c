/* SPDX-License-Identifier: Apache-2.0
 * Gives the names of element types and reductions, for messages. */
#include "base/types.h"

#define NAME_OF(NAME, number, name, ...) [number] = #name,

static const char *const names[] = {TUTTI_TYPES(NAME_OF)};
_Static_assert(sizeof(names) / sizeof(names[0]) == TUTTI_TYPE_COUNT, "rows in order of numbers");

const char *tutti_type_name(enum tutti_type type)
{
    return (unsigned)type < TUTTI_TYPE_COUNT ? names[type] : "no type";
}

#define NAME_OF_OP(NAME, name) [TUTTI_##NAME] = #name,

const char *tutti_op_name(enum tutti_op op)
{
    static const char *const op_names[TUTTI_OP_COUNT] = {TUTTI_OPS(NAME_OF_OP)};

    return (unsigned)op < TUTTI_OP_COUNT ? op_names[op] : "no operation";
}
