/* SPDX-License-Identifier: Apache-2.0
 * Gives kernels access to the machine on which they run: threads, barriers, memory and the clock.
 *
 * Kernels access the machine only through this file, so the same sources run on a GPU and on the
 * simulated GPU of the tests. On a GPU these functions are PTX. In the tests' build threads are
 * fibers on a CPU (simulated_platform.h).
 *
 * Memory. Data that another thread may have written or will read are accessed only by these
 * functions. In general the order in which one thread's stores become visible to others is unknown.
 * The guarantees are:
 *
 *  - gpu_barrier makes what the block's threads did before it visible to all threads of the block.
 *    A release by any of these threads after the barrier publishes what all of them stored before.
 *  - gpu_store_release publishes all that this thread stored before, and all stores that it had
 *    seen. It pairs with gpu_load_acquire.
 *  - gpu_fence orders this thread's earlier accesses before its later ones, for all observers.
 *  - Aligned words of 8 bytes are never seen half written. A gpu_word is stored as two of them, in
 *    either order.
 *  - A line is 128 bytes that 8 threads of a warp store in one gpu_store_line. Observers see it
 *    either whole or not at all only on connections for which that has been tested (line_test.cuh).
 *
 * Acquire, release and relaxed accesses and fences act at the scope of the whole system, that is,
 * all CPUs and GPUs; gpu_add acts on this GPU only. A comment that begins with "All threads" means
 * that every one of them must call the function.
 */
#ifndef TUTTI_DEVICE_CUDA_PLATFORM_CUH
#define TUTTI_DEVICE_CUDA_PLATFORM_CUH

#include <stddef.h>
#include <stdint.h>

/* 16 aligned bytes: the most that one access moves. */
struct alignas(16) gpu_word {
    uint32_t x, y, z, w;
};

enum { GPU_WARP = 32 };

#if !defined(__CUDACC__)

/* Defines everything below under the same names. */
#include "simulated_platform.h"
#define GPU_NO_UNROLL

#else

#define GPU_INLINE static __device__ __forceinline__
#define GPU_FUNCTION static __device__ __noinline__
/* A kernel of at most `most_threads` threads per block, with one argument, a struct. Its registers
 * are limited so that two blocks fit on a multiprocessor: one for each of two communicators. */
#define GPU_KERNEL(name, most_threads, type, argument)                \
    extern "C" __global__ void __launch_bounds__(most_threads, 2)    \
    name(const __grid_constant__ type argument)
/* Declares a variable that the threads of a block share, with undefined initial contents. Use this
 * in function bodies only. */
#define GPU_SHARED(type, name) __shared__ type name
#define GPU_UNROLL _Pragma("unroll")
/* Keeps a loop from being unrolled. Use this for loops that run too rarely to be worth the code. */
#define GPU_NO_UNROLL _Pragma("unroll 1")

/* ---- threads and blocks ---------------------------------------------------------------- */

GPU_INLINE uint32_t gpu_thread(void) { return threadIdx.x; }
GPU_INLINE uint32_t gpu_threads(void) { return blockDim.x; }
/* Returns the number of a block's threads that copy and combine data. The first ones do. */
GPU_INLINE uint32_t gpu_crew_threads(void) { return blockDim.x; }
GPU_INLINE uint32_t gpu_block(void) { return blockIdx.x; }
GPU_INLINE uint32_t gpu_blocks(void) { return gridDim.x; }

/* ---- barriers ------------------------------------------------------------------------- */

/* All threads of the block: waits until all of them have called it. */
GPU_INLINE void gpu_barrier(void) { __syncthreads(); }
/* Does the same. Returns true, to all threads, if `is_true` is true in any of them. */
GPU_INLINE bool gpu_barrier_or(bool is_true) { return __syncthreads_or(is_true) != 0; }
/* All 32 threads of the warp must call these. Bit i of gpu_ballot's result is `is_true` of thread i
 * of the warp. */
GPU_INLINE uint32_t gpu_ballot(bool is_true) { return __ballot_sync(0xffffffffu, is_true); }
GPU_INLINE bool gpu_warp_all(bool is_true) { return __all_sync(0xffffffffu, is_true) != 0; }
GPU_INLINE bool gpu_warp_any(bool is_true) { return __any_sync(0xffffffffu, is_true) != 0; }

/* ---- memory --------------------------------------------------------------------------- */

/* These load and store ordinary data. `at` must be aligned to the size of the access. */
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
/* Loads a word that will not be read again soon. The load takes no room in the first-level
 * cache. */
GPU_INLINE gpu_word gpu_load_word_once(const void *at)
{
    gpu_word word;

    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w) : "l"(at) : "memory");
    return word;
}

/* These load and store words that carry flags. The accesses bypass the first-level cache. An aligned
 * half of 8 bytes is never seen half written, because PTX promises that for each element of a
 * vector. So a half has 4 bytes of data and their flag. */
GPU_INLINE gpu_word gpu_load_flagged(const void *at)
{
    uint64_t low, high;

    asm volatile("ld.relaxed.sys.global.v2.b64 {%0,%1}, [%2];"
                 : "=l"(low), "=l"(high) : "l"(at) : "memory");
    return gpu_word{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
}
GPU_INLINE void gpu_store_flagged(void *at, gpu_word word)
{
    const uint64_t low = word.x | (uint64_t)word.y << 32, high = word.z | (uint64_t)word.w << 32;

    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1,%2};"
                 :: "l"(at), "l"(low), "l"(high) : "memory");
}
/* These load or store this thread's 16 bytes of a line, which 8 consecutive threads load or store
 * together. All threads of the warp must call them. A thread whose `is_there` is false does not
 * access memory, and its load returns 0. */
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
/* Orders with acquire and release semantics. A sequentially consistent fence would cost more, and
 * nothing here needs one order of all fences. */
GPU_INLINE void gpu_fence(void) { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
/* Adds `more` to *at, atomically among the threads of this GPU, with acquire and release order.
 * Returns the old value. */
GPU_INLINE uint64_t gpu_add(uint64_t *at, uint64_t more)
{
    uint64_t before;

    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(before) : "l"(at), "l"(more) : "memory");
    return before;
}

/* ---- time ----------------------------------------------------------------------------- */

/* Returns the nanoseconds of a monotonic clock. Its resolution may be as coarse as microseconds. */
GPU_INLINE uint64_t gpu_now_ns(void)
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/* Every loop that waits for other threads must call this. The simulated GPU switches threads
 * here. */
GPU_INLINE void gpu_pause(void) {}

#endif
#endif
