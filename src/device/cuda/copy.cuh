/* SPDX-License-Identifier: Apache-2.0
 * Copies bytes, and converts between narrow floats and float32, with any number of threads. No
 * function here waits for other threads. */
#ifndef TUTTI_DEVICE_CUDA_COPY_CUH
#define TUTTI_DEVICE_CUDA_COPY_CUH

#include "device/cuda/platform.cuh"

#include "device/cuda/arithmetic.cuh"
#include "device/cuda/local.h"
#include "device/cuda/words.cuh"

/* ---- copying -------------------------------------------------------------------------------- */

/* Copies words between buffers of the same alignment. Each thread has several loads in flight. */
GPU_INLINE void gpu_copy_aligned(uint8_t *dst, const uint8_t *src, uint64_t nwords, gpu_crew crew)
{
    const uint32_t at_once = 8;
    const uint64_t stride = (uint64_t)crew.count * GPU_WORD_BYTES;
    const uint64_t end = nwords * GPU_WORD_BYTES;
    uint64_t at = (uint64_t)crew.index * GPU_WORD_BYTES;

    for (; at + (at_once - 1) * stride < end; at += at_once * stride) {
        gpu_word words[at_once];

        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++)
            words[u] = gpu_load_word_once(src + at + u * stride);
        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++)
            gpu_store_word(dst + at + u * stride, words[u]);
    }
    for (; at < end; at += stride)
        gpu_store_word(dst + at, gpu_load_word_once(src + at));
}

/* All threads of the crew: copies bytes at any alignment. `dst` may equal `src`. */
GPU_FUNCTION void gpu_copy(void *dst, const void *src, uint64_t size_bytes, gpu_crew crew)
{
    const gpu_span span = gpu_span_of<1>(dst, size_bytes);
    uint8_t *to = (uint8_t *)dst + span.head;
    const uint8_t *from = (const uint8_t *)src + span.head;

    if (dst == src || crew.index >= crew.count)
        return;
    if ((uintptr_t)from % GPU_WORD_BYTES == 0)
        gpu_copy_aligned(to, from, span.words, crew);
    else
        for (uint64_t w = crew.index; w < span.words; w += crew.count)
            gpu_store_word(to + w * GPU_WORD_BYTES,
                           gpu_load_any_word<1>(from + w * GPU_WORD_BYTES));
    for (uint32_t i = gpu_first_edge(crew); i < span.edges; i += crew.count)
        gpu_store_element<1>(dst, gpu_edge(&span, i), gpu_load_element<1>(src, gpu_edge(&span, i)));
}

/* ---- converting ------------------------------------------------------------------------------ */

/* Elements are converted in groups. A group fills a word as float32, and a part of a word as narrow
 * floats. Each thread has several groups in flight. */
enum { GPU_CONVERT_GROUP = 4, GPU_CONVERT_AT_ONCE = 4 };

/* These convert a group or one element. The data are in the first bytes of the word, both before
 * and after the conversion. */
template <typename kind> GPU_INLINE gpu_word gpu_widened(gpu_word codes, float multiply)
{
    float values[kind::nvalues];
    float wide[GPU_CONVERT_GROUP];

    kind::open(codes, values);
    GPU_UNROLL
    for (uint32_t i = 0; i < GPU_CONVERT_GROUP; i++)
        wide[i] = values[i] * multiply;
    return gpu_float32_kind::close(wide);
}

template <typename kind> GPU_INLINE gpu_word gpu_narrowed(gpu_word wide, float multiply)
{
    float values[kind::nvalues] = {0};

    gpu_float32_kind::open(wide, values);
    GPU_UNROLL
    for (uint32_t i = 0; i < GPU_CONVERT_GROUP; i++)
        values[i] *= multiply;
    return kind::close(values);
}

/* These load or store item i of an array. An item is a group or an element. It has `bytes` bytes
 * and is aligned to its size. */
