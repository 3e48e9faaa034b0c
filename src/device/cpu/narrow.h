/* SPDX-License-Identifier: Apache-2.0
 * Sums, products and conversions of the narrow floating types on vectors. Compilers do not
 * vectorize these kernels well by themselves. Like kernels.h, this header has no include guard.
 * Everything in it is static.
 *
 * The unit of work is a step, which is as many elements as fill two vectors of float32. NaN are
 * rare, so the common path has only one test for NaN per step. The including file defines, before
 * the inclusion:
 *
 *   floats                     a vector of float32; STEP is twice the number of its lanes
 *   ints, uints                vectors of as many int32_t and uint32_t
 *   words, bytes               vectors of STEP uint16_t and of STEP uint8_t
 *   struct wide                two floats, a and b: a step's accumulators
 *   wide_has_nan(wide)         true if any lane is NaN
 *   halves_widen(words)        float16 to float32, exactly; a has the first half of the elements
 *   halves_narrow(wide)        float32 to float16, to nearest, ties to even
 *   halves_narrow_odd(wide)    float32 to float16, rounded to odd: toward zero, with the last bit
 *                              set if that was inexact. Rounding the result again to fewer bits
 *                              gives the same as rounding once
 *   words_min(a, b)            the unsigned minimum of each pair of lanes
 *   words_of_bytes(bytes)      by sign extension
 *   bytes_of_words(words)      for words below 256
 *   HAS_PARTS                  1 if the file also defines the next four, else 0. They load and
 *                              store the first size_bytes > 0 bytes; a load sets the rest to 0
 *   words_load_part(src, size_bytes), bytes_load_part(src, size_bytes)
 *   words_store_part(dst, words, size_bytes), bytes_store_part(dst, bytes, size_bytes)
 */
#include "device/arithmetic/convert.h"

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll_count(8)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* ---- moving steps ------------------------------------------------------------------ */

#if !HAS_PARTS
/* A few moves of fixed size are faster than a call of memcpy. Needs size_bytes < 32. */
TUTTI_INLINE void copy_part(void *to, const void *from, size_t size_bytes)
{
    const char *src = from;
    char *dst = to;

#define MOVE(size)                                       \
    if (size_bytes & (size)) {                           \
        memcpy(dst, src, (size));                        \
        dst += (size);                                   \
        src += (size);                                   \
    }
    MOVE(16)
    MOVE(8)
    MOVE(4)
    MOVE(2)
    MOVE(1)
#undef MOVE
}

/* Returns the first min(size_bytes, 8) bytes, followed by zeros. They are assembled in a register
 * from overlapping loads, because a vector loaded from bytes that were just stored would wait for
 * the stores. */
TUTTI_INLINE uint64_t quad_load_part(const char *src, size_t size_bytes)
{
    uint64_t quad;
    uint32_t first, last;
    uint16_t head, tail;

    if (size_bytes >= 8) {
        memcpy(&quad, src, sizeof(quad));
        return quad;
    }
    if (size_bytes >= 4) {
        memcpy(&first, src, sizeof(first));
        memcpy(&last, src + size_bytes - sizeof(last), sizeof(last));
        return first | (uint64_t)last << (8 * (size_bytes - sizeof(last)));
    }
    if (size_bytes >= 2) {
        memcpy(&head, src, sizeof(head));
        memcpy(&tail, src + size_bytes - sizeof(tail), sizeof(tail));
        return head | (uint64_t)tail << (8 * (size_bytes - sizeof(tail)));
    }
    return size_bytes == 1 ? (uint8_t)*src : 0;
}
#endif

#define DEFINE_MOVES(unit)                                                               \
    TUTTI_INLINE unit unit##_load(const void *src)                                       \
    {                                                                                    \
        unit loaded;                                                                     \
                                                                                         \
        memcpy(&loaded, src, sizeof(loaded));                                            \
        return loaded;                                                                   \
    }
