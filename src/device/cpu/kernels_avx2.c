/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AVX2 with F16C: compiled for it, called only where it is. */
#include "device/cpu/isa.h"

#include <immintrin.h>

#define KERNEL_TABLE tutti_cpu_avx2
#define KERNEL_NAME "avx2"
#define HALF_LANES 8
#define HAS_STREAM 1

typedef uint16_t half_unit __attribute__((vector_size(16), aligned(2), may_alias));
typedef float half_floats __attribute__((vector_size(32)));
typedef int32_t half_ints __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) half_floats half_widen(const half_unit unit)
{
    return (half_floats)_mm256_cvtph_ps((__m128i)unit);
}

static inline __attribute__((always_inline)) half_unit half_narrow(const half_floats wide)
{
    return (half_unit)_mm256_cvtps_ph((__m256)wide, _MM_FROUND_TO_NEAREST_INT);
}

static inline __attribute__((always_inline)) void stream_line(void *dst, const void *src)
{
    const __m256i *from = src;
    __m256i *to = dst;

    _mm256_stream_si256(to, _mm256_loadu_si256(from));
    _mm256_stream_si256(to + 1, _mm256_loadu_si256(from + 1));
}

#include "device/cpu/kernels.h"
