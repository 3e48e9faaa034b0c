/* SPDX-License-Identifier: Apache-2.0
 * Defines element types and reductions for internal code. They have the numbers of the types in
 * tutti.h under other names, so that internal code does not include tutti.h. */
#ifndef TUTTI_BASE_TYPES_H
#define TUTTI_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The table of element types. Code that needs a line for each type makes these lines from this
 * table, so a type is added in few places. A row is
 *
 *   X(NAME, number, name, FAMILY, code, bits, exponent_bits, fraction_bits)
 *
 *   number         of the constant in tutti.h; rows are in the order of their numbers
 *   name           text in messages and on command lines
 *   FAMILY         SIGNED and UNSIGNED integers, FLOATING types that are combined in their own
 *                  type, NARROW floating types, which are combined in float32 and rounded once,
 *                  and BOOLEAN ones
 *   code           the name of the type in the names of kernels
 *   bits           size of an element
 *   exponent_bits  0 for integers and bool; so is fraction_bits
 *
 * A signed type needs the unsigned type of its size, because sums and products of both have the
 * same bits. */
#define TUTTI_TYPES(X)                                         \
    X(INT8, 0, int8, SIGNED, s8, 8, 0, 0)                      \
    X(UINT8, 1, uint8, UNSIGNED, u8, 8, 0, 0)                  \
    X(INT32, 2, int32, SIGNED, s32, 32, 0, 0)                  \
    X(UINT32, 3, uint32, UNSIGNED, u32, 32, 0, 0)              \
    X(INT64, 4, int64, SIGNED, s64, 64, 0, 0)                  \
    X(UINT64, 5, uint64, UNSIGNED, u64, 64, 0, 0)              \
    X(FLOAT16, 6, float16, NARROW, f16, 16, 5, 10)             \
    X(FLOAT32, 7, float32, FLOATING, f32, 32, 8, 23)           \
    X(FLOAT64, 8, float64, FLOATING, f64, 64, 11, 52)          \
    X(BFLOAT16, 9, bfloat16, NARROW, bf16, 16, 8, 7)           \
    X(FLOAT8E4M3, 10, float8e4m3, NARROW, e4m3, 8, 4, 3)       \
    X(FLOAT8E5M2, 11, float8e5m2, NARROW, e5m2, 8, 5, 2)       \
    X(INT16, 12, int16, SIGNED, s16, 16, 0, 0)                 \
    X(UINT16, 13, uint16, UNSIGNED, u16, 16, 0, 0)             \
    X(BOOL, 14, bool, BOOLEAN, u8, 8, 0, 0)

#define TUTTI_TYPE_CONSTANT(NAME, number, ...) TUTTI_##NAME = number,
enum tutti_type { TUTTI_TYPES(TUTTI_TYPE_CONSTANT) TUTTI_TYPE_COUNT };
#undef TUTTI_TYPE_CONSTANT

/* The families of the table above. */
enum tutti_family { TUTTI_SIGNED, TUTTI_UNSIGNED, TUTTI_FLOATING, TUTTI_NARROW, TUTTI_BOOLEAN };

/* The table of reductions of two operands: X(NAME, name). An average or a pre-multiplied sum is a
 * sum with a scaling before or after it. BAND to BXOR are bitwise operations on integers, and
 * logical ones on bool. LAND to LXOR are logical ones: a nonzero operand is true, and the result is
 * 1 or 0. */
#define TUTTI_OPS(X) \
    X(SUM, sum) X(PROD, prod) X(MAX, max) X(MIN, min) X(BAND, band) X(BOR, bor) X(BXOR, bxor) \
    X(LAND, land) X(LOR, lor) X(LXOR, lxor)

#define TUTTI_OP_CONSTANT(NAME, name) TUTTI_##NAME,
enum tutti_op { TUTTI_OPS(TUTTI_OP_CONSTANT) TUTTI_OP_COUNT };
#undef TUTTI_OP_CONSTANT