#define DEFINE_PART_MOVES(unit)                                                          \
    typedef uint64_t unit##_quads __attribute__((vector_size(sizeof(unit))));            \
    TUTTI_INLINE unit unit##_load_part(const void *src, size_t size_bytes)               \
    {                                                                                    \
        unit##_quads quads = {0};                                                        \
                                                                                         \
        if (size_bytes == sizeof(quads))                                                 \
            return unit##_load(src);                                                     \
        UNROLLED                                                                         \
        for (size_t i = 0; i < sizeof(quads) / 8; i++)                                   \
            if (size_bytes > 8 * i)                                                      \
                quads[i] = quad_load_part((const char *)src + 8 * i, size_bytes - 8 * i); \
        return (unit)quads;                                                              \
    }                                                                                    \
    TUTTI_INLINE void unit##_store_part(void *dst, const unit stored, size_t size_bytes) \
    {                                                                                    \
        if (size_bytes == sizeof(stored))                                                \
            memcpy(dst, &stored, sizeof(stored));                                        \
        else                                                                             \
            copy_part(dst, &stored, size_bytes);                                         \
    }

DEFINE_MOVES(words)
DEFINE_MOVES(bytes)
#if !HAS_PARTS
DEFINE_PART_MOVES(words)
DEFINE_PART_MOVES(bytes)
#endif

/* ---- into and out of float32 --------------------------------------------------------- */

TUTTI_INLINE floats floats_quieted(const floats values)
{
    const ints is_number = (ints)(values == values);
    const ints nan = (ints)((floats){0} + __builtin_nanf(""));

    return (floats)((is_number & (ints)values) | (~is_number & nan));
}

/* Returns the accumulators multiplied by `multiply`, with every NaN made canonical. */
TUTTI_INLINE struct wide wide_finished(struct wide sum, const float multiply)
{
    sum.a *= multiply;
    sum.b *= multiply;
    if (__builtin_expect(wide_has_nan(sum), 0)) {
        sum.a = floats_quieted(sum.a);
        sum.b = floats_quieted(sum.b);
    }
    return sum;
}

/* Each 32-bit lane holds two bfloat16. Shifting and masking widen them without moving data between
 * lanes, and narrowing puts them back the same way. So a has the even elements and b the odd
 * ones. */
TUTTI_INLINE struct wide bf16_widen(const words codes)
{
    return (struct wide){(floats)((ints)codes << 16), (floats)((ints)codes & -0x10000)};
}

TUTTI_INLINE words bf16_narrow(const struct wide values)
{
    const uints even = (uints)values.a, odd = (uints)values.b;

    return (words)(((even + ((even >> 16) & 1) + 0x7fff) >> 16) |
                   ((odd + ((odd >> 16) & 1) + 0x7fff) & 0xffff0000u));
}

TUTTI_INLINE struct wide f16_widen(const words codes)
{
    return halves_widen(codes);
}

TUTTI_INLINE words f16_narrow(const struct wide values)
{
    return halves_narrow(values);
}

/* E5M2 is the upper byte of a float16. */
TUTTI_INLINE struct wide e5m2_widen(const bytes codes)
{
    return halves_widen(words_of_bytes(codes) << 8);
}

TUTTI_INLINE bytes e5m2_narrow(const struct wide values)
{
    const words half = halves_narrow_odd(values);

    return bytes_of_words((half + ((half >> 8) & 1) + 0x7f) >> 8);
}

/* An E4M3 whose fields are shifted to their places in a float16 has 2^-8 of its value, subnormals
 * included. NaN is the only code whose increment carries into the next bit; setting that bit
 * completes the exponent of a float16's NaN. */
TUTTI_INLINE struct wide e4m3_scaled_widen(const bytes codes)
{
    const words moved = (words_of_bytes(codes) << 7) & 0xbf80;

    return halves_widen(moved | ((moved + 0x80) & 0x4000));
}

/* The inverse of e4m3_scaled_widen. 0x3f00 is the largest number, 448 * 2^-8. Adding 0x3ff carries
 * into bit 15 for NaN only. */
