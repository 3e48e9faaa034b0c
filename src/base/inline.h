/* SPDX-License-Identifier: Apache-2.0
 * Defines TUTTI_INLINE, which marks small functions that are shared by code for CPUs and code for
 * GPUs. Their source is valid C11, C++17 and CUDA C++. */
#ifndef TUTTI_BASE_INLINE_H
#define TUTTI_BASE_INLINE_H

#if defined(__CUDACC__)
#define TUTTI_INLINE static __host__ __device__ __forceinline__
#else
#define TUTTI_INLINE static inline __attribute__((always_inline))
#endif

#endif
