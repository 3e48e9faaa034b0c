/* SPDX-License-Identifier: Apache-2.0
 * Memory that all processes of a driver without a library map. It has room for their
 * synchronization, and two buffers for each rank, whose size is in the environment variable
 * BENCH_ARENA. */
#ifndef BENCH_ARENA_H
#define BENCH_ARENA_H

#include <stddef.h>

struct bench_arena {
    void *head; /* zero at first; lasts, like all of it, until the process ends */
    char *buffers;
    size_t buffer_bytes;
};

/* Returns once all `nprocesses` have joined. DIRECTORY is what the comparison gave its drivers. */
struct bench_arena bench_arena_join(const char *directory, size_t head_bytes, int nranks,
                                    int process, int nprocesses);

/* The first of the two buffers of `rank`; the second follows. */
static inline char *bench_arena_of(const struct bench_arena *arena, int rank)
{
    return arena->buffers + (size_t)rank * 2 * arena->buffer_bytes;
}

/* Between two looks at what another process will write. */
static inline void bench_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
