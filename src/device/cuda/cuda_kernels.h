/* SPDX-License-Identifier: Apache-2.0
 * Our kernels in a CUDA context: loaded when first asked for, and launched.
 *
 * The image is built in, where nvcc was there to compile it, or a file that TUTTI_CUDA_KERNELS
 * names. All functions want the context to be the thread's current one. Thread-safe. */
#ifndef TUTTI_DEVICE_CUDA_KERNELS_H
#define TUTTI_DEVICE_CUDA_KERNELS_H

#include "device/cuda/local.h"
#include "device/cuda/work.h"
#include "wrap/cuda.h"

#include <stdbool.h>

enum tutti_cuda_kernel {
    TUTTI_CUDA_KERNEL_EMPTY,   /* struct tutti_gpu_empty_argument */
    TUTTI_CUDA_KERNEL_COPY,    /* struct tutti_gpu_copy_argument */
    TUTTI_CUDA_KERNEL_REDUCE,  /* struct tutti_gpu_reduce_argument */
    TUTTI_CUDA_KERNEL_CONVERT, /* struct tutti_gpu_conversion */
    TUTTI_CUDA_KERNEL_LINES,   /* struct tutti_gpu_line_test */
    TUTTI_CUDA_KERNEL_SMALL,   /* struct tutti_gpu_launch, and those below */
    TUTTI_CUDA_KERNEL_DIRECT,
    TUTTI_CUDA_KERNEL_GROUP,
    TUTTI_CUDA_KERNEL_MEETING,
    TUTTI_CUDA_KERNEL_COUNT
};

struct tutti_cuda_kernels;

/* The kernels of the current context: loaded for the first who gets them, the same ones for all
 * others. TUTTI_ERR_DEVICE, noted: none are built in, or none are for this GPU. */
int tutti_cuda_kernels_get(const struct tutti_cuda *cuda, struct tutti_cuda_kernels **ret_kernels);

/* By each who got them, once, when none of its launches is under way. The last one unloads them, if
 * their context is still there to be made current; forgotten they are in any case. NULL is
 * ignored. */
void tutti_cuda_kernels_put(struct tutti_cuda_kernels *kernels);

/* How many blocks of so many threads of any communicating kernel run at once on one multiprocessor;
 * at least 1. */
int tutti_cuda_kernels_occupancy(const struct tutti_cuda_kernels *kernels, uint32_t threads);

/* Enqueue a kernel. `argument` is what the enum says, and copied. TUTTI_ERR_DEVICE. */
int tutti_cuda_kernels_launch(const struct tutti_cuda_kernels *kernels,
                              enum tutti_cuda_kernel kernel, uint32_t blocks, uint32_t threads,
                              const void *argument, struct tutti_cu_stream *stream);

/* Copy by loads and stores of a few blocks, where a test wants no copy engine. */
int tutti_cuda_kernels_copy(const struct tutti_cuda_kernels *kernels, void *to, const void *from,
                            size_t size_bytes, struct tutti_cu_stream *stream);

#endif
