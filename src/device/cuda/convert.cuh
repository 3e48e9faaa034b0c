/* SPDX-License-Identifier: Apache-2.0
 * Converts four bytes of narrow floats to float32 and back, with the same results as
 * device/arithmetic/convert.h. Widening converts to float32, and narrowing converts back.
 *
 * The code uses conversion instructions where they give the same numbers. Their NaN may differ from
 * the canonical NaN, and narrowing corrects such a NaN. Widening may give any NaN, because only
 * final results must have the canonical NaN.
 */
#ifndef TUTTI_DEVICE_CUDA_CONVERT_CUH
#define TUTTI_DEVICE_CUDA_CONVERT_CUH

#include "device/cuda/platform.cuh"

#include "device/arithmetic/convert.h"

#if defined(__CUDA_ARCH__)
/* True for the formats for which this GPU has conversion instructions. */
#define GPU_CONVERTS_FLOAT16 1
#define GPU_CONVERTS_BFLOAT16 (__CUDA_ARCH__ >= 900)
#define GPU_CONVERTS_FLOAT8 (__CUDA_ARCH__ >= 890)

GPU_INLINE void gpu_halves_widen(uint32_t codes, float *values)
{
    asm("{\n\t.reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t}"
        : "=f"(values[0]), "=f"(values[1]) : "r"(codes));
}

/* Returns two codes of 16 bits each. Bits at which `mask` is 1 are taken from `nan`, and the others
 * from `codes`. */
GPU_INLINE uint32_t gpu_without_nan(uint32_t codes, uint32_t mask, uint32_t nan)
{
    return (codes & ~mask) | (nan & mask);
}
#else
#define GPU_CONVERTS_FLOAT16 0
#define GPU_CONVERTS_BFLOAT16 0
#define GPU_CONVERTS_FLOAT8 0
#endif

/* ---- 16 bits ------------------------------------------------------------------------------ */

struct gpu_float16 {
    enum { element_bytes = 2 };

    GPU_INLINE void widen(uint32_t codes, float *values)
    {
#if GPU_CONVERTS_FLOAT16
        gpu_halves_widen(codes, values);
#else
        values[0] = tutti_small_widen(codes & 0xffff, TUTTI_FORMAT_FLOAT16);
        values[1] = tutti_small_widen(codes >> 16, TUTTI_FORMAT_FLOAT16);
#endif
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
#if GPU_CONVERTS_FLOAT16
        uint32_t codes, is_nan;

        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(values[1]), "f"(values[0]));
        asm("set.nan.u32.f16x2 %0, %1, %1;" : "=r"(is_nan) : "r"(codes));
        return gpu_without_nan(codes, is_nan, 0x7e007e00u);
#else
        return tutti_small_narrow(values[0], TUTTI_FORMAT_FLOAT16) |
               tutti_small_narrow(values[1], TUTTI_FORMAT_FLOAT16) << 16;
#endif
    }
};

struct gpu_bfloat16 {
    enum { element_bytes = 2 };

    GPU_INLINE void widen(uint32_t codes, float *values)
    {
        values[0] = tutti_f32_from_bits(codes << 16);
        values[1] = tutti_f32_from_bits(codes & 0xffff0000u);
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
#if GPU_CONVERTS_BFLOAT16
        uint32_t codes, is_nan;

        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(values[1]), "f"(values[0]));
        asm("set.nan.u32.bf16x2 %0, %1, %1;" : "=r"(is_nan) : "r"(codes));
        return gpu_without_nan(codes, is_nan, 0x7fc07fc0u);
#else
        return tutti_bfloat16_round(values[0]) >> 16 |
               (tutti_bfloat16_round(values[1]) & 0xffff0000u);
#endif
    }
};

/* ---- 8 bits ------------------------------------------------------------------------------- */

