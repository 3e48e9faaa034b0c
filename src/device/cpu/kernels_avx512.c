/* SPDX-License-Identifier: Apache-2.0
 * Kernels for AVX-512 F, BW, DQ and VL with F16C. This file is compiled for these instructions, and
 * its kernels are called only on processors that have them. It defines the types and functions that
 * narrow.h and kernels.h expect; these headers are included at the end, and say what each is
 * for. */
#include "device/cpu/isa.h"

#include "device/arithmetic/convert.h"

#include <immintrin.h>

#define KERNEL_TABLE tutti_cpu_avx512
#define KERNEL_NAME "avx512"
#define STEP 32
#define HAS_STREAM 1
#define HAS_PARTS 1

typedef float floats __attribute__((vector_size(64)));
typedef int32_t ints __attribute__((vector_size(64)));
typedef uint32_t uints __attribute__((vector_size(64)));
typedef uint16_t words __attribute__((vector_size(64)));
typedef uint8_t bytes __attribute__((vector_size(32)));
struct wide {
    floats a, b;
};

TUTTI_INLINE bool wide_has_nan(const struct wide values)
{
    return _mm512_cmp_ps_mask((__m512)values.a, (__m512)values.b, _CMP_UNORD_Q) != 0;
}

TUTTI_INLINE struct wide halves_widen(const words codes)
{
    const __m512i all = (__m512i)codes;

    return (struct wide){(floats)_mm512_cvtph_ps(_mm512_castsi512_si256(all)),
                         (floats)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(all, 1))};
}

TUTTI_INLINE words words_joined(const __m256i low, const __m256i high)
{
    return (words)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

TUTTI_INLINE words halves_narrow(const struct wide values)
{
    return words_joined(_mm512_cvtps_ph((__m512)values.a, _MM_FROUND_TO_NEAREST_INT),
                        _mm512_cvtps_ph((__m512)values.b, _MM_FROUND_TO_NEAREST_INT));
}

/* Rounds to odd, as narrow.h explains. */
TUTTI_INLINE words halves_narrow_odd(const struct wide values)
{
    const __m512 a = (__m512)values.a, b = (__m512)values.b;
    const __m256i low = _mm512_cvtps_ph(a, _MM_FROUND_TO_ZERO);
    const __m256i high = _mm512_cvtps_ph(b, _MM_FROUND_TO_ZERO);
    const __mmask32 is_inexact =
        _mm512_kunpackw(_mm512_cmp_ps_mask(b, _mm512_cvtph_ps(high), _CMP_NEQ_UQ),
                        _mm512_cmp_ps_mask(a, _mm512_cvtph_ps(low), _CMP_NEQ_UQ));

    return words_joined(low, high) | (words)_mm512_maskz_set1_epi16(is_inexact, 1);
}

TUTTI_INLINE words words_min(const words a, const words b)
{
    return (words)_mm512_min_epu16((__m512i)a, (__m512i)b);
}

/* Extends the sign, so that the sign bit of a code becomes bit 15. */
TUTTI_INLINE words words_of_bytes(const bytes codes)
{
    return (words)_mm512_cvtepi8_epi16((__m256i)codes);
}

TUTTI_INLINE bytes bytes_of_words(const words codes)
{
    return (bytes)_mm512_cvtepi16_epi8((__m512i)codes);
}

TUTTI_INLINE words words_load_part(const void *src, size_t size_bytes)
{
    return (words)_mm512_maskz_loadu_epi8(UINT64_MAX >> (64 - size_bytes), src);
}

TUTTI_INLINE void words_store_part(void *dst, const words stored, size_t size_bytes)
{
    _mm512_mask_storeu_epi8(dst, UINT64_MAX >> (64 - size_bytes), (__m512i)stored);
}

TUTTI_INLINE bytes bytes_load_part(const void *src, size_t size_bytes)
{
    return (bytes)_mm256_maskz_loadu_epi8(UINT32_MAX >> (32 - size_bytes), src);
}

TUTTI_INLINE void bytes_store_part(void *dst, const bytes stored, size_t size_bytes)
{
    _mm256_mask_storeu_epi8(dst, UINT32_MAX >> (32 - size_bytes), (__m256i)stored);
}

TUTTI_INLINE void stream_line(void *dst, const void *src)
{
    _mm512_stream_si512(dst, _mm512_loadu_si512(src));
}

#include "device/cpu/narrow.h"

#include "device/cpu/kernels.h"
