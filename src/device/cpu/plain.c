/* SPDX-License-Identifier: Apache-2.0
 * The reference implementation of cpu.h. It handles one element at a time and runs on every
 * processor. Tests compare all other kernels with it.
 *
 * The functions handle values of any type. They are inlined once per type and operation. There
 * `type` and `op` are constants, so the branches on them vanish.
 */
#include "device/cpu/isa.h"

#include "base/result.h"
#include "device/arithmetic/combine.h"
#include "device/arithmetic/convert.h"

/* An element in its accumulator type: narrow floats as float32, integers extended to 64 bits. */
union value {
    float f32;
    double f64;
    int64_t s64;
    uint64_t u64;
};

/* Loads a value of type `ctype` from an address of any alignment. */
#define READ(ctype, from)                      \
    ({                                         \
        ctype read_element_;                   \
        memcpy(&read_element_, (from), sizeof(ctype)); \
        read_element_;                         \
    })

TUTTI_INLINE float widened(const enum tutti_type type, uint32_t code)
{
    switch (type) {
    case TUTTI_BFLOAT16: return tutti_bfloat16_widen(code);
    case TUTTI_FLOAT16: return tutti_small_widen(code, TUTTI_FORMAT_FLOAT16);
    case TUTTI_FLOAT8E4M3: return tutti_small_widen(code, TUTTI_FORMAT_E4M3);
    default: return tutti_small_widen(code, TUTTI_FORMAT_E5M2);
    }
}

typedef float f32;
typedef double f64;

#define VALUE_SIGNED(type, code, bits, at) {.s64 = READ(int##bits##_t, at)}
#define VALUE_UNSIGNED(type, code, bits, at) {.u64 = READ(uint##bits##_t, at)}
#define VALUE_FLOATING(type, code, bits, at) {.code = READ(code, at)}
#define VALUE_NARROW(type, code, bits, at) {.f32 = widened(type, READ(uint##bits##_t, at))}
#define VALUE_BOOLEAN(type, code, bits, at) {.u64 = READ(uint##bits##_t, at)}
#define READ_CASE(NAME, number, name, FAMILY, code, bits, ...) \
    case TUTTI_##NAME: return (union value)VALUE_##FAMILY(TUTTI_##NAME, code, bits, at);

TUTTI_INLINE union value read_value(const enum tutti_type type, const void *buffer, size_t i)
{
    const char *at = (const char *)buffer + i * tutti_type_size(type);

    switch (type) {
    TUTTI_TYPES(READ_CASE)
    default: return (union value){.u64 = 0};
    }
}

/* Returns the bits to store for `value`, in the low bytes. The caller copies the first bytes of the
 * result, which requires a little-endian processor, as the wire format does. */
TUTTI_INLINE uint64_t encode(const enum tutti_type type, union value value)
{
    switch (type) {
    case TUTTI_FLOAT64: {
        uint64_t bits;

        value.f64 = tutti_f64_quieted(value.f64);
        memcpy(&bits, &value.f64, sizeof(bits));
        return bits;
    }
    case TUTTI_FLOAT32: return tutti_f32_bits(tutti_f32_quieted(value.f32));
    case TUTTI_BFLOAT16: return tutti_bfloat16_narrow(value.f32);
    case TUTTI_FLOAT16: return tutti_small_narrow(value.f32, TUTTI_FORMAT_FLOAT16);
    case TUTTI_FLOAT8E4M3: return tutti_small_narrow(value.f32, TUTTI_FORMAT_E4M3);
    case TUTTI_FLOAT8E5M2: return tutti_small_narrow(value.f32, TUTTI_FORMAT_E5M2);
    default: return value.u64;
    }
}

TUTTI_INLINE void write_value(const enum tutti_type type, void *buffer, size_t i, union value value)
{
    const uint64_t bits = encode(type, value);

    memcpy((char *)buffer + i * tutti_type_size(type), &bits, tutti_type_size(type));
}

/* Wraps an integer around into its type's range. */
TUTTI_INLINE union value wrapped(const enum tutti_type type, uint64_t bits)
{
    return read_value(type, &bits, 0);
}

TUTTI_INLINE bool is_signed(const enum tutti_type type)
{
    return tutti_type_family(type) == TUTTI_SIGNED;
}