/* Narrows four numbers with instructions that saturate: an overflow gives the largest number. */
#define GPU_FLOAT8_NARROW(codes, values, format)                                        \
    asm("{\n\t.reg .b16 low, high;\n\t"                                                \
        "cvt.rn.satfinite." format ".f32 low, %2, %1;\n\t"                              \
        "cvt.rn.satfinite." format ".f32 high, %4, %3;\n\t"                             \
        "mov.b32 %0, {low, high};\n\t}"                                                 \
        : "=r"(codes) : "f"((values)[0]), "f"((values)[1]), "f"((values)[2]), "f"((values)[3]))

GPU_INLINE void gpu_float8_widen(uint32_t codes, float *values, tutti_small_format format)
{
    GPU_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        values[i] = tutti_small_widen(codes >> 8 * i & 0xff, format);
}

GPU_INLINE uint32_t gpu_float8_narrow(const float *values, tutti_small_format format)
{
    uint32_t codes = 0;

    GPU_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        codes |= tutti_small_narrow(values[i], format) << 8 * i;
    return codes;
}

struct gpu_e4m3 {
    enum { element_bytes = 1 };

    GPU_INLINE void widen(uint32_t codes, float *values)
    {
#if GPU_CONVERTS_FLOAT8
        uint32_t first, second;

        asm("{\n\t.reg .b16 low, high;\n\t"
            "mov.b32 {low, high}, %2;\n\t"
            "cvt.rn.f16x2.e4m3x2 %0, low;\n\t"
            "cvt.rn.f16x2.e4m3x2 %1, high;\n\t}"
            : "=r"(first), "=r"(second) : "r"(codes));
        gpu_halves_widen(first, values);
        gpu_halves_widen(second, values + 2);
#else
        gpu_float8_widen(codes, values, TUTTI_FORMAT_E4M3);
#endif
    }
    /* E4M3 has no infinity and only one NaN, so the instructions give the right results. */
    GPU_INLINE uint32_t narrow(const float *values)
    {
#if GPU_CONVERTS_FLOAT8
        uint32_t codes;

        GPU_FLOAT8_NARROW(codes, values, "e4m3x2");
        return codes;
#else
        return gpu_float8_narrow(values, TUTTI_FORMAT_E4M3);
#endif
    }
};

/* The midpoint between the largest number of E5M2 and the number that would follow. This and all
 * larger numbers round to infinity. */
#define GPU_E5M2_OVERFLOW 61440.0f

/* True if no value is NaN or infinite, and no value rounds to infinity. */
GPU_INLINE bool gpu_e5m2_is_usual(const float *values)
{
    bool is_usual = true;

    GPU_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        is_usual &= values[i] < GPU_E5M2_OVERFLOW && values[i] > -GPU_E5M2_OVERFLOW;
    return is_usual;
}

/* This function is not inlined, because it is rarely needed. */
GPU_FUNCTION uint32_t gpu_e5m2_narrowed(float first, float second, float third, float fourth)
{
    const float values[4] = {first, second, third, fourth};

    return gpu_float8_narrow(values, TUTTI_FORMAT_E5M2);
}

/* The instructions saturate at the largest number, and their NaN is not the canonical one. So
 * values that are NaN or round to infinity are narrowed without instructions. */
struct gpu_e5m2 {
    enum { element_bytes = 1 };

    /* The code of an E5M2 number is the upper byte of the code of the same number as float16. */
    GPU_INLINE void widen(uint32_t codes, float *values)
    {
#if GPU_CONVERTS_FLOAT16
        gpu_halves_widen((codes & 0xff) << 8 | (codes & 0xff00) << 16, values);
        gpu_halves_widen((codes & 0xff0000) >> 8 | (codes & 0xff000000u), values + 2);
#else
        gpu_float8_widen(codes, values, TUTTI_FORMAT_E5M2);
#endif
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
#if GPU_CONVERTS_FLOAT8
        uint32_t codes;

        GPU_FLOAT8_NARROW(codes, values, "e5m2x2");
        if (!gpu_e5m2_is_usual(values))
            codes = gpu_e5m2_narrowed(values[0], values[1], values[2], values[3]);
        return codes;
#else
        return gpu_float8_narrow(values, TUTTI_FORMAT_E5M2);
#endif
    }
};

#endif
