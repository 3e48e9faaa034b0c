/* SPDX-License-Identifier: Apache-2.0
<<<<<<< HEAD
 * Reducing, copying and converting by any number of threads, which need not be whole blocks: none of
 * these functions waits for other threads. Numerics: device/cpu/cpu.h.
=======
 * Any number of sources into any number of destinations, by any number of threads, which need not be
 * whole blocks: nobody waits for others. Numerics: device/cpu/cpu.h.
>>>>>>> main
 *
 * A destination may equal a source exactly: an element is read and written by one thread.
 */
#ifndef TUTTI_DEVICE_CUDA_REDUCE_CUH
#define TUTTI_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/platform.cuh"

#include "device/cuda/arithmetic.cuh"
<<<<<<< HEAD
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
=======
#include "device/cuda/copy.cuh"
#include "device/cuda/local.h"
#include "device/cuda/words.cuh"

/* What loops need of a job, in registers. */
template <typename reducer> struct gpu_reducing {
    const void *const *srcs;
    void *const *dsts;
    uint8_t *dst; /* the first */
    uint32_t nsrcs, ndsts, premultiplied;
    gpu_operation operation;
    typename reducer::factor factor;
    uint64_t scalar;
    gpu_span span;
    uint64_t at; /* where words begin, in bytes */
    gpu_crew crew;
};

/* ---- one at a time --------------------------------------------------------------------------- */

/* Something of a source: a word of any alignment, or a single element. */
template <typename reducer, bool is_element>
GPU_INLINE gpu_word gpu_reduce_load(const gpu_reducing<reducer> *r, uint32_t source, uint64_t at)
{
    const uint8_t *from = (const uint8_t *)r->srcs[source] + at;
    const gpu_word word = is_element ? gpu_load_element<reducer::element_bytes>(from, 0)
                                     : gpu_load_any_word<reducer::element_bytes>(from);

    return source == r->premultiplied ? reducer::multiplied(word, r->scalar) : word;
}

template <typename reducer, bool is_element>
GPU_INLINE void gpu_reduce_one(const gpu_reducing<reducer> *r, uint64_t at)
{
    typename reducer::sum sum = reducer::open(gpu_reduce_load<reducer, is_element>(r, 0, at));
    gpu_word word;

    GPU_NO_UNROLL
    for (uint32_t k = 1; k < r->nsrcs; k++)
        reducer::add(&sum, gpu_reduce_load<reducer, is_element>(r, k, at), r->operation);
    word = reducer::close(&sum, r->factor);
    GPU_NO_UNROLL
    for (uint32_t k = 0; k < r->ndsts; k++)
        if (is_element)
            gpu_store_element<reducer::element_bytes>((uint8_t *)r->dsts[k] + at, 0, word);
        else
            gpu_store_any_word<reducer::element_bytes>((uint8_t *)r->dsts[k] + at, word);
}

/* ---- many at once ------------------------------------------------------------------------------ */

template <typename reducer>
GPU_INLINE void gpu_reduce_finish(const gpu_reducing<reducer> *r, uint64_t at,
                                  const typename reducer::sum *sum)
{
    const gpu_word word = reducer::close(sum, r->factor);

    gpu_store_word(r->dst + at, word);
    GPU_NO_UNROLL
    for (uint32_t k = 1; k < r->ndsts; k++)
        gpu_store_word((uint8_t *)r->dsts[k] + at, word);
}

/* Some words of two sources, `stride` apart. */
template <typename reducer, uint32_t at_once>
GPU_INLINE void gpu_reduce_two(const gpu_reducing<reducer> *r, const uint8_t *one,
                               const uint8_t *other, uint64_t at, uint64_t stride)
{
    gpu_word first[at_once], second[at_once];

    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++) {
        first[u] = gpu_load_word_once(one + at + u * stride);
        second[u] = gpu_load_word_once(other + at + u * stride);
    }
    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++) {
        typename reducer::sum sum = reducer::open(first[u]);

        reducer::add(&sum, second[u], r->operation);
        gpu_reduce_finish(r, at + u * stride, &sum);
    }
}

