/* SPDX-License-Identifier: Apache-2.0
 * Memory that all processes of a driver without a library map. It has room for their
 * synchronization, and two buffers for each rank, whose size is in the environment variable
 * BENCH_ARENA. */
#ifndef BENCH_ARENA_H
#define BENCH_ARENA_H

#include <stddef.h>

/* The memory lasts until the process ends. */
struct bench_arena {
    void *head;          /* for synchronization; zero at first */
    char *buffers;       /* two for each rank, in the order of ranks */
    size_t buffer_bytes; /* of one buffer: BENCH_ARENA, rounded up to whole pages */
};

/* Maps the memory. Returns when all `nprocesses` have joined. `directory` is the argument DIRECTORY
 * of the driver, `process` the number of this process. */
struct bench_arena bench_arena_join(const char *directory, size_t head_bytes, int nranks,
                                    int process, int nprocesses);

/* Returns the first of the two buffers of `rank`. The second follows it. */
static inline char *bench_arena_of(const struct bench_arena *arena, int rank)
{
    return arena->buffers + (size_t)rank * 2 * arena->buffer_bytes;
}

/* Pauses the core between two loads of a word that another process will write. */
static inline void bench_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
