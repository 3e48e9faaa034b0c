/* SPDX-License-Identifier: Apache-2.0
 * The kernels of all instruction sets, from one source. One file per instruction set includes this
 * header and is compiled with that set's flags. The header has no include guard, because it defines
 * functions and a table.
 *
 * The loops are plain C that the compiler vectorizes. Narrow floats are those of 8 and 16 bits.
 * Their sums and products, and most of their conversions, are in narrow.h, which must be included
 * first. The including file also defines, before the inclusion:
 *
 *   KERNEL_TABLE, KERNEL_NAME         the table's symbol and its name
 *   HAS_STREAM                        1 if it defines stream_line, else 0
 *   stream_line(dst, src)             64 bytes by non-temporal stores to a 64-byte-aligned dst
 *
 * Everything here but the table is static, so two object files made of this header share nothing.
 *
 * Macros define one function per kernel, and the table at the end refers to the functions by name.
 * In the names, CODE is the code of an element type in TUTTI_TYPES (base/types.h): s8 to s64 for
 * signed integers, u8 to u64 for unsigned ones, f32, f64, bf16, f16, e4m3 and e5m2. OP is an
 * operation (sum, prod, max, ...), and N is the number of sources: 2, 3, 4 or 8.
 *
 *   CODE_OP(a, b)               combines two values
 *   reduce_CODE_OP_elements     the loop over the elements, for a constant number of sources
 *   reduce_CODE_OP_N            the kernel, which is this loop for N sources
 *   widen_CODE, narrow_CODE     convert to float32 and from float32
 *   multiply_CODE, divide_CODE  scale elements
 *
 * Types share kernels where the bits of the results are the same:
 *
 *  - Sums, products and multiplications of signed integers are those of unsigned ones, because
 *    integers wrap around.
 *  - Logical operations of signed integers are those of unsigned ones, too.
 *  - Bitwise operations depend only on the width of the elements: reduce_wBITS_OP_N.
 *  - All operations of bool are logical operations of uint8.
 */
#include "device/arithmetic/convert.h"
#include "device/arithmetic/order.h"

/* Stands before a loop whose iterations are independent of each other, so that the compiler
 * vectorizes the loop without a test for overlaps. They are, because a destination may equal a
 * source but not overlap it otherwise. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Element types for access to buffers, which the caller may have accessed as any other type. Their
 * names are the codes of the types, so that macros can form them. bits64 is 8 bytes of elements of
 * any type, at any alignment. */
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
typedef uint64_t bits64 __attribute__((may_alias, aligned(1)));

/* ---- combining two values -------------------------------------------------------
 * The values are accumulators: intermediate results of a reduction. */

/* Defines the function `name`, whose result is an expression of its parameters a and b. */
#define DEFINE_COMBINE(name, type, expression)            \
    TUTTI_INLINE type name(const type a, const type b)    \
    {                                                     \
        return (type)(expression);                        \
    }
