/* SPDX-License-Identifier: Apache-2.0
 * Defines element types and reductions for internal code. They have the numbers of the types in
 * tutti.h under other names, so that internal code does not include tutti.h. */
#ifndef TUTTI_BASE_TYPES_H
#define TUTTI_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>

enum tutti_type {
    TUTTI_INT8 = 0,
    TUTTI_UINT8 = 1,
    TUTTI_INT32 = 2,
    TUTTI_UINT32 = 3,
    TUTTI_INT64 = 4,
    TUTTI_UINT64 = 5,
    TUTTI_FLOAT16 = 6,
    TUTTI_FLOAT32 = 7,
    TUTTI_FLOAT64 = 8,
    TUTTI_BFLOAT16 = 9,
    TUTTI_FLOAT8E4M3 = 10,
    TUTTI_FLOAT8E5M2 = 11,
    TUTTI_TYPE_COUNT
};

/* Reductions of two operands. An average or a pre-multiplied sum is a sum with a scaling before or
 * after it. */
enum tutti_op { TUTTI_SUM = 0, TUTTI_PROD = 1, TUTTI_MAX = 2, TUTTI_MIN = 3, TUTTI_OP_COUNT };

/* Returns the size of one element in bytes. */
static inline size_t tutti_type_size(enum tutti_type type)
{
    static const unsigned char sizes[TUTTI_TYPE_COUNT] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return sizes[type];
}

/* Returns the name of a type, for messages; "no type" for any other number. */
const char *tutti_type_name(enum tutti_type type);

/* True for floating types that are combined in float32 and rounded once. */
static inline bool tutti_type_is_narrow_float(enum tutti_type type)
{
    return type == TUTTI_FLOAT16 || type == TUTTI_BFLOAT16 || type == TUTTI_FLOAT8E4M3 ||
           type == TUTTI_FLOAT8E5M2;
}

#endif
