/* SPDX-License-Identifier: Apache-2.0
 * For small functions that CPUs and GPUs compile from the same source. Such a source is valid C11,
 * C++17 and CUDA C++. */
#ifndef TUTTI_BASE_INLINE_H
#define TUTTI_BASE_INLINE_H

#if defined(__CUDACC__)
#define TUTTI_INLINE static __host__ __device__ __forceinline__
#else
#define TUTTI_INLINE static inline __attribute__((always_inline))
#endif

#endif
