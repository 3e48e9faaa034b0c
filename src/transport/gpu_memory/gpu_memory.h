/* SPDX-License-Identifier: Apache-2.0
 * Memory of a GPU, or of the host as GPUs see it, that other processes of the host can map.
 *
 * There are three kinds, depending on the driver. Virtual memory is shared by a file descriptor,
 * and its pages exist as long as any process maps them. Plain device memory is shared by an IPC
 * handle. Page-locked host memory is shared by a memfd.
 *
 * All functions need the GPU's context to be the thread's current one. Thread-safe. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_GPU_MEMORY_H
#define TUTTI_TRANSPORT_GPU_MEMORY_GPU_MEMORY_H

#include "wrap/cuda.h"

#include <stdbool.h>

enum tutti_gpu_memory_kind {
    TUTTI_GPU_MEMORY_NONE,
    TUTTI_GPU_MEMORY_VIRTUAL,
    TUTTI_GPU_MEMORY_PLAIN,
    TUTTI_GPU_MEMORY_HOST,
};

struct tutti_gpu_memory {
    tutti_cu_address address;  /* in this process, for the context that was current */
    size_t size_bytes;
    enum tutti_gpu_memory_kind kind;
    bool is_borrowed;          /* another process has allocated it */
    tutti_cu_memory handle;    /* VIRTUAL */
    void *host;                /* HOST: its address for the CPU */
    int fd;                    /* HOST: the owner's memfd; else -1 */
};

/* Everything that another process needs to open it, except a descriptor. */
struct tutti_gpu_token {
    uint32_t kind; /* enum tutti_gpu_memory_kind */
    uint32_t unused;
    uint64_t size_bytes;
    struct tutti_cu_ipc_memory ipc; /* PLAIN */
};

/* Allocate device memory of `device`, the current context's, zeroed by `stream`. Other processes
 * can open it if the driver permits that. If there is not enough memory the result is
 * TUTTI_ERR_DEVICE, and the message names the device. */
int tutti_gpu_memory_alloc(const struct tutti_cuda *cuda, tutti_cu_device device, size_t size_bytes,
                           struct tutti_cu_stream *stream,
                           struct tutti_gpu_memory *ret_memory);

/* The same for host memory. */
int tutti_gpu_memory_alloc_host(const struct tutti_cuda *cuda, size_t size_bytes,
                                struct tutti_gpu_memory *ret_memory);

/* Let another device of this process use it. The device must be able to reach it. */
int tutti_gpu_memory_admit(const struct tutti_cuda *cuda, const struct tutti_gpu_memory *memory,
                           tutti_cu_device device);

/* Get the data by which it is shared. *ret_fd is a new descriptor to be passed and closed, or -1 if
 * the kind needs none. TUTTI_ERR_DEVICE, noted: this driver does not let other processes open
 * it. */
int tutti_gpu_memory_export(const struct tutti_cuda *cuda, const struct tutti_gpu_memory *memory,
                            struct tutti_gpu_token *ret_token, int *ret_fd);

/* Open another process's memory for `device`, the current context's. `fd` stays the caller's.
 * TUTTI_ERR_DEVICE, noted: it cannot be opened. */
int tutti_gpu_memory_open(const struct tutti_cuda *cuda, tutti_cu_device device,
                          const struct tutti_gpu_token *token, int fd,
                          struct tutti_gpu_memory *ret_memory);

/* Release memory that was allocated or opened. A zeroed one is accepted, too. */
void tutti_gpu_memory_free(const struct tutti_cuda *cuda, struct tutti_gpu_memory *memory);

#endif
