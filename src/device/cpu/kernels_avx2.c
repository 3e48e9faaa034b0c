/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AVX2 with F16C. This file is compiled for these instructions, and its kernels are
 * called only on processors that have them. */
#include "device/cpu/isa.h"

#include "device/arithmetic/convert.h"

#include <immintrin.h>

#define KERNEL_TABLE tutti_cpu_avx2
#define KERNEL_NAME "avx2"
#define STEP 16
#define HAS_STREAM 1
#define HAS_PARTS 0

typedef float floats __attribute__((vector_size(32)));
typedef int32_t ints __attribute__((vector_size(32)));
typedef uint32_t uints __attribute__((vector_size(32)));
typedef uint16_t words __attribute__((vector_size(32)));
typedef uint8_t bytes __attribute__((vector_size(16)));
struct wide {
    floats a, b;
};

TUTTI_INLINE bool wide_has_nan(const struct wide values)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)values.a, (__m256)values.b, _CMP_UNORD_Q)) != 0;
}

TUTTI_INLINE struct wide halves_widen(const words codes)
{
    const __m256i all = (__m256i)codes;

    return (struct wide){(floats)_mm256_cvtph_ps(_mm256_castsi256_si128(all)),
                         (floats)_mm256_cvtph_ps(_mm256_extracti128_si256(all, 1))};
}

TUTTI_INLINE words halves_narrow(const struct wide values)
{
    return (words)_mm256_set_m128i(
        _mm256_cvtps_ph((__m256)values.b, _MM_FROUND_TO_NEAREST_INT),
        _mm256_cvtps_ph((__m256)values.a, _MM_FROUND_TO_NEAREST_INT));
}

TUTTI_INLINE words halves_narrow_odd(const struct wide values)
{
    const __m256 a = (__m256)values.a, b = (__m256)values.b;
    const __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_ZERO);
    const __m128i high = _mm256_cvtps_ph(b, _MM_FROUND_TO_ZERO);
    const __m256 a_is_inexact = _mm256_cmp_ps(a, _mm256_cvtph_ps(low), _CMP_NEQ_UQ);
    const __m256 b_is_inexact = _mm256_cmp_ps(b, _mm256_cvtph_ps(high), _CMP_NEQ_UQ);
    /* Packing works within halves of 128 bits, so the two middle quarters must be swapped. */
    const __m256i is_inexact = _mm256_permute4x64_epi64(
        _mm256_packs_epi32((__m256i)a_is_inexact, (__m256i)b_is_inexact), 0xd8);

    return (words)_mm256_set_m128i(high, low) | ((words)is_inexact & 1);
}

TUTTI_INLINE words words_min(const words a, const words b)
{
    return (words)_mm256_min_epu16((__m256i)a, (__m256i)b);
}

TUTTI_INLINE words words_of_bytes(const bytes codes)
{
    return (words)_mm256_cvtepi8_epi16((__m128i)codes);
}

TUTTI_INLINE bytes bytes_of_words(const words codes)
{
    const __m256i all = (__m256i)codes;

    return (bytes)_mm_packus_epi16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

TUTTI_INLINE void stream_line(void *dst, const void *src)
{
    const __m256i *from = src;
    __m256i *to = dst;

    _mm256_stream_si256(to, _mm256_loadu_si256(from));
    _mm256_stream_si256(to + 1, _mm256_loadu_si256(from + 1));
}

#include "device/cpu/narrow.h"

#include "device/cpu/kernels.h"