/* A word of any number of sources, some of them at once. */
template <typename reducer, uint32_t at_once>
GPU_INLINE void gpu_reduce_many(const gpu_reducing<reducer> *r, uint64_t at)
{
    typename reducer::sum sum = {};

    GPU_NO_UNROLL
    for (uint32_t k = 0; k < r->nsrcs; k += at_once) {
        gpu_word words[at_once];

        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++)
            if (k + u < r->nsrcs)
                words[u] = gpu_load_word_once((const uint8_t *)r->srcs[k + u] + at);
            else
                words[u] = gpu_word{0, 0, 0, 0};
        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++)
            if (k + u == 0)
                sum = reducer::open(words[u]);
            else if (k + u < r->nsrcs)
                reducer::add(&sum, words[u], r->operation);
    }
    gpu_reduce_finish(r, at, &sum);
}

template <typename reducer> GPU_INLINE void gpu_reduce_words(const gpu_reducing<reducer> *r)
{
    const uint32_t at_once = 4, sources_at_once = 8;
    const uint64_t stride = (uint64_t)r->crew.count * GPU_WORD_BYTES;
    const uint64_t end = r->at + r->span.words * GPU_WORD_BYTES;
    uint64_t at = r->at + (uint64_t)r->crew.index * GPU_WORD_BYTES;

    if (r->nsrcs == 2) {
        const uint8_t *one = (const uint8_t *)r->srcs[0], *other = (const uint8_t *)r->srcs[1];

        GPU_NO_UNROLL
        for (; at + (at_once - 1) * stride < end; at += at_once * stride)
            gpu_reduce_two<reducer, at_once>(r, one, other, at, stride);
    }
    GPU_NO_UNROLL
    for (; at < end; at += stride)
        gpu_reduce_many<reducer, sources_at_once>(r, at);
}

/* ---- what callers use ---------------------------------------------------------------------------- */

/* Whether all buffers are aligned where words begin, and sources are summed as they are. */
template <typename reducer> GPU_INLINE bool gpu_reduces_words(const gpu_reducing<reducer> *r)
{
    uintptr_t addresses = 0;

    GPU_NO_UNROLL
    for (uint32_t k = 0; k < r->nsrcs; k++)
        addresses |= (uintptr_t)r->srcs[k] + r->at;
    GPU_NO_UNROLL
    for (uint32_t k = 0; k < r->ndsts; k++)
        addresses |= (uintptr_t)r->dsts[k] + r->at;
    return addresses % GPU_WORD_BYTES == 0 && r->premultiplied >= r->nsrcs;
}

template <typename kind> GPU_FUNCTION void gpu_reduce_by(const tutti_gpu_reduction *job,
                                                         gpu_crew crew)
{
    typedef gpu_reducer<kind> reducer;
    const gpu_span span = gpu_span_of<kind::element_bytes>(job->dsts[0], job->count);
    const gpu_reducing<reducer> r = {
        job->srcs, job->dsts, (uint8_t *)job->dsts[0], job->nsrcs, job->ndsts, job->premultiplied,
        gpu_operation_of(job->type, job->op), kind::factor_of(job->type, job->scale), job->scalar,
        span, (uint64_t)span.head * kind::element_bytes, crew,
    };

    if (gpu_reduces_words(&r))
        gpu_reduce_words(&r);
    else
        GPU_NO_UNROLL
        for (uint64_t w = crew.index; w < span.words; w += crew.count)
            gpu_reduce_one<reducer, false>(&r, r.at + w * GPU_WORD_BYTES);
    GPU_NO_UNROLL
    for (uint32_t i = gpu_first_edge(crew); i < span.edges; i += crew.count)
        gpu_reduce_one<reducer, true>(&r, gpu_edge(&span, i) * kind::element_bytes);
}

/* One source whose bits are what is wanted. */
GPU_INLINE bool gpu_is_copy(const tutti_gpu_reduction *job)
{
    return job->nsrcs == 1 && job->premultiplied != 0 &&
           (job->type >= TUTTI_FLOAT16 ? job->scale.multiply == 1.0 : job->scale.divide == 1);
>>>>>>> main
}

/* `job` and its arrays of pointers lie where all threads of the crew can read them. */
GPU_FUNCTION void gpu_reduce(const tutti_gpu_reduction *job, gpu_crew crew)
{
<<<<<<< HEAD
    if (crew.index >= crew.count)
=======
    if (crew.index >= crew.count || job->count == 0)
>>>>>>> main
        return;
    if (gpu_is_copy(job)) {
        for (uint32_t k = 0; k < job->ndsts; k++)
            gpu_copy(job->dsts[k], job->srcs[0], job->count * gpu_type_bytes(job->type), crew);
        return;
    }
<<<<<<< HEAD
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
=======
    GPU_WITH_KIND(job->type, gpu_reduce_by, job, crew)
>>>>>>> main
}

#endif
