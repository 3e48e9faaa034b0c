/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AVX-512 F, BW, DQ and VL: compiled for it, called only where it is. */
#include "device/cpu/isa.h"

#include <immintrin.h>

#define KERNEL_TABLE tutti_cpu_avx512
#define KERNEL_NAME "avx512"
#define HALF_LANES 16
#define HAS_STREAM 1

typedef uint16_t half_unit __attribute__((vector_size(32), aligned(2), may_alias));
typedef float half_floats __attribute__((vector_size(64)));
typedef int32_t half_ints __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) half_floats half_widen(const half_unit unit)
{
    return (half_floats)_mm512_cvtph_ps((__m256i)unit);
}

static inline __attribute__((always_inline)) half_unit half_narrow(const half_floats wide)
{
    return (half_unit)_mm512_cvtps_ph((__m512)wide, _MM_FROUND_TO_NEAREST_INT);
}

static inline __attribute__((always_inline)) void stream_line(void *dst, const void *src)
{
    _mm512_stream_si512(dst, _mm512_loadu_si512(src));
}

#include "device/cpu/kernels.h"
