/* SPDX-License-Identifier: Apache-2.0
 * The kernels of all instruction sets, from one source. One file per instruction set includes this
 * header and is compiled with that set's flags. The header has no include guard, because it defines
 * functions and a table.
 *
 * The loops are plain C that the compiler vectorizes. Sums and products of narrow floats are in
 * narrow.h, which must be included first. The including file also defines, before the inclusion:
 *
 *   KERNEL_TABLE, KERNEL_NAME         the table's symbol and its name
 *   HAS_STREAM                        1 if it defines stream_line, else 0
 *   stream_line(dst, src)             64 bytes by non-temporal stores to a 64-byte-aligned dst
 *
 * Everything here but the table is static, so two object files made of this header share nothing.
 */
#include "device/arithmetic/convert.h"
#include "device/arithmetic/order.h"

/* A destination may equal a source but not overlap it otherwise, so no iteration of a loop depends
 * on another. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Element types for access to buffers, which the caller may have accessed as any other type. */
#define MAY_ALIAS __attribute__((may_alias))
typedef int8_t s8 MAY_ALIAS;
typedef uint8_t u8 MAY_ALIAS;
typedef uint16_t u16 MAY_ALIAS;
typedef int16_t s16 MAY_ALIAS;
typedef int32_t s32 MAY_ALIAS;
typedef uint32_t u32 MAY_ALIAS;
typedef int64_t s64 MAY_ALIAS;
typedef uint64_t u64 MAY_ALIAS;
typedef float f32 MAY_ALIAS;
typedef double f64 MAY_ALIAS;

/* ---- combining two accumulators ------------------------------------------------ */

#define DEFINE_COMBINE(name, type, expression)            \
    TUTTI_INLINE type name(const type a, const type b)    \
    {                                                     \
        return (type)(expression);                        \
    }
