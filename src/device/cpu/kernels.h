/* SPDX-License-Identifier: Apache-2.0
 * The kernels of all instruction sets, written once: included by one file per instruction set,
 * which is compiled with that set's flags. No guard.
 *
 * The loops are plain C that the compiler vectorises; what it must be told comes from the
 * including file, which defines before the inclusion:
 *
 *   KERNEL_TABLE, KERNEL_NAME         the table's symbol and its name
 *   HALF_LANES                        float16 elements that are converted at a time
 *   half_unit, half_floats            vector types for them, before and after widening;
 *                                     half_unit is aligned to 2 bytes and may alias
 *   half_ints                         the type of comparing two half_floats
 *   half_widen, half_narrow           exact; nearest even with any NaN for NaN
 *   stream_line(dst, src)             64 bytes by non-temporal stores to a 64-byte-aligned dst;
 *                                     only if HAS_STREAM is 1
 *
 * Everything here is static: two objects made of this header share nothing.
 */
#include "device/cpu/convert.h"

/* Exactly in place is allowed, so loops carry nothing from one iteration to another. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Element types as they lie in buffers, which have been who knows what to the caller. */
#define MAY_ALIAS __attribute__((may_alias))
typedef int8_t s8 MAY_ALIAS;
typedef uint8_t u8 MAY_ALIAS;
typedef uint16_t u16 MAY_ALIAS;
typedef int32_t s32 MAY_ALIAS;
typedef uint32_t u32 MAY_ALIAS;
typedef int64_t s64 MAY_ALIAS;
typedef uint64_t u64 MAY_ALIAS;
typedef float f32 MAY_ALIAS;
typedef double f64 MAY_ALIAS;

/* Two bfloat16 in one word: shifting and masking widens them without moving lanes about, and
 * rounding puts them back the same way. */
typedef uint32_t bf16 __attribute__((may_alias, aligned(2)));
struct float_pair {
    float low, high;
};

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
/* A NaN wins in either place: `a` when it is one, `b` because comparing it is never true. Any NaN
 * will do, since the last step makes it canonical. */
