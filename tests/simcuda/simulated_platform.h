/* SPDX-License-Identifier: Apache-2.0
 * Everything that platform.cuh defines for nvcc, for kernels that are compiled for the host.
 * Threads are fibers (fiber.h), blocks and warps meet in meeting.c, and memory is that of the
 * host. Plain accesses are plain, so that sanitizers see them. If they are observed, they go
 * through weak.c, where other threads see stores late, through cache.c, where loads see old data,
 * and through the driver, which knows the memory that a GPU may access.
 *
 * Only platform.cuh includes this. */
#ifndef TUTTI_TESTS_SIMCUDA_SIMULATED_PLATFORM_H
#define TUTTI_TESTS_SIMCUDA_SIMULATED_PLATFORM_H

#include "thread.h"

#include <string.h>

/* The compiler stops inlining in a file as large as the kernels, so it must be told to go on. Under
 * sanitizers, and in kernels with a mistake, only the functions below are always inlined, because
 * much inlined code takes long to compile. */
#define SIM_INLINE static inline __attribute__((always_inline, unused))
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SIM_MUTANT)
#define GPU_INLINE static inline __attribute__((unused))
#else
#define GPU_INLINE SIM_INLINE
#endif
#define GPU_FUNCTION static __attribute__((noinline, unused))
#define GPU_KERNEL(name, most_threads, type, argument)                                       \
    static void name(const type &argument);                                                  \
    static void name##_run(const void *bytes) { name(*static_cast<const type *>(bytes)); }    \
    static struct sim_kernel name##_kernel = {#name, most_threads, sizeof(type), name##_run, \
                                              nullptr};                                      \
    __attribute__((constructor)) static void name##_register(void)                           \
    {                                                                                        \
        sim_kernel_register(&name##_kernel);                                                 \
    }                                                                                        \
    static void name(const type &argument)
/* `name` is one word: of an array, name its type first (using row = uint32_t[32]). */
#define GPU_SHARED(type, name)                                                      \
    static struct sim_shared name##_shared = {sizeof(type), alignof(type), 0};      \
    type &name = *static_cast<type *>(sim_shared(&name##_shared))
#define GPU_UNROLL

/* ---- who am I ------------------------------------------------------------------------- */

SIM_INLINE uint32_t gpu_thread(void) { return sim_self->thread; }
SIM_INLINE uint32_t gpu_threads(void) { return sim_self->threads; }
SIM_INLINE uint32_t gpu_crew_threads(void) { return sim_self->crew; }
SIM_INLINE uint32_t gpu_block(void) { return sim_self->block; }
SIM_INLINE uint32_t gpu_blocks(void) { return sim_self->blocks; }

/* ---- meeting -------------------------------------------------------------------------- */

SIM_INLINE void gpu_barrier(void) { sim_barrier(SIM_BARRIER, false); }
SIM_INLINE bool gpu_barrier_or(bool is_true) { return sim_barrier(SIM_BARRIER_OR, is_true); }
SIM_INLINE uint32_t gpu_ballot(bool is_true) { return sim_ballot(is_true); }
SIM_INLINE bool gpu_warp_all(bool is_true) { return sim_ballot(is_true) == 0xffffffffu; }
SIM_INLINE bool gpu_warp_any(bool is_true) { return sim_ballot(is_true) != 0; }

/* ---- memory --------------------------------------------------------------------------- */

template <typename T> SIM_INLINE void sim_aligned(const T *at, size_t size_bytes)
{
    if (__builtin_expect((uintptr_t)at % size_bytes != 0, 0))
        sim_misaligned(at, size_bytes);
}
template <typename T> SIM_INLINE T gpu_load(const T *at)
{
    T value;

    sim_aligned(at, alignof(T));
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_load(&value, at, sizeof value);
    else
        value = *at;
    return value;
}
template <typename T> SIM_INLINE void gpu_store(T *at, T value)
{
    sim_aligned(at, alignof(T));
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_store(at, &value, sizeof value);
    else
        *at = value;
}
SIM_INLINE gpu_word gpu_load_word(const void *at)
{
    return gpu_load(static_cast<const gpu_word *>(at));
}
SIM_INLINE void gpu_store_word(void *at, gpu_word word)
{
    gpu_store(static_cast<gpu_word *>(at), word);
}
SIM_INLINE gpu_word gpu_load_word_once(const void *at) { return gpu_load_word(at); }

/* One of the two halves that words with flags are made of, and all that is relaxed. */
SIM_INLINE uint64_t sim_load_relaxed(const uint64_t *at)
{
    uint64_t value;

    if (__builtin_expect(sim_self->is_watched, 0))
        sim_load_strong(&value, at, sizeof value);
    else
        value = __atomic_load_n(at, __ATOMIC_RELAXED);
    sim_relaxed_load_was(at);
    sim_poll(at, value);
    return value;
}
SIM_INLINE void sim_store_relaxed(uint64_t *at, uint64_t value)
{
    if (__builtin_expect(sim_self->has_fenced, 0))
        sim_relaxed_store_is(at);
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_store(at, &value, sizeof value);
    else
        __atomic_store_n(at, value, __ATOMIC_RELAXED);
    sim_progress();
}
SIM_INLINE gpu_word sim_gpu_word(uint64_t low, uint64_t high)
{
    gpu_word word = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};

    return word;
}
SIM_INLINE struct sim_word sim_halves(gpu_word word)
{
    struct sim_word halves = {word.x | (uint64_t)word.y << 32, word.z | (uint64_t)word.w << 32};

    return halves;
}
SIM_INLINE gpu_word gpu_load_flagged(const void *at)
{
    const uint64_t *halves = static_cast<const uint64_t *>(at);
    uint64_t low, high;

    sim_aligned(halves, 16);
    if (sim_toss()) {
        low = sim_load_relaxed(&halves[0]);
        high = sim_load_relaxed(&halves[1]);
    } else {
        high = sim_load_relaxed(&halves[1]);
        low = sim_load_relaxed(&halves[0]);
    }
    return sim_gpu_word(low, high);
}
SIM_INLINE void gpu_store_flagged(void *at, gpu_word word)
{
    uint64_t *halves = static_cast<uint64_t *>(at);
    struct sim_word value = sim_halves(word);

    sim_aligned(halves, 16);
    if (sim_toss()) {
        sim_store_relaxed(&halves[0], value.low);
        sim_store_relaxed(&halves[1], value.high);
    } else {
        sim_store_relaxed(&halves[1], value.high);
        sim_store_relaxed(&halves[0], value.low);
    }
}
SIM_INLINE gpu_word gpu_load_line(const void *at, bool is_there)
{
    struct sim_word word = sim_load_line(at, is_there);

    return sim_gpu_word(word.low, word.high);
}
SIM_INLINE void gpu_store_line(void *at, gpu_word word, bool is_there)
{
    sim_store_line(at, sim_halves(word), is_there);
}

/* ---- order ---------------------------------------------------------------------------- */

SIM_INLINE uint64_t gpu_load_acquire(const uint64_t *at)
{
    uint64_t value;

    sim_aligned(at, sizeof *at);
    if (__builtin_expect(sim_self->is_watched, 0)) {
        sim_load_strong(&value, at, sizeof value);
        sim_acquire();
    } else {
        value = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    }
    sim_poll(at, value);
    return value;
}
SIM_INLINE void gpu_store_release(uint64_t *at, uint64_t value)
{
    sim_aligned(at, sizeof *at);
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_publish(at);
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    sim_progress();
}
SIM_INLINE uint64_t gpu_load_relaxed(const uint64_t *at)
{
    sim_aligned(at, sizeof *at);
    return sim_load_relaxed(at);
}
SIM_INLINE void gpu_store_relaxed(uint64_t *at, uint64_t value)
{
    sim_aligned(at, sizeof *at);
    sim_store_relaxed(at, value);
}
SIM_INLINE void gpu_fence(void)
{
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_publish(nullptr);
    sim_fence();
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_acquire();
}
SIM_INLINE uint64_t gpu_add(uint64_t *at, uint64_t more)
{
    uint64_t before;

    sim_aligned(at, sizeof *at);
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_publish(at);
    sim_progress();
    before = __atomic_fetch_add(at, more, __ATOMIC_ACQ_REL);
    if (__builtin_expect(sim_self->is_watched, 0))
        sim_acquire();
    return before;
}

/* ---- time ----------------------------------------------------------------------------- */

SIM_INLINE uint64_t gpu_now_ns(void) { return sim_now_ns(); }
SIM_INLINE void gpu_pause(void) { sim_pause(); }

#endif