TUTTI_INLINE bytes e4m3_scaled_narrow(const struct wide values)
{
    const words half = halves_narrow_odd(values);
    const words size = half & 0x7fff;
    const words kept = words_min(size, (words){0} + 0x3f00);
    const words code = ((kept + ((kept >> 7) & 1) + 0x3f) >> 7) + ((size + 0x3ff) >> 15);

    return bytes_of_words(code | ((half & 0x8000) >> 8));
}

TUTTI_INLINE struct wide e4m3_widen(const bytes codes)
{
    const struct wide values = e4m3_scaled_widen(codes);

    return (struct wide){values.a * 0x1p8f, values.b * 0x1p8f};
}

TUTTI_INLINE bytes e4m3_narrow(const struct wide values)
{
    return e4m3_scaled_narrow((struct wide){values.a * 0x1p-8f, values.b * 0x1p-8f});
}

/* ---- reducing ------------------------------------------------------------------------ */

/* Defines the loop that adds or multiplies the sources, as `sign` says. The data of each source
 * start `at_bytes` into its buffer, and the result starts at `to`. Two steps at a time keep four
 * accumulators in flight, which hides the latency of additions if there are many sources. */
#define DEFINE_NARROW_REDUCE_BODY(name, type, unit, element_bytes, sign)                        \
    TUTTI_INLINE struct wide name##_add(struct wide sum, const struct wide next)                \
    {                                                                                           \
        sum.a = sum.a sign next.a;                                                              \
        sum.b = sum.b sign next.b;                                                              \
        return sum;                                                                             \
    }                                                                                           \
    TUTTI_INLINE void name##_steps(void *to, const void *const *from, const uint32_t nsrcs,     \
                                   size_t at_bytes, size_t count, const float multiply)         \
    {                                                                                           \
        const char *const *srcs = (const char *const *)from;                                    \
        size_t left = count * (element_bytes);                                                  \
        char *dst = to;                                                                         \
                                                                                                \
        for (; left >= 2 * sizeof(unit); left -= 2 * sizeof(unit)) {                            \
            struct wide one = type##_widen(unit##_load(srcs[0] + at_bytes));                    \
            struct wide two = type##_widen(unit##_load(srcs[0] + at_bytes + sizeof(unit)));     \
            unit result[2];                                                                     \
                                                                                                \
            UNROLLED                                                                            \
            for (uint32_t k = 1; k < nsrcs; k++) {                                              \
                const char *src = srcs[k] + at_bytes;                                           \
                                                                                                \
                one = name##_add(one, type##_widen(unit##_load(src)));                          \
                two = name##_add(two, type##_widen(unit##_load(src + sizeof(unit))));           \
            }                                                                                   \
            result[0] = type##_narrow(wide_finished(one, multiply));                            \
            result[1] = type##_narrow(wide_finished(two, multiply));                            \
            memcpy(dst, &result[0], sizeof(unit));                                              \
            memcpy(dst + sizeof(unit), &result[1], sizeof(unit));                               \
            at_bytes += 2 * sizeof(unit);                                                       \
            dst += 2 * sizeof(unit);                                                            \
        }                                                                                       \
        while (left > 0) {                                                                      \
            const size_t part = left < sizeof(unit) ? left : sizeof(unit);                      \
            struct wide sum = type##_widen(unit##_load_part(srcs[0] + at_bytes, part));         \
                                                                                                \
            for (uint32_t k = 1; k < nsrcs; k++)                                                \
                sum = name##_add(sum, type##_widen(unit##_load_part(srcs[k] + at_bytes, part))); \
            unit##_store_part(dst, type##_narrow(wide_finished(sum, multiply)), part);          \
            at_bytes += part;                                                                   \
            dst += part;                                                                        \
            left -= part;                                                                       \
        }                                                                                       \
    }

/* A local array of constant length stays in registers, and a multiplication by the constant 1
 * vanishes. */
#define DEFINE_NARROW_REDUCE_GROUP(name, nsrcs)                                                 \
    static void name##_##nsrcs(void *dst, const void *const *srcs, size_t count,                \
                               double multiply)                                                 \
    {                                                                                           \
        const void *from[nsrcs];                                                                \
                                                                                                \
        memcpy(from, srcs, sizeof(from));                                                       \
        if (multiply == 1.0)                                                                    \
            name##_steps(dst, from, nsrcs, 0, count, 1.0f);                                     \
        else                                                                                    \
            name##_steps(dst, from, nsrcs, 0, count, (float)multiply);                          \
    }

