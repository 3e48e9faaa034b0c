/* SPDX-License-Identifier: Apache-2.0
 * All that our kernels use of the machine they run on.
 *
 * Kernels are written against the functions of this file alone, so that the same sources run on a
 * GPU, where these are PTX, and on the simulated one of the tests, where threads are fibers of a
 * processor (simulated_platform.h, which the tests' build finds).
 *
 * Memory. Whatever another thread may have written, or will read, is touched by these functions and
 * no others. The order in which one thread's stores become visible to others is unknown, but:
 *
 *  - gpu_barrier orders what the block's threads did before it, for the block's threads, and what a
 *    thread of the block releases afterwards takes along what all of them stored before it;
 *  - gpu_store_release publishes what this thread stored, and saw, before; pairs with
 *    gpu_load_acquire;
 *  - gpu_fence orders this thread's accesses before it against those after it, for all who look;
 *  - words of 8 bytes are never seen half written; a gpu_word is stored as two of them, in any
 *    order;
 *  - a line (128 bytes, stored by 8 threads of a warp in one gpu_store_line) is seen whole or not
 *    at all only where that has been tested.
 *
 * "System" is all processors and GPUs; "device" this GPU alone.
 */
#ifndef TUTTI_DEVICE_CUDA_PLATFORM_CUH
#define TUTTI_DEVICE_CUDA_PLATFORM_CUH

#include <stddef.h>
#include <stdint.h>

/* 16 bytes, aligned: what one access moves. */
struct alignas(16) gpu_word {
    uint32_t x, y, z, w;
};

enum { GPU_WARP = 32 };

#if !defined(__CUDACC__)

/* Defines all below, under the same names. */
#include "simulated_platform.h"
#define GPU_NO_UNROLL

#else

#define GPU_INLINE static __device__ __forceinline__
#define GPU_FUNCTION static __device__ __noinline__
/* A kernel of at most that many threads a block, with one argument, a struct. Two of its blocks fit
 * on a multiprocessor: one for each of two communicators. */
#define GPU_KERNEL(name, most_threads, type, argument)                \
    extern "C" __global__ void __launch_bounds__(most_threads, 2)    \
    name(const __grid_constant__ type argument)
/* Memory that the threads of a block share; contents undefined at first. In function bodies. */
#define GPU_SHARED(type, name) __shared__ type name
#define GPU_UNROLL _Pragma("unroll")
/* Loops whose few turns are not worth the code. */
#define GPU_NO_UNROLL _Pragma("unroll 1")

/* ---- who am I ------------------------------------------------------------------------- */

GPU_INLINE uint32_t gpu_thread(void) { return threadIdx.x; }
GPU_INLINE uint32_t gpu_threads(void) { return blockDim.x; }
GPU_INLINE uint32_t gpu_block(void) { return blockIdx.x; }
GPU_INLINE uint32_t gpu_blocks(void) { return gridDim.x; }

/* ---- meeting -------------------------------------------------------------------------- */

/* All threads of the block. */
GPU_INLINE void gpu_barrier(void) { __syncthreads(); }
/* The same; is it true of any of them? */
GPU_INLINE bool gpu_barrier_or(bool is_true) { return __syncthreads_or(is_true) != 0; }
/* All 32 threads of the warp, all of which must come. */
GPU_INLINE uint32_t gpu_ballot(bool is_true) { return __ballot_sync(0xffffffffu, is_true); }
GPU_INLINE bool gpu_warp_all(bool is_true) { return __all_sync(0xffffffffu, is_true) != 0; }
GPU_INLINE bool gpu_warp_any(bool is_true) { return __any_sync(0xffffffffu, is_true) != 0; }

/* ---- memory --------------------------------------------------------------------------- */

/* Data: `at` is aligned to the size. */
template <typename T> GPU_INLINE T gpu_load(const T *at) { return *at; }
template <typename T> GPU_INLINE void gpu_store(T *at, T value) { *at = value; }
GPU_INLINE gpu_word gpu_load_word(const void *at)
{
    gpu_word word;

    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w) : "l"(at) : "memory");
    return word;
}
GPU_INLINE void gpu_store_word(void *at, gpu_word word)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};"
                 :: "l"(at), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
}
/* The same of what nobody will read again soon: not to be kept in caches. */
GPU_INLINE gpu_word gpu_load_word_once(const void *at)
{
    gpu_word word;

    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w) : "l"(at) : "memory");
    return word;
}

/* Words that flags travel in: past the first cache, never torn within 8 bytes. */
GPU_INLINE gpu_word gpu_load_flagged(const void *at)
{
    gpu_word word;

    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w) : "l"(at) : "memory");
    return word;
}
GPU_INLINE void gpu_store_flagged(void *at, gpu_word word)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};"
                 :: "l"(at), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
}
/* This thread's 16 bytes of a line that 8 consecutive threads store or load together. All threads
 * of the warp must come; `is_there` says who has something. */
GPU_INLINE gpu_word gpu_load_line(const void *at, bool is_there)
{
    gpu_word word = {0, 0, 0, 0};

    __syncwarp();
    if (is_there)
        word = gpu_load_flagged(at);
    return word;
}
GPU_INLINE void gpu_store_line(void *at, gpu_word word, bool is_there)
{
    __syncwarp();
    if (is_there)
        gpu_store_flagged(at, word);
}

/* ---- order ---------------------------------------------------------------------------- */

GPU_INLINE uint64_t gpu_load_acquire(const uint64_t *at)
{
    uint64_t value;

    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
GPU_INLINE void gpu_store_release(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(at), "l"(value) : "memory");
}
GPU_INLINE uint64_t gpu_load_relaxed(const uint64_t *at)
{
    uint64_t value;

    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
GPU_INLINE void gpu_store_relaxed(uint64_t *at, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(at), "l"(value) : "memory");
}
GPU_INLINE void gpu_fence(void) { __threadfence_system(); }
/* Adds, for the device, acquiring and releasing; returns what was there before. */
GPU_INLINE uint64_t gpu_add(uint64_t *at, uint64_t more)
{
    uint64_t before;

    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(before) : "l"(at), "l"(more) : "memory");
    return before;
}

/* ---- time ----------------------------------------------------------------------------- */

/* Nanoseconds of a clock that never goes back; it may tick in microseconds. */
GPU_INLINE uint64_t gpu_now_ns(void)
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/* In every loop that waits for others. */
GPU_INLINE void gpu_pause(void) {}

#endif
#endif