/* Returns the size of one element in bytes. `type` must be a type of the table. */
static inline size_t tutti_type_size(enum tutti_type type)
{
#define TUTTI_TYPE_BYTES(NAME, number, name, FAMILY, code, bits, ...) (bits) / 8,
    static const unsigned char sizes[TUTTI_TYPE_COUNT] = {TUTTI_TYPES(TUTTI_TYPE_BYTES)};
#undef TUTTI_TYPE_BYTES

    return sizes[type];
}

/* Returns the number of whole elements in `bytes` bytes. A shift is faster than a division by the
 * size: small calls do this between the arrival of their data and their end. */
static inline size_t tutti_type_count(enum tutti_type type, size_t bytes)
{
#define TUTTI_TYPE_SHIFT(NAME, number, name, FAMILY, code, bits, ...) __builtin_ctz((bits) / 8),
    static const unsigned char shifts[TUTTI_TYPE_COUNT] = {TUTTI_TYPES(TUTTI_TYPE_SHIFT)};
#undef TUTTI_TYPE_SHIFT

    return bytes >> shifts[type];
}

/* Returns the family of `type`, which must be a type of the table. */
static inline enum tutti_family tutti_type_family(enum tutti_type type)
{
#define TUTTI_TYPE_FAMILY(NAME, number, name, FAMILY, ...) TUTTI_##FAMILY,
    static const unsigned char families[TUTTI_TYPE_COUNT] = {TUTTI_TYPES(TUTTI_TYPE_FAMILY)};
#undef TUTTI_TYPE_FAMILY

    return (enum tutti_family)families[type];
}

/* Returns the name of a type, for messages; "no type" for any other number. */
const char *tutti_type_name(enum tutti_type type);

/* The types of a family as bits of a constant, so that each small call tests them fast. */
#define TUTTI_TYPE_IF_NARROW(NAME, number, name, FAMILY, ...) \
    | (uint32_t)(TUTTI_##FAMILY == TUTTI_NARROW) << (number)
#define TUTTI_TYPE_IF_FLOATING(NAME, number, name, FAMILY, ...) \
    | (uint32_t)(TUTTI_##FAMILY == TUTTI_FLOATING || TUTTI_##FAMILY == TUTTI_NARROW) << (number)

/* True for floating types that are combined in float32 and rounded once. */
static inline bool tutti_type_is_narrow_float(enum tutti_type type)
{
    return ((UINT32_C(0) TUTTI_TYPES(TUTTI_TYPE_IF_NARROW)) >> type & 1) != 0;
}

/* True for all floating types, narrow ones included. */
static inline bool tutti_type_is_floating(enum tutti_type type)
{
    return ((UINT32_C(0) TUTTI_TYPES(TUTTI_TYPE_IF_FLOATING)) >> type & 1) != 0;
}

#undef TUTTI_TYPE_IF_NARROW
#undef TUTTI_TYPE_IF_FLOATING

/* Returns the name of a reduction; "no operation" for any other number. */
const char *tutti_op_name(enum tutti_op op);

/* True if the operation is defined for the type. Bitwise and logical operations are not defined for
 * floating types. */
static inline bool tutti_op_takes(enum tutti_op op, enum tutti_type type)
{
    return op < TUTTI_BAND || !tutti_type_is_floating(type);
}

/* True if the type has averages and pre-multiplied sums, as all but bool have. */
static inline bool tutti_type_is_scaled(enum tutti_type type)
{
    return tutti_type_family(type) != TUTTI_BOOLEAN;
}

/* True if the results are truth values, which are 1 or 0, although the inputs need not be. */
static inline bool tutti_op_gives_truth(enum tutti_op op, enum tutti_type type)
{
    return op >= TUTTI_LAND || tutti_type_family(type) == TUTTI_BOOLEAN;
}

/* Returns the logical operation that `op` is on bool. */
static inline enum tutti_op tutti_op_on_bool(enum tutti_op op)
{
    switch (op) {
    case TUTTI_PROD: case TUTTI_MIN: case TUTTI_BAND: case TUTTI_LAND: return TUTTI_LAND;
    case TUTTI_BXOR: case TUTTI_LXOR: return TUTTI_LXOR;
    default: return TUTTI_LOR;
    }
}

#endif
