/* SPDX-License-Identifier: Apache-2.0
 * FIFOs: slots that one block of a rank fills and the same block of a peer empties.
 *
 * A message travels in as many slots as its size takes, none of which has bytes of another message:
 * so both sides cut alike, by the size alone. The sender fills a slot when fewer are on their way than
 * there are slots, which the receiver's `head` tells; it releases `tail` when a slot is full.
 *
 * Messages that fit travel flagged instead, in one slot: in 16-byte words of two times four bytes of
 * data and a flag each, so that the receiver sees them without a release. They lie in an area of
 * their own, where nothing else ever does. The flag is made of the slot's number among all ever
 * filled; the number of slots being even, no older word at the same place can have it, not even when
 * flags have run through all 32 bits, whose number is odd.
 *
 * Both sides count slots in device memory (struct tutti_gpu_counters), from launch to launch.
 */
#ifndef TUTTI_DEVICE_CUDA_FIFO_CUH
#define TUTTI_DEVICE_CUDA_FIFO_CUH

#include "device/cuda/core.cuh"
#include "device/cuda/program.h"

GPU_INLINE struct tutti_gpu_fifo *gpu_fifo_at(const struct tutti_gpu_layout *layout,
                                              uint8_t *mailbox, uint32_t number)
{
    return (struct tutti_gpu_fifo *)(mailbox + layout->fifo_at + number * layout->fifo_stride);
}

/* Slots that I have ever filled of, or emptied from, a peer's FIFO. */
GPU_INLINE uint64_t *gpu_fifo_counter(const struct gpu_run *run, uint32_t number, uint32_t peer,
                                      bool is_receive)
{
    const uint64_t row = (is_receive ? run->domain->layout.channels : 0) + number;

    return (uint64_t *)(run->counters + 1) + row * run->nranks + peer;
}

GPU_INLINE struct tutti_gpu_header *gpu_slot_header(const struct tutti_gpu_layout *layout,
                                                    struct tutti_gpu_fifo *fifo, uint64_t slot)
{
    return (struct tutti_gpu_header *)(fifo + 1) + slot % layout->slots;
}

GPU_INLINE uint8_t *gpu_slot_data(const struct tutti_gpu_layout *layout,
                                  struct tutti_gpu_fifo *fifo, uint64_t slot)
{
    struct tutti_gpu_header *headers = (struct tutti_gpu_header *)(fifo + 1);

    return (uint8_t *)(headers + layout->slots) + slot % layout->slots * layout->slot_bytes;
}

/* ---- flagged slots ---------------------------------------------------------------------- */

enum { GPU_HEADER_WORDS = 4 }; /* of 8 bytes, which precede the data */

GPU_INLINE uint8_t *gpu_slot_words(const struct tutti_gpu_layout *layout,
                                   struct tutti_gpu_fifo *fifo, uint64_t slot)
{
    return gpu_slot_data(layout, fifo, 0) + (uint64_t)layout->slots * layout->slot_bytes +
           slot % layout->slots * layout->flagged_bytes;
}

/* Does a message of so many bytes travel flagged? */
GPU_INLINE bool gpu_is_flagged(const struct tutti_gpu_layout *layout, uint64_t size_bytes)
{
    return size_bytes + GPU_HEADER_WORDS * sizeof(uint64_t) <= layout->flagged_bytes / 2 &&
           size_bytes <= layout->slot_bytes;
}

GPU_INLINE uint32_t gpu_slot_flag(uint64_t slot)
{
    return (uint32_t)(slot % UINT32_MAX) + 1;
}

GPU_INLINE void gpu_store_slot_word(uint8_t *words, uint32_t i, uint64_t value, uint32_t flag)
{
    gpu_store_flagged(words + (uint64_t)i * sizeof(gpu_word),
                      gpu_word{(uint32_t)value, flag, (uint32_t)(value >> 32), flag});
}

GPU_INLINE bool gpu_load_slot_word(const uint8_t *words, uint32_t i, uint32_t flag,
                                   uint64_t *ret_value)
{
    const gpu_word got = gpu_load_flagged(words + (uint64_t)i * sizeof(gpu_word));

    *ret_value = (uint64_t)got.z << 32 | got.x;
    return got.y == flag && got.w == flag;
}

/* All threads of a block: 8-byte aligned bytes into a flagged slot; the last word may be padded. */
GPU_INLINE void gpu_pack_slot(uint8_t *words, const uint8_t *data, uint64_t size_bytes,
                              uint32_t flag)
{
    const uint32_t count = (uint32_t)((size_bytes + 7) / 8);

    for (uint32_t i = gpu_thread(); i < count; i += gpu_threads())
        gpu_store_slot_word(words, GPU_HEADER_WORDS + i, gpu_load((const uint64_t *)data + i),
                            flag);
}

/* The reverse, when the first word has come: the others are on their way. False when the launch is to
 * end. */
GPU_INLINE bool gpu_unpack_slot(const struct gpu_run *run, uint32_t peer, uint8_t *data,
                                const uint8_t *words, uint64_t size_bytes, uint32_t flag)
{
    const uint32_t count = (uint32_t)((size_bytes + 7) / 8);
    uint32_t polls = 0;

    for (uint32_t i = gpu_thread(); i < count; i += gpu_threads()) {
        uint64_t value;

        while (!gpu_load_slot_word(words, GPU_HEADER_WORDS + i, flag, &value))
            if (!gpu_may_wait(run, peer, &polls))
                return false;
        gpu_store((uint64_t *)data + i, value);
    }
    return true;
}

#endif
