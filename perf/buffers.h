/* SPDX-License-Identifier: Apache-2.0
 * Provides memory for the calls under test. Each buffer is a region with guard bytes before and
 * after the region. Changed guard bytes show that a call wrote out of bounds.
 *
 * An arena is allocated once, for the largest case, and is cut anew into equal regions for each
 * case. For ranks on a GPU, calls use memory of the GPU, and a copy on the host is filled and
 * checked. perf_arena_give copies the regions in use from the host to the GPU, and perf_arena_fetch
 * copies them back. For ranks on the host, both are the same memory, and these functions do
 * nothing.
 */
#ifndef PERF_BUFFERS_H
#define PERF_BUFFERS_H

#include "gpu.h"
#include "perf.h"

struct perf_arena {
    char *base;                 /* the host memory that is filled and checked */
    char *target;               /* the memory that calls use; equal to base except on a GPU */
    const struct perf_gpu *gpu; /* borrowed; NULL if the memory is not on a GPU */
    size_t capacity_bytes;
    bool is_library_memory; /* `target` is from tuttiMemAlloc */

    /* The sizes of the latest perf_arena_cut. Region i begins after i strides, a guard and the
     * shift. */
    size_t nregions, region_bytes, stride_bytes, guard_bytes, shift_bytes;
};

/* perf_arena_cut sets each byte of a region to this value. */
#define PERF_POISON 0xdb

/* Returns the bytes that an arena needs for `nregions` regions of `region_bytes` bytes each. */
size_t perf_arena_need(size_t nregions, size_t region_bytes);

/* Where the memory that calls use comes from. */
enum perf_memory {
    PERF_MEMORY_HEAP,        /* malloc, on the host */
    PERF_MEMORY_LIBRARY,     /* tuttiMemAlloc, on the host */
    PERF_MEMORY_GPU,         /* cuMemAlloc */
    PERF_MEMORY_GPU_LIBRARY, /* tuttiMemAlloc, on a GPU */
};

/* Allocates the arena. Returns 0, or -1 if there is not enough memory. `gpu` is used only if
 * `memory` is one of the two GPU kinds. Then the GPU's context must be current, and `gpu` must
 * outlive the arena. The caller releases the arena with perf_arena_fini, which accepts a
 * zero-initialized arena. */
int perf_arena_init(struct perf_arena *arena, size_t capacity_bytes, enum perf_memory memory,
                    const struct perf_gpu *gpu);
void perf_arena_fini(struct perf_arena *arena);

/* Cuts the arena into regions that start `shift_bytes` past an aligned address. Writes the guard
 * bytes, and fills the regions with PERF_POISON. Both are written to the host memory only. The
 * arena must hold perf_arena_need(nregions, region_bytes) bytes. */
void perf_arena_cut(struct perf_arena *arena, size_t nregions, size_t region_bytes,
                    size_t shift_bytes);

/* perf_arena_region returns the start of region `index` in the host memory that is filled and
 * checked. perf_arena_target returns its start in the memory that calls use. */
char *perf_arena_region(const struct perf_arena *arena, size_t index);
char *perf_arena_target(const struct perf_arena *arena, size_t index);

/* perf_arena_give copies all regions and guards to the memory that calls use. perf_arena_fetch
 * copies them back after the calls. Both copies are complete on return. */
void perf_arena_give(const struct perf_arena *arena);
void perf_arena_fetch(const struct perf_arena *arena);

/* Returns the number of guard bytes of all regions that have changed. */
size_t perf_arena_overruns(const struct perf_arena *arena);

/* Counts the elements, of the `count` elements at `at`, in which a byte is not PERF_POISON. */
size_t perf_poison_wrong(const void *at, size_t count, size_t element_bytes);

#endif
