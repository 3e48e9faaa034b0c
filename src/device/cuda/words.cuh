/* SPDX-License-Identifier: Apache-2.0
 * Divides jobs over buffers among threads, and loads and stores parts of buffers. A job begins with
 * single elements, up to the point where the first destination is aligned. Then come 16-byte words,
 * and at last the remaining single elements. */
#ifndef TUTTI_DEVICE_CUDA_WORDS_CUH
#define TUTTI_DEVICE_CUDA_WORDS_CUH

#include "device/cuda/platform.cuh"

enum { GPU_WORD_BYTES = 16 };

/* The threads that share a job, and the index of this one. A thread whose index is not below the
 * count does nothing. A crew need not consist of whole blocks or whole warps. */
struct gpu_crew {
    uint32_t index, count;
};

/* Returns the calling thread's place in the crew of its block. */
GPU_INLINE gpu_crew gpu_crew_of_block(void)
{
    return gpu_crew{gpu_thread(), gpu_crew_threads()};
}

GPU_INLINE gpu_crew gpu_crew_of_grid(void)
{
    return gpu_crew{gpu_block() * gpu_threads() + gpu_thread(), gpu_blocks() * gpu_threads()};
}

/* ---- halves of words --------------------------------------------------------------------- */

/* Returns the first half of a word if `i` is 0, and else the second half. */
GPU_INLINE uint64_t gpu_half(gpu_word word, uint32_t i)
{
    return i == 0 ? word.x | (uint64_t)word.y << 32 : word.z | (uint64_t)word.w << 32;
}

GPU_INLINE gpu_word gpu_word_of(uint64_t low, uint64_t high)
{
    return gpu_word{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
}

/* Returns a word filled with copies of the element in the first bytes of `bits`. */
GPU_INLINE gpu_word gpu_word_filled(uint64_t bits, uint32_t element_bytes)
{
    if (element_bytes == 1)
        bits = (bits & 0xff) * UINT64_C(0x0101010101010101);
    else if (element_bytes == 2)
        bits = (bits & 0xffff) * UINT64_C(0x0001000100010001);
    else if (element_bytes == 4)
        bits = (bits & 0xffffffffu) * UINT64_C(0x0000000100000001);
    return gpu_word_of(bits, bits);
}

/* ---- single elements ------------------------------------------------------------------------ */

/* Returns element i of an array, in the first bytes of a word. The other bytes are 0. */
template <uint32_t element_bytes> GPU_INLINE gpu_word gpu_load_element(const void *base, uint64_t i)
{
    if (element_bytes == 1)
        return gpu_word{gpu_load((const uint8_t *)base + i), 0, 0, 0};
    if (element_bytes == 2)
        return gpu_word{gpu_load((const uint16_t *)base + i), 0, 0, 0};
    if (element_bytes == 4)
        return gpu_word{gpu_load((const uint32_t *)base + i), 0, 0, 0};
    return gpu_word_of(gpu_load((const uint64_t *)base + i), 0);
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

/* ---- words of any alignment ------------------------------------------------------------------ */

/* These load or store a word in several parts. `at` must be aligned to the size of a part. */
template <typename part> GPU_INLINE gpu_word gpu_load_parts(const uint8_t *at)
{
    const uint32_t n = 8 / sizeof(part);
    uint64_t halves[2] = {0, 0};

    GPU_UNROLL
    for (uint32_t i = 0; i < 2 * n; i++)
        halves[i / n] |= (uint64_t)gpu_load((const part *)at + i) << i % n * 8 * sizeof(part);
    return gpu_word_of(halves[0], halves[1]);
}

template <typename part> GPU_INLINE void gpu_store_parts(uint8_t *at, gpu_word word)
{
    const uint32_t n = 8 / sizeof(part);

    GPU_UNROLL
    for (uint32_t i = 0; i < 2 * n; i++)
        gpu_store((part *)at + i, (part)(gpu_half(word, i / n) >> i % n * 8 * sizeof(part)));
}

/* These load or store a word in as few accesses as the alignment of `at` allows. `at` must at least
 * be aligned to an element. */
template <uint32_t element_bytes> GPU_INLINE gpu_word gpu_load_any_word(const uint8_t *at)
{
    const uint32_t beyond = (uint32_t)(uintptr_t)at % GPU_WORD_BYTES;

    if (beyond == 0)
        return gpu_load_word(at);
    if (element_bytes == 8 || beyond % 8 == 0)
        return gpu_load_parts<uint64_t>(at);
    if (element_bytes == 4 || beyond % 4 == 0)
        return gpu_load_parts<uint32_t>(at);
    if (element_bytes == 2 || beyond % 2 == 0)
        return gpu_load_parts<uint16_t>(at);
    return gpu_load_parts<uint8_t>(at);
}

template <uint32_t element_bytes> GPU_INLINE void gpu_store_any_word(uint8_t *at, gpu_word word)
{
    const uint32_t beyond = (uint32_t)(uintptr_t)at % GPU_WORD_BYTES;

    if (beyond == 0)
        gpu_store_word(at, word);
    else if (element_bytes == 8 || beyond % 8 == 0)
        gpu_store_parts<uint64_t>(at, word);
    else if (element_bytes == 4 || beyond % 4 == 0)
        gpu_store_parts<uint32_t>(at, word);
    else if (element_bytes == 2 || beyond % 2 == 0)
        gpu_store_parts<uint16_t>(at, word);
    else
        gpu_store_parts<uint8_t>(at, word);
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* How `count` elements are divided: `head` single elements, then `words` words, then a tail of
 * single elements. `edges` is the number of single elements, head and tail together. */
struct gpu_span {
    uint64_t words, count, edges;
    uint32_t head;
};

/* Divides `count` elements so that the words of buffer `first` are aligned. */
template <uint32_t element_bytes> GPU_INLINE gpu_span gpu_span_of(const void *first, uint64_t count)
{
    const uint32_t per_word = GPU_WORD_BYTES / element_bytes;
    const uint32_t beyond = (uint32_t)(uintptr_t)first % GPU_WORD_BYTES;
    gpu_span span = {0, count, 0, (GPU_WORD_BYTES - beyond) % GPU_WORD_BYTES / element_bytes};

    if (span.head > count)
        span.head = (uint32_t)count;
    span.words = (count - span.head) / per_word;
    span.edges = count - span.words * per_word;
    return span;
}

/* Returns the index of the i-th single element of a span in the buffer. */
GPU_INLINE uint64_t gpu_edge(const gpu_span *span, uint64_t i)
{
    return i < span->head ? i : span->count - span->edges + i;
}

/* Returns the number of this thread's first single element. The last thread of the crew gets number
 * 0, because the threads at the end of the crew have the fewest words. */
GPU_INLINE uint32_t gpu_first_edge(gpu_crew crew)
{
    return crew.count - 1 - crew.index;
}

#endif
