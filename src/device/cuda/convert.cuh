/* SPDX-License-Identifier: Apache-2.0
 * Four bytes of narrow floats to float32 and back, bit for bit as device/arithmetic/convert.h has
 * it. */
#ifndef TUTTI_DEVICE_CUDA_CONVERT_CUH
#define TUTTI_DEVICE_CUDA_CONVERT_CUH

#include "device/cuda/platform.cuh"

#include "device/arithmetic/convert.h"

struct gpu_float16 {
    enum { element_bytes = 2 };
    GPU_INLINE void widen(uint32_t codes, float *values)
    {
        values[0] = tutti_small_widen(codes & 0xffff, TUTTI_FORMAT_FLOAT16);
        values[1] = tutti_small_widen(codes >> 16, TUTTI_FORMAT_FLOAT16);
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
        return tutti_small_narrow(values[0], TUTTI_FORMAT_FLOAT16) |
               tutti_small_narrow(values[1], TUTTI_FORMAT_FLOAT16) << 16;
    }
};

struct gpu_bfloat16 {
    enum { element_bytes = 2 };
    /* NaN need not be canonical before the end. */
    GPU_INLINE void widen(uint32_t codes, float *values)
    {
        values[0] = tutti_f32_from_bits(codes << 16);
        values[1] = tutti_f32_from_bits(codes & 0xffff0000u);
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
        return tutti_bfloat16_round(values[0]) >> 16 |
               (tutti_bfloat16_round(values[1]) & 0xffff0000u);
    }
};

struct gpu_e4m3 {
    enum { element_bytes = 1 };
    GPU_INLINE void widen(uint32_t codes, float *values)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i] = tutti_small_widen(codes >> 8 * i & 0xff, TUTTI_FORMAT_E4M3);
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
        uint32_t codes = 0;

        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            codes |= tutti_small_narrow(values[i], TUTTI_FORMAT_E4M3) << 8 * i;
        return codes;
    }
};

struct gpu_e5m2 {
    enum { element_bytes = 1 };
    GPU_INLINE void widen(uint32_t codes, float *values)
    {
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i] = tutti_small_widen(codes >> 8 * i & 0xff, TUTTI_FORMAT_E5M2);
    }
    GPU_INLINE uint32_t narrow(const float *values)
    {
        uint32_t codes = 0;

        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            codes |= tutti_small_narrow(values[i], TUTTI_FORMAT_E5M2) << 8 * i;
        return codes;
    }
};

#endif