#define DEFINE_COMBINE_UNSIGNED(type)              \
    DEFINE_COMBINE(type##_sum, type, a + b)        \
    DEFINE_COMBINE(type##_prod, type, a * b)       \
    DEFINE_COMBINE_ORDER(type)
#define DEFINE_COMBINE_ORDER(type)                 \
    DEFINE_COMBINE(type##_max, type, b > a ? b : a) \
    DEFINE_COMBINE(type##_min, type, b < a ? b : a)
#define DEFINE_COMBINE_FLOAT(type)                                              \
    DEFINE_COMBINE(type##_sum, type, a + b)                                     \
    DEFINE_COMBINE(type##_prod, type, a * b)
/* `first` and `second` have different bits only if a and b are zeros of different signs, or if one
 * is NaN. For zeros a bitwise `and` (max) or `or` (min) gives the right sign. For NaN the result is
 * all ones, which is a NaN too; the `finish` step makes it canonical. */
#define DEFINE_COMBINE_FLOAT_ORDER(type, bits_type)                                             \
    DEFINE_COMBINE_FLOAT_BITS(type, bits_type, max, >, &)                                       \
    DEFINE_COMBINE_FLOAT_BITS(type, bits_type, min, <, |)
#define DEFINE_COMBINE_FLOAT_BITS(type, bits_type, op, beats, merge)                            \
    TUTTI_INLINE type type##_##op(const type a, const type b)                                   \
    {                                                                                           \
        const type first = a beats b ? a : b, second = b beats a ? b : a;                       \
        bits_type first_bits, second_bits;                                                      \
        type result;                                                                            \
                                                                                                \
        memcpy(&first_bits, &first, sizeof(first));                                             \
        memcpy(&second_bits, &second, sizeof(second));                                          \
        first_bits = (first_bits merge second_bits) | -(bits_type)__builtin_isunordered(a, b);  \
        memcpy(&result, &first_bits, sizeof(result));                                           \
        return result;                                                                          \
    }

DEFINE_COMBINE_UNSIGNED(u8)
DEFINE_COMBINE_UNSIGNED(u32)
DEFINE_COMBINE_UNSIGNED(u64)
DEFINE_COMBINE_ORDER(s8)
DEFINE_COMBINE_ORDER(s16)
DEFINE_COMBINE_ORDER(s32)
DEFINE_COMBINE_ORDER(s64)
DEFINE_COMBINE_FLOAT(f32)
DEFINE_COMBINE_FLOAT(f64)
DEFINE_COMBINE_FLOAT_ORDER(f32, uint32_t)
DEFINE_COMBINE_FLOAT_ORDER(f64, uint64_t)
/* ---- into and out of accumulators ------------------------------------------------ */

TUTTI_INLINE float f32_finish(const float sum, const double multiply)
{
    return tutti_f32_quieted(sum * (float)multiply);
}

TUTTI_INLINE double f64_finish(const double sum, const double multiply)
{
    return tutti_f64_quieted(sum * multiply);
}

/* Minima and maxima of narrow floats are computed on integer keys (order.h). */
#define DEFINE_NARROW_ORDER_FINISH(type, bits_type, op)                                         \
    TUTTI_INLINE bits_type type##_##op##_finish(const bits_type key, const double multiply)     \
    {                                                                                           \
        (void)multiply;                                                                         \
        return tutti_##type##_canonical(tutti_##type##_##op##_unkeyed(key), key);               \
    }
#define DEFINE_NARROW_ORDER_FINISHES(type, bits_type)                                           \
    DEFINE_NARROW_ORDER_FINISH(type, bits_type, max)                                            \
    DEFINE_NARROW_ORDER_FINISH(type, bits_type, min)
DEFINE_NARROW_ORDER_FINISHES(bf16, int16_t)
DEFINE_NARROW_ORDER_FINISHES(f16, int16_t)
DEFINE_NARROW_ORDER_FINISHES(e4m3, int8_t)
DEFINE_NARROW_ORDER_FINISHES(e5m2, int8_t)

#define AS_IS(value) (value)
#define UNSCALED(value, multiply) ((void)(multiply), (value))

/* ---- reducing -------------------------------------------------------------------- */

/* `nsrcs` is a compile-time constant, so the conditions vanish and the pointers stay in
 * registers. */
#define DEFINE_REDUCE_BODY(name, unit, sum_type, enter, combine, finish)                        \
    TUTTI_INLINE void name##_elements(void *to, const void *const *srcs, size_t count,          \
                                      const double multiply, const unsigned nsrcs)              \
    {                                                                                           \
        const unit *s0 = srcs[0], *s1 = srcs[1];                                                \
        const unit *s2 = nsrcs > 2 ? srcs[2] : s1, *s3 = nsrcs > 3 ? srcs[3] : s1;              \
        const unit *s4 = nsrcs > 4 ? srcs[4] : s1, *s5 = nsrcs > 4 ? srcs[5] : s1;              \
        const unit *s6 = nsrcs > 4 ? srcs[6] : s1, *s7 = nsrcs > 4 ? srcs[7] : s1;              \
        unit *dst = to;                                                                         \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++) {                                                    \
            sum_type sum = combine(enter(s0[i]), enter(s1[i]));                                 \
                                                                                                \
            if (nsrcs > 2)                                                                      \
                sum = combine(sum, enter(s2[i]));                                               \
            if (nsrcs > 3)                                                                      \
                sum = combine(sum, enter(s3[i]));                                               \
            if (nsrcs > 4) {                                                                    \
                sum = combine(sum, enter(s4[i]));                                               \
                sum = combine(sum, enter(s5[i]));                                               \
                sum = combine(sum, enter(s6[i]));                                               \
                sum = combine(sum, enter(s7[i]));                                               \
            }                                                                                   \
            dst[i] = finish(sum, multiply);                                                     \
        }                                                                                       \
    }

#define DEFINE_REDUCE_GROUP(name, nsrcs)                                                        \
    static void name##_##nsrcs(void *dst, const void *const *srcs, size_t count,                \
                               double multiply)                                                 \
    {                                                                                           \
        name##_elements(dst, srcs, count, multiply, nsrcs);                                     \
    }

#define DEFINE_REDUCE(name, unit, sum_type, enter, combine, finish)                             \
    DEFINE_REDUCE_BODY(reduce_##name, unit, sum_type, enter, combine, finish)                   \
    DEFINE_REDUCE_GROUP(reduce_##name, 2)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 3)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 4)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 8)

#define DEFINE_REDUCE_MODULAR(type, sum_type, finish)                                           \
    DEFINE_REDUCE(type##_sum, type, sum_type, AS_IS, type##_sum, finish)                        \
    DEFINE_REDUCE(type##_prod, type, sum_type, AS_IS, type##_prod, finish)
#define DEFINE_REDUCE_ORDER(type, sum_type, finish)                                             \
    DEFINE_REDUCE(type##_max, type, sum_type, AS_IS, type##_max, finish)                        \
    DEFINE_REDUCE(type##_min, type, sum_type, AS_IS, type##_min, finish)
#define DEFINE_REDUCE_NARROW_ORDER(type, unit)                                                  \
    DEFINE_REDUCE(type##_max, unit, unit, tutti_##type##_max_key, unit##_max, type##_max_finish) \
    DEFINE_REDUCE(type##_min, unit, unit, tutti_##type##_min_key, unit##_max, type##_min_finish)

DEFINE_REDUCE_MODULAR(u8, u8, UNSCALED)
DEFINE_REDUCE_MODULAR(u32, u32, UNSCALED)
DEFINE_REDUCE_MODULAR(u64, u64, UNSCALED)
DEFINE_REDUCE_ORDER(u8, u8, UNSCALED)
DEFINE_REDUCE_ORDER(u32, u32, UNSCALED)
DEFINE_REDUCE_ORDER(u64, u64, UNSCALED)
DEFINE_REDUCE_ORDER(s8, s8, UNSCALED)
DEFINE_REDUCE_ORDER(s32, s32, UNSCALED)
DEFINE_REDUCE_ORDER(s64, s64, UNSCALED)
DEFINE_REDUCE_MODULAR(f32, float, f32_finish)
DEFINE_REDUCE_MODULAR(f64, double, f64_finish)
DEFINE_REDUCE_ORDER(f32, float, f32_finish)
DEFINE_REDUCE_ORDER(f64, double, f64_finish)
DEFINE_REDUCE_NARROW_ORDER(bf16, s16)
DEFINE_REDUCE_NARROW_ORDER(f16, s16)
DEFINE_REDUCE_NARROW_ORDER(e4m3, s8)
DEFINE_REDUCE_NARROW_ORDER(e5m2, s8)

/* ---- converting -------------------------------------------------------------------- */

#define DEFINE_CONVERT(name, element, widen_one, narrow_one)                                    \
    static void widen_##name(float *to, const void *from, size_t count, float multiply)         \
    {                                                                                           \
        const element *src = from;                                                              \
        f32 *dst = to;                                                                          \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = tutti_f32_quieted(widen_one(src[i]) * multiply);                           \
    }                                                                                           \
    static void narrow_##name(void *to, const float *from, size_t count, float multiply)        \
    {                                                                                           \
        const f32 *src = from;                                                                  \
        element *dst = to;                                                                      \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = (element)narrow_one(src[i] * multiply);                                    \
    }

DEFINE_CONVERT(bf16, u16, tutti_bfloat16_widen, tutti_bfloat16_narrow)

/* ---- scaling ----------------------------------------------------------------------- */

#define DEFINE_MULTIPLY(element, finish)                                                        \
    static void multiply_##element(void *to, const void *from, size_t count, const void *by)    \
    {                                                                                           \
        const element *src = from;                                                              \
        element *dst = to, factor;                                                              \
                                                                                                \
        memcpy(&factor, by, sizeof(factor));                                                    \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = (element)finish(src[i] * factor);                                          \
    }

DEFINE_MULTIPLY(u8, AS_IS)
DEFINE_MULTIPLY(u32, AS_IS)
DEFINE_MULTIPLY(u64, AS_IS)
DEFINE_MULTIPLY(f32, tutti_f32_quieted)
DEFINE_MULTIPLY(f64, tutti_f64_quieted)

/* Values of at most 32 bits are divided in float64, which compilers vectorize. The truncated
 * quotient is exact, because a quotient that is not an integer differs from the next integer by at
 * least 1 / divisor. That is far more than the rounding error. */
#define DEFINE_DIVIDE(element, divisor_type)                                                    \
    static void divide_##element(void *to, const void *from, size_t count, int64_t divisor)     \
    {                                                                                           \
        const divisor_type by = (divisor_type)divisor;                                          \
        const element *src = from;                                                              \
        element *dst = to;                                                                      \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = (element)((divisor_type)src[i] / by);                                      \
    }

DEFINE_DIVIDE(s8, double)
DEFINE_DIVIDE(u8, double)
DEFINE_DIVIDE(s32, double)
DEFINE_DIVIDE(u32, double)
DEFINE_DIVIDE(s64, int64_t)
DEFINE_DIVIDE(u64, uint64_t)

/* ---- copying ------------------------------------------------------------------------- */

#if HAS_STREAM
static void stream_bytes(void *to, const void *from, size_t size_bytes)
{
    const size_t line = 64;
    const char *src = from;
    char *dst = to;
    size_t head = (size_t)(-(uintptr_t)dst % line);

    if (size_bytes < line + head) {
        memcpy(dst, src, size_bytes);
        return;
    }
    memcpy(dst, src, head);
    /* An iteration copies four lines, so that there are fewer instructions per line and more stores
     * in flight. */
    for (; size_bytes - head >= 4 * line; head += 4 * line) {
        stream_line(dst + head, src + head);
        stream_line(dst + head + line, src + head + line);
        stream_line(dst + head + 2 * line, src + head + 2 * line);
        stream_line(dst + head + 3 * line, src + head + 3 * line);
    }
    for (; size_bytes - head >= line; head += line)
        stream_line(dst + head, src + head);
    memcpy(dst + head, src + head, size_bytes - head);
}
#endif

/* ---- the table ------------------------------------------------------------------------ */

#define GROUPS(name) {reduce_##name##_2, reduce_##name##_3, reduce_##name##_4, reduce_##name##_8}
#define OPS(modular, ordered)                                                                   \
    {                                                                                           \
        [TUTTI_SUM] = GROUPS(modular##_sum), [TUTTI_PROD] = GROUPS(modular##_prod),             \
        [TUTTI_MAX] = GROUPS(ordered##_max), [TUTTI_MIN] = GROUPS(ordered##_min),               \
    }
#define MANY(name)                                                                              \
    {[TUTTI_SUM] = reduce_##name##_sum_many, [TUTTI_PROD] = reduce_##name##_prod_many}

const struct tutti_cpu_kernels KERNEL_TABLE = {
    .name = KERNEL_NAME,
    .reduce = {
        [TUTTI_INT8] = OPS(u8, s8), [TUTTI_UINT8] = OPS(u8, u8),
        [TUTTI_INT32] = OPS(u32, s32), [TUTTI_UINT32] = OPS(u32, u32),
        [TUTTI_INT64] = OPS(u64, s64), [TUTTI_UINT64] = OPS(u64, u64),
        [TUTTI_FLOAT16] = OPS(f16, f16), [TUTTI_BFLOAT16] = OPS(bf16, bf16),
        [TUTTI_FLOAT8E4M3] = OPS(e4m3, e4m3), [TUTTI_FLOAT8E5M2] = OPS(e5m2, e5m2),
        [TUTTI_FLOAT32] = OPS(f32, f32), [TUTTI_FLOAT64] = OPS(f64, f64),
    },
    .reduce_many = {
        [TUTTI_FLOAT16] = MANY(f16), [TUTTI_BFLOAT16] = MANY(bf16),
        [TUTTI_FLOAT8E4M3] = MANY(e4m3), [TUTTI_FLOAT8E5M2] = MANY(e5m2),
    },
    .widen = {
        [TUTTI_FLOAT16] = widen_f16, [TUTTI_BFLOAT16] = widen_bf16,
        [TUTTI_FLOAT8E4M3] = widen_e4m3, [TUTTI_FLOAT8E5M2] = widen_e5m2,
    },
    .narrow = {
        [TUTTI_FLOAT16] = narrow_f16, [TUTTI_BFLOAT16] = narrow_bf16,
        [TUTTI_FLOAT8E4M3] = narrow_e4m3, [TUTTI_FLOAT8E5M2] = narrow_e5m2,
    },
    .multiply = {
        [TUTTI_INT8] = multiply_u8, [TUTTI_UINT8] = multiply_u8,
        [TUTTI_INT32] = multiply_u32, [TUTTI_UINT32] = multiply_u32,
        [TUTTI_INT64] = multiply_u64, [TUTTI_UINT64] = multiply_u64,
        [TUTTI_FLOAT32] = multiply_f32, [TUTTI_FLOAT64] = multiply_f64,
    },
    .divide = {
        [TUTTI_INT8] = divide_s8, [TUTTI_UINT8] = divide_u8,
        [TUTTI_INT32] = divide_s32, [TUTTI_UINT32] = divide_u32,
        [TUTTI_INT64] = divide_s64, [TUTTI_UINT64] = divide_u64,
    },
#if HAS_STREAM
    .stream = stream_bytes,
#endif
};
