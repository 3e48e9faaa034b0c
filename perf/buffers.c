/* SPDX-License-Identifier: Apache-2.0
 * Lays out the regions and their guard bytes in an arena, and checks the guard bytes. */
#include "buffers.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096
#define LINE_BYTES 64
#define GUARD 0xa7
/* Room for the shift of a misaligned region. The shift is one element, which is smaller. A whole
 * line keeps the regions aligned. */
#define SHIFT_BYTES LINE_BYTES

/* Large regions start on a page. Small regions stay close together, as they would in a program. */
static size_t guard_for(size_t region_bytes)
{
    return region_bytes < PAGE_BYTES ? LINE_BYTES : PAGE_BYTES;
}

static size_t stride_for(size_t region_bytes)
{
    size_t guard = guard_for(region_bytes);

    return (guard + SHIFT_BYTES + region_bytes + guard + guard - 1) / guard * guard;
}

size_t perf_arena_need(size_t nregions, size_t region_bytes)
{
    return nregions * stride_for(region_bytes);
}

int perf_arena_init(struct perf_arena *arena, size_t capacity_bytes, enum perf_memory memory,
                    const struct perf_gpu *gpu)
{
    size_t size = (capacity_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *base = NULL, *target = NULL;
    bool is_on_gpu = memory == PERF_MEMORY_GPU || memory == PERF_MEMORY_GPU_LIBRARY;
    bool is_library_memory = memory == PERF_MEMORY_LIBRARY || memory == PERF_MEMORY_GPU_LIBRARY;

    /* If a GPU's context is current, tuttiMemAlloc allocates on that GPU. */
    if (is_library_memory && tuttiMemAlloc(&target, size) != tuttiSuccess)
        return -1;
    if (memory == PERF_MEMORY_GPU)
        target = perf_gpu_alloc(gpu, size);
    base = memory == PERF_MEMORY_LIBRARY ? target : aligned_alloc(PAGE_BYTES, size);
    if (memory == PERF_MEMORY_HEAP)
        target = base;
    *arena = (struct perf_arena){.base = base, .target = target, .capacity_bytes = size,
                                 .gpu = is_on_gpu ? gpu : NULL,
                                 .is_library_memory = is_library_memory};
    if (base != NULL && target != NULL)
        return 0;
    perf_arena_fini(arena);
    return -1;
}

void perf_arena_fini(struct perf_arena *arena)
{
    if (arena->is_library_memory)
        tuttiMemFree(arena->target);
    else if (arena->gpu != NULL && arena->target != NULL)
        perf_gpu_free(arena->gpu, arena->target);
    if (arena->gpu != NULL || !arena->is_library_memory)
        free(arena->base);
    *arena = (struct perf_arena){.base = NULL};
}

void perf_arena_cut(struct perf_arena *arena, size_t nregions, size_t region_bytes,
                    size_t shift_bytes)
{
    arena->nregions = nregions;
    arena->region_bytes = region_bytes;
    arena->shift_bytes = shift_bytes;
    arena->guard_bytes = guard_for(region_bytes);
    arena->stride_bytes = stride_for(region_bytes);
    for (size_t i = 0; i < nregions; i++) {
        char *start = arena->base + i * arena->stride_bytes;
        char *region = perf_arena_region(arena, i);

        memset(start, GUARD, (size_t)(region - start));
        memset(region, PERF_POISON, region_bytes);
        memset(region + region_bytes, GUARD,
               arena->stride_bytes - (size_t)(region - start) - region_bytes);
    }
}

char *perf_arena_region(const struct perf_arena *arena, size_t index)
{
    return arena->base + index * arena->stride_bytes + arena->guard_bytes + arena->shift_bytes;
}

char *perf_arena_target(const struct perf_arena *arena, size_t index)
{
    return arena->target + (perf_arena_region(arena, index) - arena->base);
}

void perf_arena_give(const struct perf_arena *arena)
{
    if (arena->gpu != NULL)
        perf_gpu_copy(arena->gpu, arena->target, arena->base,
                      arena->nregions * arena->stride_bytes);
}

void perf_arena_fetch(const struct perf_arena *arena)
{
    if (arena->gpu != NULL)
        perf_gpu_copy(arena->gpu, arena->base, arena->target,
                      arena->nregions * arena->stride_bytes);
}

static size_t count_other(const char *at, size_t size, unsigned char value)
{
    size_t other = 0;

    for (size_t i = 0; i < size; i++)
        other += (unsigned char)at[i] != value;
    return other;
}

size_t perf_arena_overruns(const struct perf_arena *arena)
{
    size_t overruns = 0;

    for (size_t i = 0; i < arena->nregions; i++) {
        const char *start = arena->base + i * arena->stride_bytes;
        const char *region = perf_arena_region(arena, i);
        const char *behind = region + arena->region_bytes;

        overruns += count_other(start, (size_t)(region - start), GUARD);
        overruns += count_other(behind, (size_t)(start + arena->stride_bytes - behind), GUARD);
    }
    return overruns;
}

size_t perf_poison_wrong(const void *at, size_t count, size_t element_bytes)
{
    const char *bytes = at;
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += count_other(bytes + i * element_bytes, element_bytes, PERF_POISON) != 0;
    return wrong;
}
