/* SPDX-License-Identifier: Apache-2.0
 * Jobs for kernels that involve no other rank, and these kernels' arguments: plain structs that C
 * and CUDA C++ share. The rules of device/cpu/cpu.h on numerics and overlap apply. */
#ifndef TUTTI_DEVICE_CUDA_LOCAL_H
#define TUTTI_DEVICE_CUDA_LOCAL_H

#include "device/arithmetic/scale.h"

#include <stdint.h>

#define TUTTI_GPU_NO_SOURCE UINT32_MAX

/* dsts[k][i] = round(scale(srcs[0][i] op srcs[1][i] op ... )) for all k < ndsts, i < count. All
 * pointers are device addresses. Buffers need only be aligned to one element. */
struct tutti_gpu_reduction {
    uint32_t type, op; /* enum tutti_type, enum tutti_op; one source: `op` is ignored */
    uint32_t nsrcs, ndsts;
    const void *const *srcs;
    void *const *dsts;
    uint64_t count; /* in elements */
    struct tutti_scale scale;
    /* Index of the source whose elements are first multiplied by `scalar` and rounded, as
     * tutti_cpu_premultiply does; TUTTI_GPU_NO_SOURCE: none. */
    uint32_t premultiplied;
    uint32_t unused;
    uint64_t scalar; /* its first bytes are one element */
};

/* dst[i] = src[i] * multiply, from a narrow floating type to float32 or back; the product is taken
 * in float32. `dst` and `src` must not overlap. */
struct tutti_gpu_conversion {
    uint32_t type; /* the narrow type: an enum tutti_type */
    uint32_t is_widening; /* true if `dst` is float32, false if `src` is */
    const void *src;
    void *dst;
    uint64_t count; /* in elements */
    float multiply;
    uint32_t unused;
};

/* ---- the arguments of kernels ------------------------------------------------------------- */

enum { TUTTI_GPU_INLINE_POINTERS = 16 };

/* Argument of tutti_gpu_reduce. If all pointers of the job fit into `pointers`, they lie there, the
 * sources first, and the job's own arrays are NULL. */
struct tutti_gpu_reduce_argument {
    struct tutti_gpu_reduction job;
    void *pointers[TUTTI_GPU_INLINE_POINTERS];
};

/* Argument of tutti_gpu_copy: bytes at any alignment. `dst` may equal `src`. */
struct tutti_gpu_copy_argument {
    const void *src;
    void *dst;
    uint64_t size_bytes;
};

/* Argument of tutti_gpu_empty, which does nothing: it measures what a launch costs. */
struct tutti_gpu_empty_argument {
    uint64_t unused;
};

#endif