template <uint32_t bytes> GPU_INLINE gpu_word gpu_load_item(const void *base, uint64_t i)
{
    if (bytes == GPU_WORD_BYTES)
        return gpu_load_word_once((const uint8_t *)base + i * bytes);
    return gpu_load_element<bytes>(base, i);
}

template <uint32_t bytes> GPU_INLINE void gpu_store_item(void *base, uint64_t i, gpu_word word)
{
    if (bytes == GPU_WORD_BYTES)
        gpu_store_word((uint8_t *)base + i * bytes, word);
    else
        gpu_store_element<bytes>(base, i, word);
}

/* Converts `at_once` items, `stride` apart, from item i on. An item has `from` bytes before the
 * conversion and `to` bytes after it. */
template <typename kind, bool is_widening, uint32_t from, uint32_t to, uint32_t at_once>
GPU_INLINE void gpu_convert_some(void *dst, const void *src, uint64_t i, uint64_t stride,
                                 float multiply)
{
    gpu_word words[at_once];

    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++)
        words[u] = gpu_load_item<from>(src, i + u * stride);
    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++)
        gpu_store_item<to>(dst, i + u * stride,
                           is_widening ? gpu_widened<kind>(words[u], multiply)
                                       : gpu_narrowed<kind>(words[u], multiply));
}

/* Runs a conversion from or to elements of a kind. */
template <typename kind, bool is_widening>
GPU_FUNCTION void gpu_convert_by(const tutti_kernel_conversion *job, gpu_crew crew)
{
    const uint32_t n = GPU_CONVERT_GROUP, at_once = GPU_CONVERT_AT_ONCE;
    /* Bytes of an element before and after the conversion. */
    const uint32_t from = is_widening ? kind::element_bytes : 4;
    const uint32_t to = is_widening ? 4 : kind::element_bytes;
    const float multiply = job->multiply;
    const uint8_t *src = (const uint8_t *)job->src;
    uint8_t *dst = (uint8_t *)job->dst;
    gpu_span span = gpu_span_of<4>(is_widening ? (const void *)dst : src, job->count);
    const uint64_t stride = crew.count;
    uint64_t i = crew.index;

    /* The narrow buffer may not be aligned to groups even where the float32 buffer is. */
    if (((uintptr_t)src + span.head * from) % (n * from) != 0 ||
        ((uintptr_t)dst + span.head * to) % (n * to) != 0)
        span = gpu_span{0, job->count, job->count, 0};
    for (; i + (at_once - 1) * stride < span.words; i += at_once * stride)
        gpu_convert_some<kind, is_widening, n * from, n * to, at_once>(
            dst + span.head * to, src + span.head * from, i, stride, multiply);
    for (; i < span.words; i += stride)
        gpu_convert_some<kind, is_widening, n * from, n * to, 1>(
            dst + span.head * to, src + span.head * from, i, stride, multiply);
    for (i = gpu_first_edge(crew); i < span.edges; i += stride)
        gpu_convert_some<kind, is_widening, from, to, 1>(dst, src, gpu_edge(&span, i), 0, multiply);
}

template <typename kind>
GPU_INLINE void gpu_convert_either(const tutti_kernel_conversion *job, gpu_crew crew)
{
    if (job->is_widening)
        gpu_convert_by<kind, true>(job, crew);
    else
        gpu_convert_by<kind, false>(job, crew);
}

/* All threads of the crew: runs a conversion. `job` must be in memory that all of them can read. */
GPU_FUNCTION void gpu_convert(const tutti_kernel_conversion *job, gpu_crew crew)
{
    if (crew.index >= crew.count)
        return;
    switch (job->type) {
    case TUTTI_FLOAT16: return gpu_convert_either<gpu_float16_kind>(job, crew);
    case TUTTI_BFLOAT16: return gpu_convert_either<gpu_bfloat16_kind>(job, crew);
    case TUTTI_FLOAT8E4M3: return gpu_convert_either<gpu_e4m3_kind>(job, crew);
    default: return gpu_convert_either<gpu_e5m2_kind>(job, crew);
    }
}

#endif
