/* SPDX-License-Identifier: Apache-2.0
 * Defines the jobs of kernels that involve no other rank, and the arguments of these kernels. All
 * of them are plain structs, because C and CUDA C++ share them. The rules of device/cpu/cpu.h on
 * numerics and overlap apply. */
#ifndef TUTTI_DEVICE_CUDA_LOCAL_H
#define TUTTI_DEVICE_CUDA_LOCAL_H

#include "device/arithmetic/scale.h"

#include <stdint.h>

#define TUTTI_KERNEL_NO_SOURCE UINT32_MAX

/* The kernel computes, for all k < ndsts and i < count:
 *
 *   dsts[k][i] = round(scale(srcs[0][i] op srcs[1][i] op ... ))
 *
 * All pointers are device addresses. Buffers need only be aligned to one element. */
struct tutti_kernel_reduction {
    uint32_t type, op; /* enum tutti_type, enum tutti_op; a single source leaves `op` unused */
    uint32_t nsrcs, ndsts;
    const void *const *srcs;
    void *const *dsts;
    uint64_t count; /* in elements */
    struct tutti_scale scale;
    /* The index of the source whose elements are first multiplied by `scalar` and rounded, as
     * tutti_cpu_premultiply does. TUTTI_KERNEL_NO_SOURCE means that there is no such source. */
    uint32_t premultiplied;
    uint32_t unused;
    uint64_t scalar; /* its first bytes are one element */
};

/* The kernel computes dst[i] = src[i] * multiply for all i < count. It converts from a narrow
 * floating type to float32, or back. The product is computed in float32. `dst` and `src` are device
 * addresses, and the buffers must not overlap. */
struct tutti_kernel_conversion {
    uint32_t type; /* the narrow type: an enum tutti_type */
    uint32_t is_widening; /* true if `dst` is float32, false if `src` is */
    const void *src;
    void *dst;
    uint64_t count; /* in elements */
    float multiply;
    uint32_t unused;
};

/* ---- the arguments of kernels ------------------------------------------------------------- */

enum { TUTTI_KERNEL_INLINE_POINTERS = 16 };

/* The argument of tutti_kernel_reduce. If all pointers of the job fit into `pointers`, they are
 * stored there, with the sources first. The arrays `srcs` and `dsts` of the job are then NULL. */
struct tutti_kernel_reduce_argument {
    struct tutti_kernel_reduction job;
    void *pointers[TUTTI_KERNEL_INLINE_POINTERS];
};

/* The argument of tutti_kernel_copy, which copies bytes at any alignment. `dst` may equal `src`. */
struct tutti_kernel_copy_argument {
    const void *src;
    void *dst;
    uint64_t size_bytes;
};

/* The argument of tutti_kernel_empty. It does nothing, so its time is the cost of a launch. */
struct tutti_kernel_empty_argument {
    uint64_t unused;
};

#endif
