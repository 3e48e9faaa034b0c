/* SPDX-License-Identifier: Apache-2.0
 * Reduces any number of sources into any number of destinations. Any number of threads, called a
 * crew, share the work. A crew need not consist of whole blocks, because no thread waits for
 * others. The rules of device/cpu/cpu.h on rounding and scaling apply.
 *
 * A destination may be the same buffer as a source. This is safe because the same thread reads an
 * element of all sources and then writes this element of all destinations.
 */
#ifndef TUTTI_DEVICE_CUDA_REDUCE_CUH
#define TUTTI_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/platform.cuh"

#include "device/cuda/arithmetic.cuh"
#include "device/cuda/copy.cuh"
#include "device/cuda/local.h"
#include "device/cuda/words.cuh"

/* Returns a job without scaling and without pre-multiplication. The arrays are borrowed. */
GPU_INLINE tutti_kernel_reduction gpu_plain_job(uint32_t type, uint32_t op, uint64_t count,
                                                const void *const *srcs, uint32_t nsrcs,
                                                void *const *dsts, uint32_t ndsts)
{
    return tutti_kernel_reduction{type, op, nsrcs, ndsts, srcs, dsts, count, {1.0, 1},
                                  TUTTI_KERNEL_NO_SOURCE, 0, 0};
}

/* The parts of a job that the loops below need. A copy of them stays in registers. */
template <typename reducer> struct gpu_reducing {
    const void *const *srcs;
    void *const *dsts;
    uint8_t *dst; /* the first destination */
    uint32_t nsrcs, ndsts, premultiplied;
    gpu_operation operation;
    typename reducer::factor factor;
    uint64_t scalar;
    gpu_span span; /* words and single elements of the buffers */
    uint64_t at;   /* byte offset of the first word in all buffers */
    gpu_crew crew;
};

/* ---- one at a time --------------------------------------------------------------------------- */

/* Loads a word at any alignment, or a single element, of a source. `at` is a byte offset. A source
 * that is to be pre-multiplied is multiplied here. */
template <typename reducer, bool is_element>
GPU_INLINE gpu_word gpu_reduce_load(const gpu_reducing<reducer> *r, uint32_t source, uint64_t at)
{
    const uint8_t *from = (const uint8_t *)r->srcs[source] + at;
    const gpu_word word = is_element ? gpu_load_element<reducer::element_bytes>(from, 0)
                                     : gpu_load_any_word<reducer::element_bytes>(from);

    return source == r->premultiplied ? reducer::multiplied(word, r->scalar) : word;
}

/* Reduces one word at any alignment, or a single element, of all sources. */
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

/* ---- many at once ---------------------------------------------------------------------------- */

/* Scales and rounds the result for one word, and stores it to all destinations. */
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

/* Reduces `at_once` words, which are `stride` bytes apart, of one or two sources. All loads come
 * before the arithmetic, so that they are in flight at the same time. */
template <typename reducer, uint32_t nsrcs, uint32_t at_once>
GPU_INLINE void gpu_reduce_few(const gpu_reducing<reducer> *r, const uint8_t *one,
                               const uint8_t *other, uint64_t at, uint64_t stride)
{
    gpu_word first[at_once], second[at_once];

    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++) {
        first[u] = gpu_load_word_once(one + at + u * stride);
        if (nsrcs == 2)
            second[u] = gpu_load_word_once(other + at + u * stride);
    }
    GPU_UNROLL
    for (uint32_t u = 0; u < at_once; u++) {
        typename reducer::sum sum = reducer::open(first[u]);

        if (nsrcs == 2)
            reducer::add(&sum, second[u], r->operation);
        gpu_reduce_finish(r, at + u * stride, &sum);
    }
}

/* Reduces one word of any number of sources. Loads from `at_once` sources at a time. */
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

