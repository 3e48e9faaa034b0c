/* SPDX-License-Identifier: Apache-2.0
 * Loads the library's kernels into CUDA contexts on first use, and launches them.
 *
 * The kernels come from an image: the file that TUTTI_CUDA_KERNELS names, or else the image that is
 * built in (cuda_image.h). For all functions but tutti_kernel_module_put, the context must be the
 * current context of the calling thread. All functions are thread-safe. */
#ifndef TUTTI_DEVICE_CUDA_KERNELS_H
#define TUTTI_DEVICE_CUDA_KERNELS_H

#include "device/cuda/local.h"
#include "device/cuda/work.h"
#include "wrap/cuda.h"

#include <stdbool.h>

/* The kernels, each with the type of its argument. The kernels from SMALL on communicate with other
 * ranks. */
enum tutti_kernel_name {
    TUTTI_KERNEL_EMPTY,      /* struct tutti_kernel_empty_argument */
    TUTTI_KERNEL_COPY,       /* struct tutti_kernel_copy_argument */
    TUTTI_KERNEL_REDUCE,     /* struct tutti_kernel_reduce_argument */
    TUTTI_KERNEL_CONVERT,    /* struct tutti_kernel_conversion */
    TUTTI_KERNEL_TEST_LINES, /* struct tutti_kernel_line_test */
    TUTTI_KERNEL_SMALL,      /* struct tutti_kernel_launch, for this one and those below */
    TUTTI_KERNEL_DIRECT,
    TUTTI_KERNEL_GROUP,
    TUTTI_KERNEL_MEETING,
    TUTTI_KERNEL_NAME_COUNT
};

struct tutti_kernel_module;

/* Returns the kernels of the current context. The first call in a context loads them; later calls
 * return the same object and count one more user. Release each with tutti_kernel_module_put. `cuda`
 * is borrowed and must outlive the kernels.
 *
 * Returns TUTTI_ERR_DEVICE if no context is current, no kernels are built in, or the named file
 * cannot be read. It returns the same if the image has no code for this GPU or is of another
 * version. The message is recorded but not logged. Returns TUTTI_ERR_SYSTEM if there is no
 * memory. */
int tutti_kernel_module_get(const struct tutti_cu_driver *cuda,
                            struct tutti_kernel_module **ret_kernels);

/* Each user calls this once, when none of its launches is running any more. The call of the last
 * user frees the object. If the context of the kernels is current, it also unloads the kernels.
 * NULL is ignored. */
void tutti_kernel_module_put(struct tutti_kernel_module *kernels);

/* Returns the number of blocks of `threads` threads that one multiprocessor can run at the same
 * time. This is the least number among the kernels from SMALL on. It is at least 1, and 1 if the
 * driver cannot tell. */
int tutti_kernel_module_occupancy(const struct tutti_kernel_module *kernels, uint32_t threads);

/* Enqueues a kernel of `blocks` blocks of `threads` threads on `stream`. `argument` is the struct
 * that the enum names; it is copied before the call returns. Returns TUTTI_ERR_DEVICE if the driver
 * refuses the launch. */
int tutti_kernel_module_launch(const struct tutti_kernel_module *kernels,
                               enum tutti_kernel_name kernel, uint32_t blocks, uint32_t threads,
                               const void *argument, struct tutti_cu_stream *stream);

/* Enqueues a copy by loads and stores of a few threads, for tests that must not use a copy engine.
 * Returns TUTTI_ERR_DEVICE like tutti_kernel_module_launch. */
int tutti_kernel_module_copy(const struct tutti_kernel_module *kernels, void *to, const void *from,
                             size_t size_bytes, struct tutti_cu_stream *stream);

#endif
