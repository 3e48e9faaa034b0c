/* SPDX-License-Identifier: Apache-2.0
 * Copying, and converting between narrow floats and float32, by any number of threads. None of these
 * functions waits for other threads. */
#ifndef TUTTI_DEVICE_CUDA_COPY_CUH
#define TUTTI_DEVICE_CUDA_COPY_CUH

#include "device/cuda/platform.cuh"

#include "device/cuda/arithmetic.cuh"
#include "device/cuda/local.h"
#include "device/cuda/words.cuh"

/* ---- copying -------------------------------------------------------------------------------- */

/* Words of buffers whose alignment is the same: several loads are on their way at once. */
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

/* Copies bytes, of any alignment, also onto themselves. */
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

/* Four elements at a time: a word of float32, and what part of a word they are when narrow. */
enum { GPU_CONVERT_GROUP = 4 };

template <typename kind> GPU_INLINE void gpu_widen_group(float *dst, gpu_word codes, float multiply,
                                                         uint32_t count)
{
    float values[kind::nvalues];
    float wide[GPU_CONVERT_GROUP];

    kind::open(codes, values);
    GPU_UNROLL
    for (uint32_t i = 0; i < GPU_CONVERT_GROUP; i++)
        wide[i] = values[i] * multiply;
    if (count == GPU_CONVERT_GROUP)
        gpu_store_word(dst, gpu_float32_kind::close(wide));
    else
        gpu_store(dst, tutti_f32_quieted(wide[0]));
}

template <typename kind> GPU_INLINE gpu_word gpu_narrow_group(gpu_word word, float multiply)
{
    float values[kind::nvalues] = {0};

    gpu_float32_kind::open(word, values);
    GPU_UNROLL
    for (uint32_t i = 0; i < GPU_CONVERT_GROUP; i++)
        values[i] *= multiply;
    return kind::close(values);
}

/* Whether groups may be moved by one access each, once those of float32 are aligned. */
template <uint32_t element_bytes> GPU_INLINE bool gpu_has_groups(const void *narrow,
                                                                 const gpu_span *wide)
{
    const uintptr_t at = (uintptr_t)narrow + wide->head * element_bytes;

    return at % (GPU_CONVERT_GROUP * element_bytes) == 0;
}

template <typename kind> GPU_FUNCTION void gpu_widen_by(const tutti_gpu_conversion *job,
                                                        gpu_crew crew)
{
    const uint32_t bytes = kind::element_bytes, group_bytes = GPU_CONVERT_GROUP * bytes;
    const uint64_t count = job->count;
    const float multiply = job->multiply;
    float *dst = (float *)job->dst;
    const void *src = job->src;
    const gpu_span span = gpu_span_of<4>(dst, count);

    if (!gpu_has_groups<bytes>(src, &span)) {
        for (uint64_t i = crew.index; i < count; i += crew.count)
            gpu_widen_group<kind>(dst + i, gpu_load_element<bytes>(src, i), multiply, 1);
        return;
    }
    for (uint64_t w = crew.index; w < span.words; w += crew.count) {
        const uint8_t *from = (const uint8_t *)src + span.head * bytes;

        gpu_widen_group<kind>(dst + span.head + w * GPU_CONVERT_GROUP,
                              gpu_load_element<group_bytes>(from, w), multiply, GPU_CONVERT_GROUP);
    }
    for (uint32_t i = gpu_first_edge(crew); i < span.edges; i += crew.count) {
        const uint64_t at = gpu_edge(&span, i);

        gpu_widen_group<kind>(dst + at, gpu_load_element<bytes>(src, at), multiply, 1);
    }
}

template <typename kind> GPU_FUNCTION void gpu_narrow_by(const tutti_gpu_conversion *job,
                                                         gpu_crew crew)
{
    const uint32_t bytes = kind::element_bytes, group_bytes = GPU_CONVERT_GROUP * bytes;
    const uint64_t count = job->count;
    const float multiply = job->multiply;
    const float *src = (const float *)job->src;
    void *dst = job->dst;
    const gpu_span span = gpu_span_of<4>(src, count);

    if (!gpu_has_groups<bytes>(dst, &span)) {
        for (uint64_t i = crew.index; i < count; i += crew.count)
            gpu_store_element<bytes>(dst, i, gpu_narrow_group<kind>(gpu_load_element<4>(src, i),
                                                                    multiply));
        return;
    }
    for (uint64_t w = crew.index; w < span.words; w += crew.count)
        gpu_store_element<group_bytes>(
            (uint8_t *)dst + span.head * bytes, w,
            gpu_narrow_group<kind>(gpu_load_word_once(src + span.head + w * GPU_CONVERT_GROUP),
                                   multiply));
    for (uint32_t i = gpu_first_edge(crew); i < span.edges; i += crew.count) {
        const uint64_t at = gpu_edge(&span, i);

        gpu_store_element<bytes>(dst, at, gpu_narrow_group<kind>(gpu_load_element<4>(src, at),
                                                                 multiply));
    }
}

template <typename kind> GPU_INLINE void gpu_convert_by(const tutti_gpu_conversion *job,
                                                        gpu_crew crew)
{
    if (job->is_widening)
        gpu_widen_by<kind>(job, crew);
    else
        gpu_narrow_by<kind>(job, crew);
}

/* `job` lies where all threads of the crew can read it. */
GPU_FUNCTION void gpu_convert(const tutti_gpu_conversion *job, gpu_crew crew)
{
    if (crew.index >= crew.count)
        return;
    switch (job->type) {
    case TUTTI_FLOAT16: return gpu_convert_by<gpu_float16_kind>(job, crew);
    case TUTTI_BFLOAT16: return gpu_convert_by<gpu_bfloat16_kind>(job, crew);
    case TUTTI_FLOAT8E4M3: return gpu_convert_by<gpu_e4m3_kind>(job, crew);
    default: return gpu_convert_by<gpu_e5m2_kind>(job, crew);
    }
}

#endif