/* Reduces this thread's words. All buffers must be aligned to words. */
template <typename reducer> GPU_INLINE void gpu_reduce_words(const gpu_reducing<reducer> *r)
{
    const uint32_t at_once = 4, sources_at_once = 8;
    const uint64_t stride = (uint64_t)r->crew.count * GPU_WORD_BYTES;
    const uint64_t end = r->at + r->span.words * GPU_WORD_BYTES;
    const uint8_t *one = (const uint8_t *)r->srcs[0];
    const uint8_t *other = r->nsrcs == 2 ? (const uint8_t *)r->srcs[1] : one;
    uint64_t at = r->at + (uint64_t)r->crew.index * GPU_WORD_BYTES;

    if (r->nsrcs == 1)
        GPU_NO_UNROLL
        for (; at + (at_once - 1) * stride < end; at += at_once * stride)
            gpu_reduce_few<reducer, 1, at_once>(r, one, other, at, stride);
    else if (r->nsrcs == 2)
        GPU_NO_UNROLL
        for (; at + (at_once - 1) * stride < end; at += at_once * stride)
            gpu_reduce_few<reducer, 2, at_once>(r, one, other, at, stride);
    GPU_NO_UNROLL
    for (; at < end; at += stride)
        gpu_reduce_many<reducer, sources_at_once>(r, at);
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* Stores a result of a scan to destination `k`, unless that destination is NULL. */
template <typename reducer, bool is_element>
GPU_INLINE void gpu_scan_store(const gpu_reducing<reducer> *r, uint32_t k, uint64_t at,
                               gpu_word word)
{
    if (r->dsts[k] == NULL)
        return;
    if (is_element)
        gpu_store_element<reducer::element_bytes>((uint8_t *)r->dsts[k] + at, 0, word);
    else
        gpu_store_any_word<reducer::element_bytes>((uint8_t *)r->dsts[k] + at, word);
}

/* Scans one word or one element of all sources. Loads from `at_once` sources at a time, and stores
 * to a destination only after the load from the source of that number. An exclusive scan needs no
 * last source. */
template <typename reducer, bool is_element>
GPU_INLINE void gpu_scan_one(const gpu_reducing<reducer> *r, bool is_exclusive, uint64_t at)
{
    const uint32_t at_once = is_element ? 1 : 4, nloads = r->nsrcs - (is_exclusive ? 1 : 0);
    typename reducer::sum sum = {};
    gpu_word result = {0, 0, 0, 0};

    GPU_NO_UNROLL
    for (uint32_t k = 0; k < r->nsrcs; k += at_once) {
        gpu_word words[at_once];

        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++)
            words[u] = k + u < nloads ? gpu_reduce_load<reducer, is_element>(r, k + u, at)
                                      : gpu_word{0, 0, 0, 0};
        GPU_UNROLL
        for (uint32_t u = 0; u < at_once; u++) {
            if (k + u >= r->nsrcs)
                continue;
            if (is_exclusive && k + u > 0)
                gpu_scan_store<reducer, is_element>(r, k + u, at, result);
            /* The result of a single source has the bits of the source, but a logical operation
             * makes it a truth value, by combining it with itself. */
            if (k + u == 0) {
                sum = reducer::open(words[u]);
                result = words[u];
            }
            if (k + u > 0 || r->operation.op >= TUTTI_LAND) {
                gpu_operation operation = r->operation;

                if (k + u == 0)
                    operation.op = TUTTI_LOR;
                reducer::add(&sum, words[u], operation);
                result = reducer::close(&sum, r->factor);
            }
            if (!is_exclusive)
                gpu_scan_store<reducer, is_element>(r, k + u, at, result);
        }
    }
}

/* ---- the whole job --------------------------------------------------------------------------- */

/* Returns true if the fast loops can run the job: all buffers are aligned to words at offset `at`,
 * and no source is pre-multiplied. */
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

/* Prepares a job whose words begin where `aligned` is aligned to words. */
template <typename kind>
GPU_INLINE gpu_reducing<gpu_reducer<kind>> gpu_reducing_of(const tutti_kernel_reduction *job,
                                                           const void *aligned, gpu_crew crew)
{
    const gpu_span span = gpu_span_of<kind::element_bytes>(aligned, job->count);

    return gpu_reducing<gpu_reducer<kind>>{
        job->srcs, job->dsts, (uint8_t *)job->dsts[0], job->nsrcs, job->ndsts, job->premultiplied,
        gpu_operation_of(job->type, job->op), kind::factor_of(job->type, job->scale), job->scalar,
        span, (uint64_t)span.head * kind::element_bytes, crew,
    };
}

