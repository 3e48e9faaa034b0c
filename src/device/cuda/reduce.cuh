/* SPDX-License-Identifier: Apache-2.0
 * Reducing, copying and converting by any number of threads, which need not be whole blocks: none of
 * these functions waits for other threads. Numerics: device/cpu/cpu.h.
 *
 * A destination may equal a source exactly: an element is read and written by one thread.
 */
#ifndef TUTTI_DEVICE_CUDA_REDUCE_CUH
#define TUTTI_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/platform.cuh"

#include "device/cuda/arithmetic.cuh"
#include "device/cuda/local.h"

/* The threads that share a job, and which of them this one is; one whose index is not below the count
 * does nothing. */
struct gpu_crew {
    uint32_t index, count;
};

GPU_INLINE gpu_crew gpu_crew_of_block(void)
{
    return gpu_crew{gpu_thread(), gpu_threads()};
}

GPU_INLINE gpu_crew gpu_crew_of_grid(void)
{
    return gpu_crew{gpu_block() * gpu_threads() + gpu_thread(), gpu_blocks() * gpu_threads()};
}

/* ---- single elements ------------------------------------------------------------------- */

/* In the first bytes of a word; the others are zero. */
template <uint32_t element_bytes> GPU_INLINE gpu_word gpu_load_element(const void *base, uint64_t i)
{
    gpu_word word = {0, 0, 0, 0};

    if (element_bytes == 1)
        word.x = gpu_load((const uint8_t *)base + i);
    else if (element_bytes == 2)
        word.x = gpu_load((const uint16_t *)base + i);
    else if (element_bytes == 4)
        word.x = gpu_load((const uint32_t *)base + i);
    else
        word = gpu_word_of(gpu_load((const uint64_t *)base + i), 0);
    return word;
}

template <uint32_t element_bytes> GPU_INLINE void gpu_store_element(void *base, uint64_t i,
                                                                    gpu_word word)
{
    if (element_bytes == 1)
        gpu_store((uint8_t *)base + i, (uint8_t)word.x);
    else if (element_bytes == 2)
        gpu_store((uint16_t *)base + i, (uint16_t)word.x);
    else if (element_bytes == 4)
        gpu_store((uint32_t *)base + i, word.x);
    else
        gpu_store((uint64_t *)base + i, gpu_half(word, 0));
}

/* ---- reducing -------------------------------------------------------------------------- */

/* A source's word as it enters the sum. */
template <typename reducer>
GPU_INLINE gpu_word gpu_entering(gpu_word word, const tutti_gpu_reduction *job, uint32_t source)
{
    typedef typename reducer::kind::modular kind;

    if (source == job->premultiplied) {
        typedef gpu_reducer<kind, gpu_prod> multiplier;
        const tutti_scale none = {1.0, 1};
        typename multiplier::sum product = multiplier::open(word);

        multiplier::add(&product, gpu_word_filled(job->scalar, kind::element_bytes));
        return multiplier::close(&product, kind::factor_of(job->type, none));
    }
    return word;
}

template <typename reducer> GPU_FUNCTION void gpu_reduce_by(const tutti_gpu_reduction *job,
                                                            gpu_crew crew)
{
    const typename reducer::factor factor = reducer::kind::factor_of(job->type, job->scale);

    for (uint64_t i = crew.index; i < job->count; i += crew.count) {
        const uint32_t bytes = reducer::element_bytes;
        typename reducer::sum sum =
            reducer::open(gpu_entering<reducer>(gpu_load_element<bytes>(job->srcs[0], i), job, 0));
        gpu_word result;

        for (uint32_t k = 1; k < job->nsrcs; k++)
            reducer::add(&sum, gpu_entering<reducer>(gpu_load_element<bytes>(job->srcs[k], i), job,
                                                     k));
        result = reducer::close(&sum, factor);
        for (uint32_t k = 0; k < job->ndsts; k++)
            gpu_store_element<bytes>(job->dsts[k], i, result);
    }
}

/* ---- what callers use -------------------------------------------------------------------- */

/* Copies bytes, of any alignment. */
GPU_FUNCTION void gpu_copy(void *dst, const void *src, uint64_t size_bytes, gpu_crew crew)
{
    if (dst == src || crew.index >= crew.count)
        return;
    for (uint64_t i = crew.index; i < size_bytes; i += crew.count)
        gpu_store_element<1>(dst, i, gpu_load_element<1>(src, i));
}

GPU_INLINE bool gpu_is_copy(const tutti_gpu_reduction *job)
{
    const bool is_float = job->type >= TUTTI_FLOAT16;

    return job->nsrcs == 1 && job->premultiplied != 0 &&
           (is_float ? job->scale.multiply == 1.0 : job->scale.divide == 1);
}

/* `job` and its arrays of pointers lie where all threads of the crew can read them. */
GPU_FUNCTION void gpu_reduce(const tutti_gpu_reduction *job, gpu_crew crew)
{
    if (crew.index >= crew.count)
        return;
    if (gpu_is_copy(job)) {
        for (uint32_t k = 0; k < job->ndsts; k++)
            gpu_copy(job->dsts[k], job->srcs[0], job->count * gpu_type_bytes(job->type), crew);
        return;
    }
    GPU_WITH_REDUCER(job->type, job->op, gpu_reduce_by, job, crew)
}

template <typename kind> GPU_FUNCTION void gpu_widen_by(const tutti_gpu_conversion *job,
                                                        gpu_crew crew)
{
    for (uint64_t i = crew.index; i < job->count; i += crew.count) {
        float values[kind::nvalues];

        kind::open(gpu_load_element<kind::element_bytes>(job->src, i), values);
        gpu_store((float *)job->dst + i, tutti_f32_quieted(values[0] * job->multiply));
    }
}

template <typename kind> GPU_FUNCTION void gpu_narrow_by(const tutti_gpu_conversion *job,
                                                         gpu_crew crew)
{
    for (uint64_t i = crew.index; i < job->count; i += crew.count) {
        float values[kind::nvalues] = {gpu_load((const float *)job->src + i) * job->multiply};

        gpu_store_element<kind::element_bytes>(job->dst, i, kind::close(values));
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