#define COMBINE_FLOATS(name, op, a, b)         \
    ((op) == TUTTI_SUM    ? (a) + (b)          \
     : (op) == TUTTI_PROD ? (a) * (b)          \
     : (op) == TUTTI_MAX  ? tutti_##name##_max(a, b) \
                          : tutti_##name##_min(a, b))

/* Combines two values by a bitwise or logical operation. */
TUTTI_INLINE union value combine_bits(const enum tutti_op op, union value a, union value b)
{
    const bool a_is_true = a.u64 != 0, b_is_true = b.u64 != 0;

    switch (op) {
    case TUTTI_BAND: return (union value){.u64 = a.u64 & b.u64};
    case TUTTI_BOR: return (union value){.u64 = a.u64 | b.u64};
    case TUTTI_BXOR: return (union value){.u64 = a.u64 ^ b.u64};
    case TUTTI_LAND: return (union value){.u64 = a_is_true && b_is_true};
    case TUTTI_LOR: return (union value){.u64 = a_is_true || b_is_true};
    default: return (union value){.u64 = a_is_true != b_is_true};
    }
}

TUTTI_INLINE union value combine(const enum tutti_type type, const enum tutti_op op, union value a,
                                 union value b)
{
    if (type == TUTTI_FLOAT64)
        return (union value){.f64 = COMBINE_FLOATS(f64, op, a.f64, b.f64)};
    if (tutti_type_is_floating(type))
        return (union value){.f32 = COMBINE_FLOATS(f32, op, a.f32, b.f32)};
    if (type == TUTTI_BOOL)
        return combine_bits(tutti_op_on_bool(op), a, b);
    if (op >= TUTTI_BAND)
        return combine_bits(op, a, b);
    if (op == TUTTI_SUM)
        return wrapped(type, a.u64 + b.u64);
    if (op == TUTTI_PROD)
        return wrapped(type, a.u64 * b.u64);

    const bool is_less = is_signed(type) ? b.s64 < a.s64 : b.u64 < a.u64;
    const bool is_more = is_signed(type) ? b.s64 > a.s64 : b.u64 > a.u64;

    return (op == TUTTI_MAX ? is_more : is_less) ? b : a;
}

TUTTI_INLINE union value scaled(const enum tutti_type type, union value value,
                                struct tutti_scale scale)
{
    if (type == TUTTI_FLOAT64)
        value.f64 *= scale.multiply;
    else if (tutti_type_is_floating(type))
        value.f32 *= (float)scale.multiply;
    else if (is_signed(type))
        value.s64 /= scale.divide;
    else
        value.u64 /= (uint64_t)scale.divide;
    return value;
}

/* Reduces all elements, one after the other. `type` and `op` are constants. */
TUTTI_INLINE void reduce_elements(const struct tutti_reduce_args *args, const enum tutti_type type,
                                  const enum tutti_op op)
{
    for (size_t i = 0; i < args->count; i++) {
        union value value = read_value(type, args->srcs[0], i);

        for (uint32_t k = 1; k < args->nsrcs; k++)
            value = combine(type, op, value, read_value(type, args->srcs[k], i));
        value = scaled(type, value, args->scale);
        for (uint32_t k = 0; k < args->ndsts; k++)
            write_value(type, args->dsts[k], i, value);
    }
}

/* Calls reduce_elements with the operation as a constant. */
TUTTI_INLINE void reduce_type(const struct tutti_reduce_args *args, const enum tutti_type type)
{
#define OP_CASE(NAME, name) \
    case TUTTI_##NAME: \
        if (tutti_op_takes(TUTTI_##NAME, type)) { \
            reduce_elements(args, type, TUTTI_##NAME); \
            return; \
        } \
        break;

    switch (args->op) {
    TUTTI_OPS(OP_CASE)
    default: break;
    }
    tutti_assert(!"a reduction that the type has");
}

void tutti_cpu_plain_reduce(const struct tutti_reduce_args *args)
{
#define REDUCE_CASE(NAME, ...) \
    case TUTTI_##NAME: reduce_type(args, TUTTI_##NAME); return;

    switch (args->type) {
    TUTTI_TYPES(REDUCE_CASE)
    default: tutti_assert(!"an element type");
    }
}

void tutti_cpu_plain_widen(enum tutti_type type, float *dst, const void *src, size_t count,
                           float multiply)
{
    for (size_t i = 0; i < count; i++) {
        union value value = read_value(type, src, i);

        value.f32 *= multiply;
        write_value(TUTTI_FLOAT32, dst, i, value);
    }
}

void tutti_cpu_plain_narrow(enum tutti_type type, void *dst, const float *src, size_t count,
                            float multiply)
{
    for (size_t i = 0; i < count; i++) {
        union value value = read_value(TUTTI_FLOAT32, src, i);

        value.f32 *= multiply;
        write_value(type, dst, i, value);
    }
}

TUTTI_INLINE void premultiply_elements(void *dst, const void *src, size_t count,
                                       const void *scalar, const enum tutti_type type)
{
    const union value factor = read_value(type, scalar, 0);

    for (size_t i = 0; i < count; i++)
        write_value(type, dst, i, combine(type, TUTTI_PROD, read_value(type, src, i), factor));
}

void tutti_cpu_plain_premultiply(enum tutti_type type, void *dst, const void *src, size_t count,
                                 const void *scalar)
{
#define PREMULTIPLY_CASE(NAME, ...) \
    case TUTTI_##NAME: premultiply_elements(dst, src, count, scalar, TUTTI_##NAME); return;

    switch (type) {
    TUTTI_TYPES(PREMULTIPLY_CASE)
    default: tutti_assert(!"an element type");
    }
}

const struct tutti_cpu_kernels tutti_cpu_plain = {.name = "plain", .is_reference = true};
