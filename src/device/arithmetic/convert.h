/* SPDX-License-Identifier: Apache-2.0
 * Conversion of single values between float32 and the narrow floating types.
 *
 * CPUs and GPUs compile the same source: it is valid C11, C++17 and CUDA C++. The functions contain
 * no branches, tables or processor-specific instructions, so the compiler vectorizes a loop around
 * any of them. The numerics are those of device/cpu/cpu.h. Compile with -ffp-contract=off or
 * -fmad=false, because a product fused with the rounding addition below would be rounded
 * differently.
 */
#ifndef TUTTI_DEVICE_CONVERT_H
#define TUTTI_DEVICE_CONVERT_H

#include "base/inline.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TUTTI_F32_INFINITY 0x7f800000u
#define TUTTI_F32_NAN 0x7fc00000u
#define TUTTI_F64_NAN UINT64_C(0x7ff8000000000000)

/* A floating format with fewer than 16 bits of exponent and fraction together, in IEEE 754's
 * layout: sign, exponent, fraction. After inlining, a format is always a compile-time constant. The
 * codes below do not include the sign bit. */
struct tutti_small_format {
    unsigned exponent_bits, fraction_bits;
    uint32_t special; /* the first code that is infinity or NaN */
    uint32_t nan;     /* the canonical NaN */
    uint32_t largest; /* the result of overflow */
};

#if defined(__cplusplus)
#define TUTTI_FORMAT(...) (tutti_small_format{__VA_ARGS__})
#else
#define TUTTI_FORMAT(...) ((struct tutti_small_format){__VA_ARGS__})
#endif
#define TUTTI_FORMAT_FLOAT16 TUTTI_FORMAT(5, 10, 0x7c00, 0x7e00, 0x7c00)
#define TUTTI_FORMAT_E5M2 TUTTI_FORMAT(5, 2, 0x7c, 0x7e, 0x7c)
#define TUTTI_FORMAT_E4M3 TUTTI_FORMAT(4, 3, 0x7f, 0x7f, 0x7e)

TUTTI_INLINE uint32_t tutti_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

TUTTI_INLINE float tutti_f32_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

TUTTI_INLINE uint64_t tutti_f64_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

TUTTI_INLINE double tutti_f64_from_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Returns the value itself, or the canonical NaN in place of any NaN. */
TUTTI_INLINE float tutti_f32_quieted(float value)
{
    return value != value ? __builtin_nanf("") : value;
}

TUTTI_INLINE double tutti_f64_quieted(double value)
{
    return value != value ? __builtin_nan("") : value;
}

/* Returns 2 to the power of `exponent`, which must be in [-126, 127]. */
TUTTI_INLINE float tutti_f32_power(int exponent)
{
    return tutti_f32_from_bits((uint32_t)(127 + exponent) << 23);
}

/* Converts a code to float32, exactly. Bits of `code` above the format's sign bit are ignored. NaN
 * becomes the canonical NaN. */
TUTTI_INLINE float tutti_small_widen(uint32_t code, const struct tutti_small_format format)
{
    const unsigned width = format.exponent_bits + format.fraction_bits;
    const uint32_t bias = (1u << (format.exponent_bits - 1)) - 1;
    const uint32_t sign = code >> width << 31;
    const uint32_t size = code & ((1u << width) - 1);
    const uint32_t normal = (size << (23 - format.fraction_bits)) + ((127 - bias) << 23);
    /* Subnormals are multiples of the smallest one; float32 holds them all as normal numbers. */
    const float unit = tutti_f32_power(1 - (int)bias - (int)format.fraction_bits);
    const uint32_t tiny = tutti_f32_bits((float)(int32_t)size * unit);
    const bool is_infinite = size == format.special && format.special != format.nan;
    uint32_t bits = (size < (1u << format.fraction_bits) ? tiny : normal) | sign;

    bits = size >= format.special ? TUTTI_F32_NAN : bits;
    bits = is_infinite ? (TUTTI_F32_INFINITY | sign) : bits;
    return tutti_f32_from_bits(bits);
}

/* Converts a float32 to a code, rounded to nearest, ties to even. Overflow gives format.largest
 * with the sign of `value`. NaN gives format.nan, whose sign is clear. */
TUTTI_INLINE uint32_t tutti_small_narrow(float value, const struct tutti_small_format format)
{
    const unsigned width = format.exponent_bits + format.fraction_bits;
    const unsigned shift = 23 - format.fraction_bits;
    const uint32_t bias = (1u << (format.exponent_bits - 1)) - 1;
    const uint32_t bits = tutti_f32_bits(value);
    const uint32_t sign = bits >> 31 << width;
    const uint32_t size = bits & 0x7fffffffu;
    /* Adding just under half of the last kept bit, and one more if that bit is odd, carries exactly
     * when round-to-nearest-even rounds up. A carry out of the fraction increments the exponent,
     * which is the correct result. */
    const uint32_t odd = (size >> shift) & 1;
    const uint32_t rounded =
        (size - ((127 - bias) << 23) + (1u << (shift - 1)) - 1 + odd) >> shift;
    const uint32_t normal = rounded > format.largest ? format.largest : rounded;
    /* Below the smallest normal number the addition to `anchor` rounds correctly by itself: the
     * last bit of `anchor` weighs as much as the smallest subnormal. */
    const float anchor = tutti_f32_power(24 - (int)bias - (int)format.fraction_bits);
    const uint32_t tiny =
        tutti_f32_bits(tutti_f32_from_bits(size) + anchor) - tutti_f32_bits(anchor);
    const uint32_t code = (size < ((128 - bias) << 23) ? tiny : normal) | sign;

    return size > TUTTI_F32_INFINITY ? format.nan : code;
}

TUTTI_INLINE float tutti_bfloat16_widen(uint32_t code)
{
    return tutti_f32_quieted(tutti_f32_from_bits(code << 16));
}

/* Rounds a float32 to bfloat16, to nearest, ties to even. The upper 16 bits of the result are the
 * bfloat16, and the lower 16 bits are undefined. So a caller that packs two numbers into a word can
 * choose a shift or a mask. */
TUTTI_INLINE uint32_t tutti_bfloat16_round(float value)
{
    const uint32_t bits = tutti_f32_bits(value);

    return value != value ? TUTTI_F32_NAN : bits + 0x7fff + ((bits >> 16) & 1);
}

TUTTI_INLINE uint32_t tutti_bfloat16_narrow(float value)
{
    return tutti_bfloat16_round(value) >> 16;
}

#endif
