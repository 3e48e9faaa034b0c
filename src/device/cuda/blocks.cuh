/* SPDX-License-Identifier: Apache-2.0
 * Finds the elements that each rank of a collective gives to each other rank. Also loads and stores
 * up to 16 bytes at any alignment. */
#ifndef TUTTI_DEVICE_CUDA_BLOCKS_CUH
#define TUTTI_DEVICE_CUDA_BLOCKS_CUH

#include "device/cuda/arithmetic.cuh"
#include "device/cuda/work.h"
#include "schedule/collective.h"

/* A run of elements of a buffer. */
struct gpu_part {
    uint64_t first, count;
};

/* Returns the part of a buffer that is block `i`. */
GPU_INLINE gpu_part gpu_block_part(const struct tutti_kernel_blocks *blocks, uint32_t i)
{
    if (blocks->counts)
        return gpu_part{blocks->displs[i], blocks->counts[i]};
    return gpu_part{i * blocks->count, blocks->count};
}

/* Returns the part of `rank`'s input that rank `to` needs. */
GPU_INLINE gpu_part gpu_given(const struct tutti_kernel_work *work, uint32_t rank, uint32_t to)
{
    if (!tutti_collective_is_source(work->collective, rank, to, (uint32_t)work->root))
        return gpu_part{0, 0};
    if (tutti_input_is_per_rank(work->collective))
        return gpu_block_part(&work->in, to);
    return gpu_part{0, work->in.count};
}

/* Returns the part of `rank`'s output for the data that rank `from` gives to it. In a reduction
 * this is the part for the result. */
GPU_INLINE gpu_part gpu_taken(const struct tutti_kernel_work *work, uint32_t rank, uint32_t from)
{
    if (!tutti_collective_is_source(work->collective, from, rank, (uint32_t)work->root))
        return gpu_part{0, 0};
    if (tutti_output_is_per_rank(work->collective))
        return gpu_block_part(&work->out, from);
    return gpu_part{0, work->out.count};
}

/* Returns the scale of a reduction's results, which is 1 unless the reduction is an average. */
GPU_INLINE tutti_scale gpu_scale_of(bool is_average, uint32_t nranks)
{
    tutti_scale scale = {1.0, 1};

    if (is_average) {
        scale.multiply = 1.0 / nranks;
        scale.divide = nranks;
    }
    return scale;
}

/* ---- pieces of memory ---------------------------------------------------------------------- */

/* Returns the largest of 8, 4, 2 and 1 that divides both the address and `bytes`. */
GPU_INLINE uint32_t gpu_grain(const void *at, uint32_t bytes)
{
    const uint32_t bits = (uint32_t)(uintptr_t)at | bytes | 8;

    return bits & (0u - bits);
}

/* These do the work of gpu_load_some and gpu_store_some below in several accesses. */
GPU_FUNCTION gpu_word gpu_load_ragged(const uint8_t *at, uint32_t bytes)
{
    const uint32_t grain = gpu_grain(at, bytes);
    uint64_t low = 0, high = 0;

    for (uint32_t i = 0; i < bytes; i += grain) {
        const uint64_t value = grain == 8   ? gpu_load((const uint64_t *)(at + i))
                               : grain == 4 ? gpu_load((const uint32_t *)(at + i))
                               : grain == 2 ? gpu_load((const uint16_t *)(at + i))
                                            : gpu_load(at + i);

        if (i < 8)
            low |= value << 8 * i;
        else
            high |= value << 8 * (i - 8);
    }
    return gpu_word_of(low, high);
}

GPU_FUNCTION void gpu_store_ragged(uint8_t *at, gpu_word word, uint32_t bytes)
{
    const uint32_t grain = gpu_grain(at, bytes);

    for (uint32_t i = 0; i < bytes; i += grain) {
        const uint64_t value = gpu_half(word, i / 8) >> 8 * (i % 8);

        if (grain == 8)
            gpu_store((uint64_t *)(at + i), value);
        else if (grain == 4)
            gpu_store((uint32_t *)(at + i), (uint32_t)value);
        else if (grain == 2)
            gpu_store((uint16_t *)(at + i), (uint16_t)value);
        else
            gpu_store(at + i, (uint8_t)value);
    }
}

/* These load or store the first `bytes` <= 16 bytes of a word at any address. The rest of a loaded
 * word is 0. A store does not touch memory after the stored bytes. */
GPU_INLINE gpu_word gpu_load_some(const uint8_t *at, uint32_t bytes)
{
    return bytes == 16 && (uintptr_t)at % 16 == 0 ? gpu_load_word(at) : gpu_load_ragged(at, bytes);
}

GPU_INLINE void gpu_store_some(uint8_t *at, gpu_word word, uint32_t bytes)
{
    if (bytes == 16 && (uintptr_t)at % 16 == 0)
        gpu_store_word(at, word);
    else
        gpu_store_ragged(at, word, bytes);
}

/* ---- pre-multiplication --------------------------------------------------------------------- */

/* Returns the element by which this rank's input is multiplied, in the first bytes of the
 * result. */
GPU_INLINE uint64_t gpu_scalar_of(const struct tutti_kernel_work *work)
{
    if (!work->scalar_address)
        return work->scalar;
    return gpu_half(gpu_load_ragged((const uint8_t *)work->scalar_address,
                                    gpu_type_bytes(work->type)), 0);
}

template <typename kind> GPU_INLINE gpu_word gpu_multiplied(gpu_word word, uint64_t scalar)
{
    return gpu_reducer<kind>::multiplied(word, scalar);
}

/* Multiplies the elements of a word by the element in the first bytes of `scalar`. */
GPU_FUNCTION gpu_word gpu_premultiplied(uint32_t type, gpu_word word, uint64_t scalar)
{
    GPU_WITH_KIND(type, gpu_multiplied, word, scalar)
}

#endif
