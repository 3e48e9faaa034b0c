/* SPDX-License-Identifier: Apache-2.0
 * Memory for the calls under test: regions with guard bytes before and behind them.
 *
 * An arena is allocated once, for the largest case, and cut anew into equal regions for each. For
 * ranks on a GPU it is in the GPU's memory, and has a copy on the host that is filled and looked
 * at: give and fetch carry the present cut from one to the other. On the host both are the same.
 */
#ifndef PERF_BUFFERS_H
#define PERF_BUFFERS_H

#include "gpu.h"
#include "perf.h"

struct perf_arena {
    char *base;
    char *target;               /* what calls get; base, but on a GPU */
    const struct perf_gpu *gpu; /* NULL: none */
    size_t capacity_bytes;
    bool is_library_memory;

    /* The present cut. */
    size_t nregions, region_bytes, stride_bytes, guard_bytes, shift_bytes;
};

/* What an element holds before it is written. */
#define PERF_POISON 0xdb

/* Bytes that an arena needs for `nregions` regions of `region_bytes`. */
size_t perf_arena_need(size_t nregions, size_t region_bytes);

enum perf_memory {
    PERF_MEMORY_HEAP, PERF_MEMORY_LIBRARY, PERF_MEMORY_GPU, PERF_MEMORY_GPU_LIBRARY
};

/* Returns 0, or -1 when there is no memory. `gpu` is the one that has the memory, for the last two
 * kinds; its context is current, and it must outlive the arena. Free it with fini; a zeroed arena
 * is fine there. */
int perf_arena_init(struct perf_arena *arena, size_t capacity_bytes, enum perf_memory memory,
                    const struct perf_gpu *gpu);
void perf_arena_fini(struct perf_arena *arena);

/* Cut the arena into regions that start `shift_bytes` past an aligned address, write the guards and
 * poison what is between them. */
void perf_arena_cut(struct perf_arena *arena, size_t nregions, size_t region_bytes,
                    size_t shift_bytes);

/* Start of region `index`, and where calls are told that it is. */
char *perf_arena_region(const struct perf_arena *arena, size_t index);
char *perf_arena_target(const struct perf_arena *arena, size_t index);

/* What was filled goes to where calls find it; what calls have left there comes back. */
void perf_arena_give(const struct perf_arena *arena);
void perf_arena_fetch(const struct perf_arena *arena);

/* Guard bytes of all regions that have changed. */
size_t perf_arena_overruns(const struct perf_arena *arena);

/* How many of the `count` elements at `at` are not poison any more. */
size_t perf_poison_wrong(const void *at, size_t count, size_t element_bytes);

#endif
