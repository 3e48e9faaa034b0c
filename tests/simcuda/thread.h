/* SPDX-License-Identifier: Apache-2.0
 * A thread of a simulated GPU, and the functions of the machine that kernels compiled for the host
 * call. It is valid C and C++, because simulated_platform.h includes it. */
#ifndef TUTTI_TESTS_SIMCUDA_THREAD_H
#define TUTTI_TESTS_SIMCUDA_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's own knowledge of itself. It is the first member of the machine's record of it. */
struct sim_thread {
    uint32_t thread, threads, block, blocks;
    uint32_t crew;        /* threads of the block that copy and combine data */
    bool has_fenced;      /* its relaxed stores publish */
    bool is_watched;      /* its plain accesses go through sim_load and sim_store */
};

/* The one that runs on this thread of the processor. */
extern __thread struct sim_thread *sim_self __attribute__((visibility("hidden")));

/* 16 bytes, as two that are never seen half written. */
struct sim_word {
    uint64_t low, high;
};

enum sim_meeting_kind {
    SIM_BARRIER, SIM_BARRIER_OR, SIM_BALLOT, SIM_LOAD_LINE, SIM_STORE_LINE,
};

/* All threads of the block call this. It returns whether the value is true in any of them. */
bool sim_barrier(enum sim_meeting_kind kind, bool is_true);
/* One bit from each lane of the warp. */
uint32_t sim_ballot(bool is_true);
/* Lines, whole unless faults say otherwise. */
struct sim_word sim_load_line(const void *at, bool is_there);
void sim_store_line(void *at, struct sim_word word, bool is_there);

/* Accesses of watched threads, up to 16 bytes. Plain loads may see old data. Relaxed ones and
 * acquires do not. */
void sim_load(void *ret_value, const void *at, size_t size_bytes);
void sim_load_strong(void *ret_value, const void *at, size_t size_bytes);
void sim_store(void *at, const void *value, size_t size_bytes);
/* Call this before a release, a fence or an atomic operation: it publishes stores to all threads.
 * For watched threads `at` is the address, or NULL for a fence. */
void sim_publish(const void *at);
/* Watched threads call this after an acquire, a fence or an atomic operation: from now on the block
 * sees no data that is older than this. */
void sim_acquire(void);

/* A load that may be one of many that wait: others get on now and then. */
void sim_poll(const void *at, uint64_t value);
/* Something that others may be waiting for has been done. */
void sim_progress(void);
/* A waiting loop: others get on. */
void sim_pause(void);
/* A coin. */
bool sim_toss(void);
/* Fences as the thread sanitizer is told of them. */
void sim_relaxed_load_was(const void *at);
void sim_relaxed_store_is(const void *at);
void sim_fence(void);

uint64_t sim_now_ns(void);
/* An address must be a multiple of its size. */
void sim_misaligned(const void *at, size_t size_bytes) __attribute__((noreturn, cold));

/* Shared memory: one for each declaration, found again by each thread of the block. */
struct sim_shared {
    uint32_t size_bytes, alignment_bytes;
    uint32_t number; /* from 1 on; 0: no block has come by yet */
};
void *sim_shared(struct sim_shared *shared);

/* A kernel: what GPU_KERNEL makes, at the program's start. */
struct sim_kernel {
    const char *name;
    uint32_t most_threads;
    uint32_t argument_bytes;
    void (*run)(const void *argument);
    struct sim_kernel *next;
};
void sim_kernel_register(struct sim_kernel *kernel);

#ifdef __cplusplus
}
#endif

#endif