#define DEFINE_NARROW_REDUCE(name, type, unit, element_bytes, sign)                             \
    DEFINE_NARROW_REDUCE_BODY(name, type, unit, element_bytes, sign)                            \
    DEFINE_NARROW_REDUCE_GROUP(name, 2)                                                         \
    DEFINE_NARROW_REDUCE_GROUP(name, 3)                                                         \
    DEFINE_NARROW_REDUCE_GROUP(name, 4)                                                         \
    DEFINE_NARROW_REDUCE_GROUP(name, 8)                                                         \
    static void name##_many(void *dst, const void *const *srcs, uint32_t nsrcs,                 \
                            size_t at_bytes, size_t count, double multiply)                     \
    {                                                                                           \
        name##_steps(dst, srcs, nsrcs, at_bytes, count, (float)multiply);                       \
    }

/* E4M3 may be summed at 2^-8 of its value (sum_type e4m3_scaled). A factor that is a power of two
 * changes no rounding. A value that underflows only because of the factor would be rounded to zero
 * anyway. Products are not linear in this factor, so they are computed on the true values. */
#define DEFINE_NARROW_REDUCES(type, unit, element_bytes, sum_type)                              \
    DEFINE_NARROW_REDUCE(reduce_##type##_sum, sum_type, unit, element_bytes, +)                 \
    DEFINE_NARROW_REDUCE(reduce_##type##_prod, type, unit, element_bytes, *)

DEFINE_NARROW_REDUCES(bf16, words, 2, bf16)
DEFINE_NARROW_REDUCES(f16, words, 2, f16)
DEFINE_NARROW_REDUCES(e4m3, bytes, 1, e4m3_scaled)
DEFINE_NARROW_REDUCES(e5m2, bytes, 1, e5m2)

/* ---- converting ---------------------------------------------------------------------- */

/* These conversions are for types whose accumulators hold the elements in order, which are all but
 * bfloat16. */
#define DEFINE_NARROW_CONVERT(type, unit, element_bytes)                                        \
    static void widen_##type(float *dst, const void *from, size_t count, float multiply)        \
    {                                                                                           \
        const char *src = from;                                                                 \
                                                                                                \
        while (count > 0) {                                                                     \
            const size_t part = count < STEP ? count : STEP;                                    \
            const unit codes = unit##_load_part(src, part * (element_bytes));                   \
            const struct wide values = wide_finished(type##_widen(codes), multiply);            \
                                                                                                \
            if (part == STEP)                                                                   \
                memcpy(dst, &values, sizeof(values));                                           \
            else                                                                                \
                memcpy(dst, &values, part * sizeof(float));                                     \
            src += part * (element_bytes);                                                      \
            dst += part;                                                                        \
            count -= part;                                                                      \
        }                                                                                       \
    }                                                                                           \
    static void narrow_##type(void *to, const float *src, size_t count, float multiply)         \
    {                                                                                           \
        char *dst = to;                                                                         \
                                                                                                \
        while (count > 0) {                                                                     \
            const size_t part = count < STEP ? count : STEP;                                    \
            struct wide values = {{0}, {0}};                                                    \
                                                                                                \
            if (part == STEP)                                                                   \
                memcpy(&values, src, sizeof(values));                                           \
            else                                                                                \
                memcpy(&values, src, part * sizeof(float));                                     \
            unit##_store_part(dst, type##_narrow(wide_finished(values, multiply)),              \
                              part * (element_bytes));                                          \
            dst += part * (element_bytes);                                                      \
            src += part;                                                                        \
            count -= part;                                                                      \
        }                                                                                       \
    }

DEFINE_NARROW_CONVERT(f16, words, 2)
DEFINE_NARROW_CONVERT(e4m3, bytes, 1)
DEFINE_NARROW_CONVERT(e5m2, bytes, 1)