#define DEFINE_COMBINE_ORDER(type)                 \
    DEFINE_COMBINE(type##_max, type, b > a ? b : a) \
    DEFINE_COMBINE(type##_min, type, b < a ? b : a)
/* The factor 1u makes the product of 16-bit values one of unsigned integers. Without this factor
 * they would be multiplied as ints, which could overflow. */
#define DEFINE_COMBINE_UNSIGNED(type)              \
    DEFINE_COMBINE(type##_sum, type, a + b)        \
    DEFINE_COMBINE(type##_prod, type, 1u * a * b)  \
    DEFINE_COMBINE(type##_band, type, a & b)       \
    DEFINE_COMBINE(type##_bor, type, a | b)        \
    DEFINE_COMBINE(type##_bxor, type, a ^ b)       \
    DEFINE_COMBINE_ORDER(type)
#define DEFINE_COMBINE_FLOAT(type)                                              \
    DEFINE_COMBINE(type##_sum, type, a + b)                                     \
    DEFINE_COMBINE(type##_prod, type, a * b)
/* Minimum and maximum of floats without branches. `beats` is > for the maximum and < for the
 * minimum. `first` compares a with b, and `second` compares b with a. Their bits differ only if a
 * and b are zeros of different signs, or if a or b is NaN.
 *
 *  - For zeros, `merge` of the bits gives the right sign. It is the bitwise `and` for the maximum,
 *    which is +0, and the bitwise `or` for the minimum, which is -0.
 *  - For NaN, the `or` with -1 sets all bits. That is a NaN, too, and the step `finish` of the
 *    reduction makes it canonical. */
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
#define DEFINE_COMBINE_FLOAT_ORDER(type, bits_type)                                             \
    DEFINE_COMBINE_FLOAT_BITS(type, bits_type, max, >, &)                                       \
    DEFINE_COMBINE_FLOAT_BITS(type, bits_type, min, <, |)

DEFINE_COMBINE_UNSIGNED(u8)
DEFINE_COMBINE_UNSIGNED(u16)
DEFINE_COMBINE_UNSIGNED(u32)
DEFINE_COMBINE_UNSIGNED(u64)
DEFINE_COMBINE_UNSIGNED(bits64)
DEFINE_COMBINE_ORDER(s8)
DEFINE_COMBINE_ORDER(s16)
DEFINE_COMBINE_ORDER(s32)
DEFINE_COMBINE_ORDER(s64)
DEFINE_COMBINE_FLOAT(f32)
DEFINE_COMBINE_FLOAT(f64)
DEFINE_COMBINE_FLOAT_ORDER(f32, uint32_t)
DEFINE_COMBINE_FLOAT_ORDER(f64, uint64_t)

/* ---- into and out of accumulators ------------------------------------------------
 * A reduction has three steps, which are parameters of the macros below: `enter` converts an
 * element to an accumulator, `combine` combines two accumulators, and `finish` scales the last
 * accumulator and converts it to an element. */

/* Scales a result, and makes a NaN canonical. */
TUTTI_INLINE float f32_finish(const float sum, const double multiply)
{
    return tutti_f32_quieted(sum * (float)multiply);
}

TUTTI_INLINE double f64_finish(const double sum, const double multiply)
{
    return tutti_f64_quieted(sum * multiply);
}

/* Minima and maxima of narrow floats are computed on integer keys (order.h). Here `finish` maps the
 * largest key back to a float. */
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

#define AS_IS(value) (value)           /* `enter` if accumulators are elements */
#define TRUTH(value) ((value) != 0)    /* `enter` of logical operations */
#define UNSCALED(value, multiply) ((void)(multiply), (value)) /* `finish` without scaling */

/* ---- reducing -------------------------------------------------------------------- */

/* Defines name_elements, the loop that reduces `nsrcs` sources: 2, 3, 4 or 8. `unit` is the type of
 * an element, and `sum_type` is that of the accumulator. `enter`, `combine` and `finish` are the
 * steps above. The caller passes a constant for `nsrcs`, and the function is inlined. So the
 * conditions vanish, and the pointers stay in registers. Pointers to sources that do not exist
 * equal s1, and are not used. */
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

/* Defines the kernel name_N for N = nsrcs. */
#define DEFINE_REDUCE_GROUP(name, nsrcs)                                                        \
    static void name##_##nsrcs(void *dst, const void *const *srcs, size_t count,                \
                               double multiply)                                                 \
    {                                                                                           \
        name##_elements(dst, srcs, count, multiply, nsrcs);                                     \
    }

/* Defines the loop and the kernels of one operation on one type. */
#define DEFINE_REDUCE(name, unit, sum_type, enter, combine, finish)                             \
    DEFINE_REDUCE_BODY(reduce_##name, unit, sum_type, enter, combine, finish)                   \
    DEFINE_REDUCE_GROUP(reduce_##name, 2)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 3)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 4)                                                       \
    DEFINE_REDUCE_GROUP(reduce_##name, 8)

/* These define the kernels of several operations on one type: sum and product, maximum and minimum,
 * the same for narrow floats as keys, and the logical operations. Larger keys win for the minimum,
 * too (order.h). */
#define DEFINE_REDUCE_MODULAR(type, sum_type, finish)                                           \
    DEFINE_REDUCE(type##_sum, type, sum_type, AS_IS, type##_sum, finish)                        \
    DEFINE_REDUCE(type##_prod, type, sum_type, AS_IS, type##_prod, finish)
#define DEFINE_REDUCE_ORDER(type, sum_type, finish)                                             \
    DEFINE_REDUCE(type##_max, type, sum_type, AS_IS, type##_max, finish)                        \
    DEFINE_REDUCE(type##_min, type, sum_type, AS_IS, type##_min, finish)
#define DEFINE_REDUCE_NARROW_ORDER(type, unit)                                                  \
    DEFINE_REDUCE(type##_max, unit, unit, tutti_##type##_max_key, unit##_max, type##_max_finish) \
    DEFINE_REDUCE(type##_min, unit, unit, tutti_##type##_min_key, unit##_max, type##_min_finish)
#define DEFINE_REDUCE_LOGICAL(type)                                                             \
    DEFINE_REDUCE(type##_land, type, type, TRUTH, type##_band, UNSCALED)                        \
    DEFINE_REDUCE(type##_lor, type, type, TRUTH, type##_bor, UNSCALED)                          \
    DEFINE_REDUCE(type##_lxor, type, type, TRUTH, type##_bxor, UNSCALED)

/* ---- bitwise operations -------------------------------------------------------------------- */

/* Defines bitwise_OP_N, which combines 64 bits at a time, at any alignment, and then the fewer than
 * 8 bytes that are left. The size of elements does not matter to these operations. */
#define DEFINE_BITWISE_BYTES(op, nsrcs)                                                         \
    static void bitwise_##op##_##nsrcs(void *dst, const void *const *srcs, size_t size_bytes)   \
    {                                                                                           \
        const size_t whole_bytes = size_bytes & ~(size_t)7;                                     \
        const void *rests[nsrcs];                                                               \
                                                                                                \
        reduce_bits64_##op##_elements(dst, srcs, size_bytes / 8, 1.0, nsrcs);                   \
        if (size_bytes == whole_bytes)                                                          \
            return;                                                                             \
        for (unsigned k = 0; k < nsrcs; k++)                                                    \
            rests[k] = (const char *)srcs[k] + whole_bytes;                                     \
        reduce_bits8_##op##_elements((char *)dst + whole_bytes, rests,                          \
                                     size_bytes - whole_bytes, 1.0, nsrcs);                     \
    }
/* Defines the kernel of all types whose elements have `bits` bits. */
#define DEFINE_BITWISE_WIDTH(op, nsrcs, bits)                                                   \
    static void reduce_w##bits##_##op##_##nsrcs(void *dst, const void *const *srcs,             \
                                                size_t count, double multiply)                  \
    {                                                                                           \
        (void)multiply;                                                                         \
        bitwise_##op##_##nsrcs(dst, srcs, count * ((bits) / 8));                                \
    }
#define DEFINE_BITWISE_GROUP(op, nsrcs)                                                         \
    DEFINE_BITWISE_BYTES(op, nsrcs)                                                             \
    DEFINE_BITWISE_WIDTH(op, nsrcs, 8)                                                          \
    DEFINE_BITWISE_WIDTH(op, nsrcs, 16)                                                         \
    DEFINE_BITWISE_WIDTH(op, nsrcs, 32)                                                         \
    DEFINE_BITWISE_WIDTH(op, nsrcs, 64)
#define DEFINE_BITWISE(op)                                                                      \
    DEFINE_REDUCE_BODY(reduce_bits64_##op, bits64, bits64, AS_IS, bits64_##op, UNSCALED)        \
    DEFINE_REDUCE_BODY(reduce_bits8_##op, u8, u8, AS_IS, u8_##op, UNSCALED)                     \
    DEFINE_BITWISE_GROUP(op, 2)                                                                 \
    DEFINE_BITWISE_GROUP(op, 3)                                                                 \
    DEFINE_BITWISE_GROUP(op, 4)                                                                 \
    DEFINE_BITWISE_GROUP(op, 8)

DEFINE_BITWISE(band)
DEFINE_BITWISE(bor)
DEFINE_BITWISE(bxor)

/* ---- converting -------------------------------------------------------------------- */

/* Defines the conversions between a narrow type and float32. widen_one and narrow_one convert one
 * element. Only bfloat16 uses these loops; narrow.h has the conversions of the other narrow
 * types. */
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

/* Defines multiply_CODE, which multiplies by the element at `by`. That element may have any
 * alignment. */
#define DEFINE_MULTIPLY(element, finish)                                                        \
    static void multiply_##element(void *to, const void *from, size_t count, const void *by)    \
    {                                                                                           \
        const element *src = from;                                                              \
        element *dst = to, factor;                                                              \
                                                                                                \
        memcpy(&factor, by, sizeof(factor));                                                    \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = (element)finish(element##_prod(src[i], factor));                           \
    }

/* Defines divide_CODE. `wide` is the 64-bit integer type of the same signedness. Values of at most
 * 32 bits are divided in float64, which compilers vectorize. The truncated quotient is exact,
 * because a quotient that is not an integer differs from the next integer by at least 1 / divisor.
 * That is far more than the rounding error. */
#define DEFINE_DIVIDE(element, wide)                                                            \
    static void divide_##element(void *to, const void *from, size_t count, int64_t divisor)     \
    {                                                                                           \
        const wide by = (wide)divisor;                                                          \
        const double float_by = (double)divisor;                                                \
        const element *src = from;                                                              \
        element *dst = to;                                                                      \
                                                                                                \
        INDEPENDENT                                                                             \
        for (size_t i = 0; i < count; i++)                                                      \
            dst[i] = sizeof(element) < 8 ? (element)((double)src[i] / float_by)                 \
                                         : (element)((wide)src[i] / by);                        \
    }

/* ---- copying ------------------------------------------------------------------------- */

#if HAS_STREAM
/* Copies by non-temporal stores, except the bytes before the first whole line of `to` and after the
 * last whole line. */
static void stream_bytes(void *to, const void *from, size_t size_bytes)
{
    const size_t line = 64;
    const char *src = from;
    char *dst = to;
    size_t copied = (size_t)(-(uintptr_t)dst % line); /* first, the bytes before the first line */

    if (size_bytes < line + copied) {
        memcpy(dst, src, size_bytes);
        return;
    }
    memcpy(dst, src, copied);
    /* An iteration copies four lines, so that there are fewer instructions per line and more stores
     * in flight. */
    for (; size_bytes - copied >= 4 * line; copied += 4 * line) {
        stream_line(dst + copied, src + copied);
        stream_line(dst + copied + line, src + copied + line);
        stream_line(dst + copied + 2 * line, src + copied + 2 * line);
        stream_line(dst + copied + 3 * line, src + copied + 3 * line);
    }
    for (; size_bytes - copied >= line; copied += line)
        stream_line(dst + copied, src + copied);
    memcpy(dst + copied, src + copied, size_bytes - copied);
}
#endif

/* ---- the kernels of all types ---------------------------------------------------------
 * TUTTI_TYPES calls KERNELS for each type, which defines the kernels of the type's family. */

/* The other kernels of signed integers are those of unsigned ones. */
#define KERNELS_SIGNED(code, bits)                                                              \
    DEFINE_REDUCE_ORDER(code, code, UNSCALED)                                                   \
    DEFINE_DIVIDE(code, int64_t)
#define KERNELS_UNSIGNED(code, bits)                                                            \
    DEFINE_REDUCE_MODULAR(code, code, UNSCALED)                                                 \
    DEFINE_REDUCE_ORDER(code, code, UNSCALED)                                                   \
    DEFINE_REDUCE_LOGICAL(code)                                                                 \
    DEFINE_MULTIPLY(code, AS_IS)                                                                \
    DEFINE_DIVIDE(code, uint64_t)
#define KERNELS_FLOATING(code, bits)                                                            \
    DEFINE_REDUCE_MODULAR(code, code, code##_finish)                                            \
    DEFINE_REDUCE_ORDER(code, code, code##_finish)                                              \
    DEFINE_MULTIPLY(code, tutti_##code##_quieted)
/* The other kernels of narrow floats are in narrow.h. */
#define KERNELS_NARROW(code, bits)                                                              \
    DEFINE_REDUCE_NARROW_ORDER(code, s##bits)
/* The kernels of bool are logical kernels of uint8. */
#define KERNELS_BOOLEAN(code, bits)
#define KERNELS(NAME, number, name, FAMILY, code, bits, ...) KERNELS_##FAMILY(code, bits)

TUTTI_TYPES(KERNELS)

/* ---- the table ------------------------------------------------------------------------
 * struct tutti_cpu_kernels (isa.h). TUTTI_TYPES calls ROWS for each type. */

/* The initializers of parts of the table for one type: the kernels of one operation for each number
 * of sources; sum, product, maximum and minimum; bitwise and logical operations; and those of
 * reduce_many. */
#define GROUPS(name) {reduce_##name##_2, reduce_##name##_3, reduce_##name##_4, reduce_##name##_8}
#define OPS(modular, ordered)                                                                   \
    [TUTTI_SUM] = GROUPS(modular##_sum), [TUTTI_PROD] = GROUPS(modular##_prod),                 \
    [TUTTI_MAX] = GROUPS(ordered##_max), [TUTTI_MIN] = GROUPS(ordered##_min)
#define BIT_OPS(bits)                                                                           \
    [TUTTI_BAND] = GROUPS(w##bits##_band), [TUTTI_BOR] = GROUPS(w##bits##_bor),                 \
    [TUTTI_BXOR] = GROUPS(w##bits##_bxor), [TUTTI_LAND] = GROUPS(u##bits##_land),               \
    [TUTTI_LOR] = GROUPS(u##bits##_lor), [TUTTI_LXOR] = GROUPS(u##bits##_lxor)
#define MANY(name)                                                                              \
    {[TUTTI_SUM] = reduce_##name##_sum_many, [TUTTI_PROD] = reduce_##name##_prod_many}

/* The members of the table for one type, by the type's family. */
#define ROWS_SIGNED(NAME, code, bits)                                                           \
    .reduce[TUTTI_##NAME] = {OPS(u##bits, code), BIT_OPS(bits)},                                \
    .multiply[TUTTI_##NAME] = multiply_u##bits,                                                 \
    .divide[TUTTI_##NAME] = divide_##code,
#define ROWS_UNSIGNED(NAME, code, bits)                                                         \
    .reduce[TUTTI_##NAME] = {OPS(code, code), BIT_OPS(bits)},                                   \
    .multiply[TUTTI_##NAME] = multiply_##code,                                                  \
    .divide[TUTTI_##NAME] = divide_##code,
#define ROWS_FLOATING(NAME, code, bits)                                                         \
    .reduce[TUTTI_##NAME] = {OPS(code, code)},                                                  \
    .multiply[TUTTI_##NAME] = multiply_##code,
#define ROWS_NARROW(NAME, code, bits)                                                           \
    .reduce[TUTTI_##NAME] = {OPS(code, code)},                                                  \
    .reduce_many[TUTTI_##NAME] = MANY(code),                                                    \
    .widen[TUTTI_##NAME] = widen_##code,                                                        \
    .narrow[TUTTI_##NAME] = narrow_##code,
#define ROWS_BOOLEAN(NAME, code, bits)                                                          \
    .reduce[TUTTI_##NAME] = {                                                                   \
        [TUTTI_SUM] = GROUPS(u8_lor), [TUTTI_PROD] = GROUPS(u8_land),                           \
        [TUTTI_MAX] = GROUPS(u8_lor), [TUTTI_MIN] = GROUPS(u8_land),                            \
        [TUTTI_BAND] = GROUPS(u8_land), [TUTTI_BOR] = GROUPS(u8_lor),                           \
        [TUTTI_BXOR] = GROUPS(u8_lxor), [TUTTI_LAND] = GROUPS(u8_land),                         \
        [TUTTI_LOR] = GROUPS(u8_lor), [TUTTI_LXOR] = GROUPS(u8_lxor)},
#define ROWS(NAME, number, name, FAMILY, code, bits, ...) ROWS_##FAMILY(NAME, code, bits)

const struct tutti_cpu_kernels KERNEL_TABLE = {
    .name = KERNEL_NAME,
    TUTTI_TYPES(ROWS)
#if HAS_STREAM
    .stream = stream_bytes,
#endif
};
