/* SPDX-License-Identifier: Apache-2.0
 * Memory for the calls under test: regions with guard bytes before and after them.
 *
 * An arena is allocated once, for the largest case, and cut anew into equal regions for each case.
 * For ranks on a GPU it is in the GPU's memory and has a copy on the host, which is filled and
 * checked. perf_arena_give and perf_arena_fetch copy the current cut from one to the other. For
 * ranks on the host both are the same memory.
 */
#ifndef PERF_BUFFERS_H
#define PERF_BUFFERS_H

#include "gpu.h"
#include "perf.h"

struct perf_arena {
    char *base;
    char *target;               /* the memory that calls use; equal to base except on a GPU */
    const struct perf_gpu *gpu; /* NULL: none */
    size_t capacity_bytes;
    bool is_library_memory;

    /* The current cut. */
    size_t nregions, region_bytes, stride_bytes, guard_bytes, shift_bytes;
};

/* The value of each byte before it is written. */
#define PERF_POISON 0xdb

/* Bytes that an arena needs for `nregions` regions of `region_bytes`. */
size_t perf_arena_need(size_t nregions, size_t region_bytes);

enum perf_memory {
    PERF_MEMORY_HEAP, PERF_MEMORY_LIBRARY, PERF_MEMORY_GPU, PERF_MEMORY_GPU_LIBRARY
};

/* Allocates the arena. Returns 0, or -1 if there is not enough memory. `gpu` is used for the last
 * two kinds only; its context must be current, and it must outlive the arena. The caller releases
 * the arena with perf_arena_fini, which accepts a zero-initialized arena. */
int perf_arena_init(struct perf_arena *arena, size_t capacity_bytes, enum perf_memory memory,
                    const struct perf_gpu *gpu);
void perf_arena_fini(struct perf_arena *arena);

/* Cuts the arena into regions that start `shift_bytes` past an aligned address, writes the guards
 * and poisons the regions. The arena must hold perf_arena_need() bytes. */
void perf_arena_cut(struct perf_arena *arena, size_t nregions, size_t region_bytes,
                    size_t shift_bytes);

/* The start of region `index` in the memory that is filled and checked (region), and in the memory
 * that calls use (target). */
char *perf_arena_region(const struct perf_arena *arena, size_t index);
char *perf_arena_target(const struct perf_arena *arena, size_t index);

/* give copies the filled regions to the memory that calls use; fetch copies back what calls have
 * left there. */
void perf_arena_give(const struct perf_arena *arena);
void perf_arena_fetch(const struct perf_arena *arena);

/* The number of guard bytes, over all regions, that have changed. */
size_t perf_arena_overruns(const struct perf_arena *arena);

/* The number of elements, of the `count` at `at`, that are no longer poison. */
size_t perf_poison_wrong(const void *at, size_t count, size_t element_bytes);

#endif