#define DEFINE_COMBINE_FLOAT(type)                                              \
    DEFINE_COMBINE(type##_sum, type, a + b)                                     \
    DEFINE_COMBINE(type##_prod, type, a * b)                                    \
    DEFINE_COMBINE(type##_max, type, type##_select((a == a) & !(b <= a), b, a)) \
    DEFINE_COMBINE(type##_min, type, type##_select((a == a) & !(b >= a), b, a))
#define DEFINE_COMBINE_PAIR(op)                                                          \
    TUTTI_INLINE struct float_pair bf16_##op(const struct float_pair a,                  \
                                             const struct float_pair b)                  \
    {                                                                                    \
        return (struct float_pair){f32_##op(a.low, b.low), f32_##op(a.high, b.high)};    \
    }

/* Choosing by bits: a chain of `?:` would become jumps, which cannot be vectorised. */
#define DEFINE_SELECT(type, bits_type)                                                  \
    TUTTI_INLINE type type##_select(const bool condition, const type yes, const type no) \
    {                                                                                    \
        const bits_type mask = -(bits_type)condition;                                    \
        bits_type yes_bits, no_bits;                                                     \
        type chosen;                                                                     \
                                                                                         \
        memcpy(&yes_bits, &yes, sizeof(yes));                                            \
        memcpy(&no_bits, &no, sizeof(no));                                               \
        yes_bits = (yes_bits & mask) | (no_bits & ~mask);                                \
        memcpy(&chosen, &yes_bits, sizeof(chosen));                                      \
        return chosen;                                                                   \
    }

DEFINE_SELECT(f32, uint32_t)
DEFINE_SELECT(f64, uint64_t)
DEFINE_COMBINE_UNSIGNED(u8)
DEFINE_COMBINE_UNSIGNED(u32)
DEFINE_COMBINE_UNSIGNED(u64)
DEFINE_COMBINE_ORDER(s8)
DEFINE_COMBINE_ORDER(s32)
DEFINE_COMBINE_ORDER(s64)
DEFINE_COMBINE_FLOAT(f32)
DEFINE_COMBINE_FLOAT(f64)
DEFINE_COMBINE_PAIR(sum)
DEFINE_COMBINE_PAIR(prod)
DEFINE_COMBINE_PAIR(max)
DEFINE_COMBINE_PAIR(min)

TUTTI_INLINE half_floats half_select(const half_ints mask, const half_floats yes,
                                     const half_floats no)
{
    return (half_floats)((mask & (half_ints)yes) | (~mask & (half_ints)no));
}

TUTTI_INLINE half_floats f16_sum(const half_floats a, const half_floats b)
{
    return a + b;
}

TUTTI_INLINE half_floats f16_prod(const half_floats a, const half_floats b)
{
    return a * b;
}

TUTTI_INLINE half_floats f16_max(const half_floats a, const half_floats b)
{
    return half_select((a == a) & ~(b <= a), b, a);
}

TUTTI_INLINE half_floats f16_min(const half_floats a, const half_floats b)
{
    return half_select((a == a) & ~(b >= a), b, a);
}

/* ---- into and out of accumulators ------------------------------------------------ */

TUTTI_INLINE float f32_finish(const float sum, const double multiply)
{
    return tutti_f32_quieted(sum * (float)multiply);
}

TUTTI_INLINE double f64_finish(const double sum, const double multiply)
{
    return tutti_f64_quieted(sum * multiply);
}

TUTTI_INLINE struct float_pair bf16_widen(const uint32_t both)
{
    return (struct float_pair){tutti_f32_from_bits(both << 16),
                               tutti_f32_from_bits(both & 0xffff0000u)};
}

TUTTI_INLINE uint32_t bf16_finish(const struct float_pair sum, const double multiply)
{
    return (tutti_bfloat16_round(sum.low * (float)multiply) >> 16) |
           (tutti_bfloat16_round(sum.high * (float)multiply) & 0xffff0000u);
}

TUTTI_INLINE half_floats half_quieted(const half_floats value)
{
    return half_select(value != value, (half_floats){0} + __builtin_nanf(""), value);
}

TUTTI_INLINE half_unit f16_finish(const half_floats sum, const double multiply)
{
    return half_narrow(half_quieted(sum * (float)multiply));
}

#define AS_IS(value) (value)
#define UNSCALED(value, multiply) ((void)(multiply), (value))

/* ---- reducing -------------------------------------------------------------------- */

/* Finish the elements that do not fill a unit of `lanes` elements, in units padded with zeros. */
static __attribute__((noinline)) void reduce_tail(tutti_reduce_kernel *kernel, unsigned nsrcs,
                                                  size_t lanes, void *dst,
                                                  const void *const *srcs, size_t at_bytes,
                                                  size_t size_bytes, double multiply)
{
    char padded[TUTTI_GROUP_MAX][32], result[32];
    const void *members[TUTTI_GROUP_MAX];

    for (unsigned k = 0; k < nsrcs; k++) {
        memset(padded[k], 0, sizeof(padded[k]));
        memcpy(padded[k], (const char *)srcs[k] + at_bytes, size_bytes);
        members[k] = padded[k];
    }
    kernel(result, members, lanes, multiply);
    memcpy((char *)dst + at_bytes, result, size_bytes);
}

/* `nsrcs` is a constant, so the conditions vanish and the pointers stay in registers. */
#define DEFINE_REDUCE_BODY(name, unit, sum_type, widen, combine, finish)                        \
    TUTTI_INLINE void name##_units(void *to, const void *const *srcs, size_t count,             \
                                   const double multiply, const unsigned nsrcs)                 \
    {                                                                                           \
        const unit *s0 = srcs[0], *s1 = srcs[1];                                                \
        const unit *s2 = nsrcs > 2 ? srcs[2] : s1, *s3 = nsrcs > 3 ? srcs[3] : s1;              \
        const unit *s4 = nsrcs > 4 ? srcs[4] : s1, *s5 = nsrcs > 4 ? srcs[5] : s1;              \
        const unit *s6 = nsrcs > 4 ? srcs[6] : s1, *s7 = nsrcs > 4 ? srcs[7] : s1;              \
        unit *dst = to;                                                                         \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++) {                                                    \
            sum_type sum = combine(widen(s0[i]), widen(s1[i]));                                 \
                                                                                                \
            if (nsrcs > 2)                                                                      \
                sum = combine(sum, widen(s2[i]));                                               \
            if (nsrcs > 3)                                                                      \
                sum = combine(sum, widen(s3[i]));                                               \
            if (nsrcs > 4) {                                                                    \
                sum = combine(sum, widen(s4[i]));                                               \
                sum = combine(sum, widen(s5[i]));                                               \
                sum = combine(sum, widen(s6[i]));                                               \
                sum = combine(sum, widen(s7[i]));                                               \
            }                                                                                   \
            dst[i] = finish(sum, multiply);                                                     \
        }                                                                                       \
    }

#define DEFINE_REDUCE_GROUP(name, lanes, element_bytes, nsrcs)                                  \
    static void name##_##nsrcs(void *dst, const void *const *srcs, size_t count,                \
                               double multiply)                                                 \
    {                                                                                           \
        name##_units(dst, srcs, count / (lanes), multiply, nsrcs);                              \
        if (count % (lanes) != 0)                                                               \
            reduce_tail(name##_##nsrcs, nsrcs, lanes, dst, srcs,                                \
                        count / (lanes) * (lanes) * (element_bytes),                            \
                        count % (lanes) * (element_bytes), multiply);                           \
    }

#define DEFINE_REDUCE(name, unit, lanes, element_bytes, sum_type, widen, finish)                \
    DEFINE_REDUCE_BODY(reduce_##name, unit, sum_type, widen, name, finish)                      \
    DEFINE_REDUCE_GROUP(reduce_##name, lanes, element_bytes, 2)                                 \
    DEFINE_REDUCE_GROUP(reduce_##name, lanes, element_bytes, 3)                                 \
    DEFINE_REDUCE_GROUP(reduce_##name, lanes, element_bytes, 4)                                 \
    DEFINE_REDUCE_GROUP(reduce_##name, lanes, element_bytes, 8)

#define DEFINE_REDUCE_ORDER(type, unit, lanes, element_bytes, sum_type, widen, finish)          \
    DEFINE_REDUCE(type##_max, unit, lanes, element_bytes, sum_type, widen, finish)              \
    DEFINE_REDUCE(type##_min, unit, lanes, element_bytes, sum_type, widen, finish)
#define DEFINE_REDUCE_ALL(type, unit, lanes, element_bytes, sum_type, widen, finish)            \
    DEFINE_REDUCE(type##_sum, unit, lanes, element_bytes, sum_type, widen, finish)              \
    DEFINE_REDUCE(type##_prod, unit, lanes, element_bytes, sum_type, widen, finish)             \
    DEFINE_REDUCE_ORDER(type, unit, lanes, element_bytes, sum_type, widen, finish)

DEFINE_REDUCE_ALL(u8, u8, 1, 1, u8, AS_IS, UNSCALED)
DEFINE_REDUCE_ALL(u32, u32, 1, 4, u32, AS_IS, UNSCALED)
DEFINE_REDUCE_ALL(u64, u64, 1, 8, u64, AS_IS, UNSCALED)
DEFINE_REDUCE_ORDER(s8, s8, 1, 1, s8, AS_IS, UNSCALED)
DEFINE_REDUCE_ORDER(s32, s32, 1, 4, s32, AS_IS, UNSCALED)
DEFINE_REDUCE_ORDER(s64, s64, 1, 8, s64, AS_IS, UNSCALED)
DEFINE_REDUCE_ALL(f32, f32, 1, 4, float, AS_IS, f32_finish)
DEFINE_REDUCE_ALL(f64, f64, 1, 8, double, AS_IS, f64_finish)
DEFINE_REDUCE_ALL(bf16, bf16, 2, 2, struct float_pair, bf16_widen, bf16_finish)
DEFINE_REDUCE_ALL(f16, half_unit, HALF_LANES, 2, half_floats, half_widen, f16_finish)

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

#define E4M3_WIDEN(code) tutti_small_widen(code, TUTTI_FORMAT_E4M3)
#define E4M3_NARROW(value) tutti_small_narrow(value, TUTTI_FORMAT_E4M3)
#define E5M2_WIDEN(code) tutti_small_widen(code, TUTTI_FORMAT_E5M2)
#define E5M2_NARROW(value) tutti_small_narrow(value, TUTTI_FORMAT_E5M2)

DEFINE_CONVERT(bf16, u16, tutti_bfloat16_widen, tutti_bfloat16_narrow)
DEFINE_CONVERT(e4m3, u8, E4M3_WIDEN, E4M3_NARROW)
DEFINE_CONVERT(e5m2, u8, E5M2_WIDEN, E5M2_NARROW)

static void widen_f16(float *dst, const void *src, size_t count, float multiply)
{
    const half_unit *units = src;
    size_t whole = count / HALF_LANES, rest = count % HALF_LANES;
    half_unit padded = {0};
    half_floats last;

    for (size_t i = 0; i < whole; i++) {
        half_floats wide = half_quieted(half_widen(units[i]) * multiply);

        memcpy(dst + i * HALF_LANES, &wide, sizeof(wide));
    }
    if (rest > 0) {
        memcpy(&padded, units + whole, rest * sizeof(uint16_t));
        last = half_quieted(half_widen(padded) * multiply);
        memcpy(dst + whole * HALF_LANES, &last, rest * sizeof(float));
    }
}

static void narrow_f16(void *dst, const float *src, size_t count, float multiply)
{
    half_unit *units = dst;
    size_t whole = count / HALF_LANES, rest = count % HALF_LANES;
    half_floats wide = {0};
    half_unit last;

    for (size_t i = 0; i < whole; i++) {
        memcpy(&wide, src + i * HALF_LANES, sizeof(wide));
        units[i] = f16_finish(wide, multiply);
    }
    if (rest > 0) {
        memcpy(&wide, src + whole * HALF_LANES, rest * sizeof(float));
        last = f16_finish(wide, multiply);
        memcpy(units + whole, &last, rest * sizeof(uint16_t));
    }
}

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

/* For values of at most 32 bits the quotient in float64 truncates to the right integer: one that
 * is not whole lies at least 1 / divisor from the next integer, far more than its rounding. */
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

const struct tutti_cpu_kernels KERNEL_TABLE = {
    .name = KERNEL_NAME,
    .reduce = {
        [TUTTI_INT8] = OPS(u8, s8), [TUTTI_UINT8] = OPS(u8, u8),
        [TUTTI_INT32] = OPS(u32, s32), [TUTTI_UINT32] = OPS(u32, u32),
        [TUTTI_INT64] = OPS(u64, s64), [TUTTI_UINT64] = OPS(u64, u64),
        [TUTTI_FLOAT16] = OPS(f16, f16), [TUTTI_BFLOAT16] = OPS(bf16, bf16),
        [TUTTI_FLOAT32] = OPS(f32, f32), [TUTTI_FLOAT64] = OPS(f64, f64),
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
