/* SPDX-License-Identifier: Apache-2.0
 * What hosts ask of the kernels that need no other rank: plain structs, the same for C and CUDA
 * C++. Numerics and rules of overlap are those of device/cpu/cpu.h. */
#ifndef TUTTI_DEVICE_CUDA_LOCAL_H
#define TUTTI_DEVICE_CUDA_LOCAL_H

#include "device/arithmetic/scale.h"

#include <stdint.h>

#define TUTTI_GPU_NO_SOURCE UINT32_MAX

/* dsts[k][i] = round(scale(srcs[0][i] op srcs[1][i] op ... )) for all k < ndsts, i < count. All
 * pointers are the device's; buffers are aligned to one element, nothing more. */
struct tutti_gpu_reduction {
    uint32_t type, op; /* enum tutti_type, enum tutti_op; with one source any op does */
    uint32_t nsrcs, ndsts;
    const void *const *srcs;
    void *const *dsts;
    uint64_t count; /* in elements */
    struct tutti_scale scale;
    /* The source whose elements are multiplied by `scalar` and rounded before all else, as
     * tutti_cpu_premultiply does; TUTTI_GPU_NO_SOURCE. */
    uint32_t premultiplied;
    uint32_t unused;
    uint64_t scalar; /* its first bytes are one element */
};

/* dst[i] = src[i] * multiply, from a narrow floating type to float32 or back. Not in place. */
struct tutti_gpu_conversion {
    uint32_t type; /* the narrow one */
    uint32_t is_widening;
    const void *src;
    void *dst;
    uint64_t count;
    float multiply;
    uint32_t unused;
};

/* ---- the arguments of kernels ------------------------------------------------------------- */

enum { TUTTI_GPU_INLINE_POINTERS = 16 };

/* tutti_gpu_reduce. Where all pointers fit they lie here, the sources first, and the job's arrays are
 * NULL. */
struct tutti_gpu_reduce_argument {
    struct tutti_gpu_reduction job;
    void *pointers[TUTTI_GPU_INLINE_POINTERS];
};

/* tutti_gpu_copy: bytes, of any alignment. */
struct tutti_gpu_copy_argument {
    const void *src;
    void *dst;
    uint64_t size_bytes;
};

/* tutti_gpu_empty: nothing is done, which takes how long? */
struct tutti_gpu_empty_argument {
    uint64_t unused;
};

#endif
