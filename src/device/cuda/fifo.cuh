/* SPDX-License-Identifier: Apache-2.0
 * Gives access to FIFOs. A FIFO is a ring of slots in a mailbox (work.h). One block of a rank fills
 * the slots, and the block with the same number of a peer empties them.
 *
 * A message takes as many slots as its size needs, and no slot has bytes of two messages. So both
 * sides cut a message into slots in the same way, from its size alone. The sender may fill a slot
 * while fewer slots than the FIFO has are unacknowledged (the receiver's `head`). It releases
 * `tail` after it has filled the slot.
 *
 * Small messages travel flagged instead, in one slot. Each 16-byte word holds twice four bytes of
 * data and a flag, so that the receiver sees the data without a release. Flagged words have an area
 * of their own, which holds nothing else. The flag is the number of the slot among all ever filled,
 * modulo a period. A word of the previous period would look like a new one. So the receiver cleans
 * the area of each of a period's last slots before it acknowledges the slot.
 *
 * Both sides count slots in device memory (struct tutti_kernel_counters), from launch to launch.
 */
#ifndef TUTTI_DEVICE_CUDA_FIFO_CUH
#define TUTTI_DEVICE_CUDA_FIFO_CUH

#include "device/cuda/core.cuh"
#include "device/cuda/program.h"

/* Returns FIFO `number` of a mailbox. */
GPU_INLINE struct tutti_kernel_fifo *gpu_fifo_at(const struct tutti_kernel_layout *layout,
                                                 uint8_t *mailbox, uint32_t number)
{
    return (struct tutti_kernel_fifo *)(mailbox + layout->fifo_at + number * layout->fifo_stride);
}

/* Returns the counter of the slots of FIFO `number` that this rank has ever filled for `peer`. If
 * `is_receive`, returns the counter of the slots that it has emptied. */
GPU_INLINE uint64_t *gpu_fifo_counter(const struct gpu_run *run, uint32_t number, uint32_t peer,
                                      bool is_receive)
{
    const uint64_t row = (is_receive ? run->domain->layout.channels : 0) + number;

    return (uint64_t *)(run->counters + 1) + row * run->nranks + peer;
}

/* These return the header and the data of a slot. `slot` counts all slots ever filled. */
GPU_INLINE struct tutti_kernel_header *gpu_slot_header(const struct tutti_kernel_layout *layout,
                                                       struct tutti_kernel_fifo *fifo,
                                                       uint64_t slot)
{
    return (struct tutti_kernel_header *)(fifo + 1) + slot % layout->slots;
}

GPU_INLINE uint8_t *gpu_slot_data(const struct tutti_kernel_layout *layout,
                                  struct tutti_kernel_fifo *fifo, uint64_t slot)
{
    struct tutti_kernel_header *headers = (struct tutti_kernel_header *)(fifo + 1);

    return (uint8_t *)(headers + layout->slots) + slot % layout->slots * layout->slot_bytes;
}

/* ---- flagged slots ---------------------------------------------------------------------- */

enum { GPU_HEADER_WORDS = 4 }; /* words of 8 bytes that precede the data */
/* The flags of slots repeat after this many slots. */
#define GPU_SLOT_PERIOD UINT64_C(0x80000000)

/* Returns the flagged area of a slot. */
GPU_INLINE uint8_t *gpu_slot_words(const struct tutti_kernel_layout *layout,
                                   struct tutti_kernel_fifo *fifo, uint64_t slot)
{
    return gpu_slot_data(layout, fifo, 0) + (uint64_t)layout->slots * layout->slot_bytes +
           slot % layout->slots * layout->flagged_bytes;
}

/* True if a message of `size_bytes` travels flagged. */
GPU_INLINE bool gpu_is_flagged(const struct tutti_kernel_layout *layout, uint64_t size_bytes)
{
    return size_bytes + GPU_HEADER_WORDS * sizeof(uint64_t) <= layout->flagged_bytes / 2 &&
           size_bytes <= layout->slot_bytes;
}

GPU_INLINE uint32_t gpu_slot_flag(uint64_t slot)
{
    return (uint32_t)(slot % GPU_SLOT_PERIOD) + 1;
}

/* Stores 8 bytes of data as word `i` of a flagged slot. */
GPU_INLINE void gpu_store_slot_word(uint8_t *words, uint32_t i, uint64_t value, uint32_t flag)
{
    gpu_store_flagged(words + (uint64_t)i * sizeof(gpu_word),
                      gpu_word{(uint32_t)value, flag, (uint32_t)(value >> 32), flag});
}

/* True if word `i` has arrived; *ret_value is undefined if it has not. Does not wait. */
GPU_INLINE bool gpu_load_slot_word(const uint8_t *words, uint32_t i, uint32_t flag,
                                   uint64_t *ret_value)
{
    const gpu_word got = gpu_load_flagged(words + (uint64_t)i * sizeof(gpu_word));

    *ret_value = (uint64_t)got.z << 32 | got.x;
    return got.y == flag && got.w == flag;
}

/* All threads of a block: copies `size_bytes` bytes of `data`, which is aligned to 8 bytes, into a
 * flagged slot. It reads `data` up to the next multiple of 8 bytes. */
GPU_INLINE void gpu_pack_slot(uint8_t *words, const uint8_t *data, uint64_t size_bytes,
                              uint32_t flag)
{
    const uint32_t count = (uint32_t)((size_bytes + 7) / 8);

    for (uint32_t i = gpu_thread(); i < count; i += gpu_threads())
        gpu_store_slot_word(words, GPU_HEADER_WORDS + i, gpu_load((const uint64_t *)data + i),
                            flag);
}

/* All threads of a block: copies `size_bytes` bytes from a flagged slot to `data`. It stores whole
 * words of 8 bytes. It waits for words that have not arrived yet, so call it after the first word
 * of the slot has arrived. False, to the calling thread, if the launch must end. */
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

/* All threads of the block: clears the data and flags of a flagged slot. A barrier must come
 * between the last load from the slot and this call. */
GPU_FUNCTION void gpu_clean_slot(const struct tutti_kernel_layout *layout,
                                 struct tutti_kernel_fifo *fifo, uint64_t slot)
{
    uint8_t *words = gpu_slot_words(layout, fifo, slot);

    for (uint32_t i = gpu_thread(); i < layout->flagged_bytes / sizeof(gpu_word);
         i += gpu_threads())
        gpu_store_slot_word(words, i, 0, 0);
}

/* True if the slot is among the last of its period. So each place in the FIFO is cleaned once per
 * period. */
GPU_INLINE bool gpu_slot_must_be_cleaned(const struct tutti_kernel_layout *layout, uint64_t slot)
{
    return slot % GPU_SLOT_PERIOD >= GPU_SLOT_PERIOD - layout->slots;
}

#endif