/* Runs a scan on elements of a kind. */
template <typename kind>
GPU_FUNCTION void gpu_scan_by(const tutti_kernel_reduction *job, bool is_exclusive, gpu_crew crew)
{
    typedef gpu_reducer<kind> reducer;
    const gpu_reducing<reducer> r = gpu_reducing_of<kind>(job, job->srcs[0], crew);

    GPU_NO_UNROLL
    for (uint32_t i = gpu_first_edge(crew); i < r.span.edges; i += crew.count)
        gpu_scan_one<reducer, true>(&r, is_exclusive,
                                    gpu_edge(&r.span, i) * kind::element_bytes);
    GPU_NO_UNROLL
    for (uint64_t w = crew.index; w < r.span.words; w += crew.count)
        gpu_scan_one<reducer, false>(&r, is_exclusive, r.at + w * GPU_WORD_BYTES);
}

/* Runs a reduction on elements of a kind. */
template <typename kind> GPU_FUNCTION void gpu_reduce_by(const tutti_kernel_reduction *job,
                                                         gpu_crew crew)
{
    typedef gpu_reducer<kind> reducer;
    const gpu_reducing<reducer> r = gpu_reducing_of<kind>(job, job->dsts[0], crew);
    const gpu_span span = r.span;

    /* The single elements at both ends come first, so that the loops below need fewer registers. */
    GPU_NO_UNROLL
    for (uint32_t i = gpu_first_edge(crew); i < span.edges; i += crew.count)
        gpu_reduce_one<reducer, true>(&r, gpu_edge(&span, i) * kind::element_bytes);
    if (gpu_reduces_words(&r))
        gpu_reduce_words(&r);
    else
        GPU_NO_UNROLL
        for (uint64_t w = crew.index; w < span.words; w += crew.count)
            gpu_reduce_one<reducer, false>(&r, r.at + w * GPU_WORD_BYTES);
}

/* Returns true if the job only copies one source, so that each result has the bits of the
 * source. */
GPU_INLINE bool gpu_is_copy(const tutti_kernel_reduction *job)
{
    return job->nsrcs == 1 && job->premultiplied != 0 &&
           (gpu_is_floating(job->type) ? job->scale.multiply == 1.0 : job->scale.divide == 1);
}

/* Copies one source to several destinations. The copy is a sum of one source of bytes, which does
 * not change the bytes. */
GPU_INLINE void gpu_copy_job_to_all(const tutti_kernel_reduction *job, gpu_crew crew)
{
    tutti_kernel_reduction copy = *job;

    copy.type = TUTTI_UINT8;
    copy.op = TUTTI_SUM;
    copy.count = job->count * gpu_type_bytes(job->type);
    copy.scale.divide = 1;
    gpu_reduce_by<gpu_int8_kind>(&copy, crew);
}

/* Stores to destination k the combination of sources 0 to k, or to k - 1 if `is_exclusive`; then
 * nothing is stored to destination 0. A destination that is NULL is left out. A destination may be
 * the same buffer as the source of its number. There are as many destinations as sources. All
 * threads of the crew must call this. */
GPU_FUNCTION void gpu_scan(const tutti_kernel_reduction *job, bool is_exclusive, gpu_crew crew)
{
    if (crew.index >= crew.count || job->count == 0)
        return;
    GPU_WITH_KIND(job->type, gpu_scan_by, job, is_exclusive, crew)
}

/* Runs `job`. All threads of the crew must call this. `job` and its arrays of pointers must be in
 * memory that all these threads can read. */
GPU_FUNCTION void gpu_reduce(const tutti_kernel_reduction *job, gpu_crew crew)
{
    if (crew.index >= crew.count || job->count == 0)
        return;
    if (!gpu_is_copy(job))
        GPU_WITH_KIND(job->type, gpu_reduce_by, job, crew)
    if (job->ndsts == 1)
        gpu_copy(job->dsts[0], job->srcs[0], job->count * gpu_type_bytes(job->type), crew);
    else
        gpu_copy_job_to_all(job, crew);
}

#endif
