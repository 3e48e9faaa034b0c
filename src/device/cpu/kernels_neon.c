/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AArch64, where Advanced SIMD is always available. Its non-temporal stores have no
 * portable intrinsic in C, so streaming is ordinary copying. */
#include "device/cpu/isa.h"

#include "device/arithmetic/convert.h"

#include <arm_neon.h>

#define KERNEL_TABLE tutti_cpu_neon
#define KERNEL_NAME "neon"
#define STEP 8
#define HAS_STREAM 0
#define HAS_PARTS 0

typedef float floats __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));
typedef uint32_t uints __attribute__((vector_size(16)));
typedef uint16_t words __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(8)));
struct wide {
    floats a, b;
};

TUTTI_INLINE bool wide_has_nan(const struct wide values)
{
    const float32x4_t a = (float32x4_t)values.a, b = (float32x4_t)values.b;

    return vminvq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b))) == 0;
}

TUTTI_INLINE struct wide halves_widen(const words codes)
{
    const float16x8_t all = (float16x8_t)codes;

    return (struct wide){(floats)vcvt_f32_f16(vget_low_f16(all)),
                         (floats)vcvt_high_f32_f16(all)};
}

TUTTI_INLINE words halves_narrow(const struct wide values)
{
    return (words)vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)values.a), (float32x4_t)values.b);
}

TUTTI_INLINE words words_of_tests(const uint32x4_t a, const uint32x4_t b)
{
    return (words)vmovn_high_u32(vmovn_u32(a), b);
}

/* Conversion toward zero would need a change of the rounding mode. Instead, round to nearest, and
 * step back by one code where rounding made the magnitude larger. A true lane is -1, so adding
 * `is_larger` steps back. */
TUTTI_INLINE words halves_narrow_odd(const struct wide values)
{
    const float32x4_t a = (float32x4_t)values.a, b = (float32x4_t)values.b;
    const words nearest = halves_narrow(values);
    const struct wide back = halves_widen(nearest);
    const float32x4_t a_back = (float32x4_t)back.a, b_back = (float32x4_t)back.b;
    const words is_larger = words_of_tests(vcagtq_f32(a_back, a), vcagtq_f32(b_back, b));
    const words is_exact = words_of_tests(vceqq_f32(a_back, a), vceqq_f32(b_back, b));

    return (nearest + is_larger) | (~is_exact & 1);
}

TUTTI_INLINE words words_min(const words a, const words b)
{
    return (words)vminq_u16((uint16x8_t)a, (uint16x8_t)b);
}

TUTTI_INLINE words words_of_bytes(const bytes codes)
{
    return (words)vmovl_s8((int8x8_t)codes);
}

TUTTI_INLINE bytes bytes_of_words(const words codes)
{
    return (bytes)vmovn_u16((uint16x8_t)codes);
}

#include "device/cpu/narrow.h"

#include "device/cpu/kernels.h"
