/* SPDX-License-Identifier: Apache-2.0
 * Allocates memory of a GPU, or host memory that GPUs can use, such that other processes of the
 * host can map it.
 *
 * There are three kinds of memory. Device memory is virtual memory if the driver supports that, and
 * else plain memory. Virtual memory is shared by a file descriptor, and its pages exist as long as
 * any process maps them. Plain memory is shared by an IPC handle of the driver. Page-locked host
 * memory is shared by a memfd.
 *
 * All functions need the GPU's context to be the thread's current one. Thread-safe. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_GPU_MEMORY_H
#define TUTTI_TRANSPORT_GPU_MEMORY_GPU_MEMORY_H

#include "wrap/cuda.h"

#include <stdbool.h>

enum tutti_gpumem_kind {
    TUTTI_GPUMEM_NONE,    /* no memory */
    TUTTI_GPUMEM_VIRTUAL, /* device memory that cuMemCreate has made */
    TUTTI_GPUMEM_PLAIN,   /* device memory that cuMemAlloc has made */
    TUTTI_GPUMEM_HOST,    /* page-locked host memory */
};

struct tutti_gpumem {
    tutti_cu_address address;  /* in this process, for the context that was current */
    size_t size_bytes;
    enum tutti_gpumem_kind kind;
    bool is_borrowed;          /* another process has allocated it */
    tutti_cu_memory handle;    /* VIRTUAL */
    void *host;                /* HOST: its address for the CPU */
    int fd;                    /* HOST: the owner's memfd; else -1 */
};

/* The data that another process needs to open the memory, except a descriptor. */
struct tutti_gpumem_token {
    uint32_t kind; /* enum tutti_gpumem_kind */
    uint32_t unused;
    uint64_t size_bytes;
    struct tutti_cu_ipc_memory ipc; /* PLAIN */
};

/* Allocate memory of `device`, which must be the current context's, and zero it by work on
 * `stream`. The call waits for this work. Other processes can open the memory if the driver permits
 * that. The caller frees it with tutti_gpumem_free. TUTTI_ERR_DEVICE: any failure; the message
 * names the device. */
int tutti_gpumem_alloc(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                       size_t size_bytes, struct tutti_cu_stream *stream,
                       struct tutti_gpumem *ret_memory);

/* Does the same for zeroed host memory that GPUs can use. */
int tutti_gpumem_alloc_host(const struct tutti_cu_driver *cuda, size_t size_bytes,
                            struct tutti_gpumem *ret_memory);

/* Let another device of this process use the memory. The device must be able to reach the memory.
 * TUTTI_ERR_DEVICE, recorded but not logged: the driver refuses. */
int tutti_gpumem_admit(const struct tutti_cu_driver *cuda, const struct tutti_gpumem *memory,
                       tutti_cu_device device);

/* Get the data by which the memory is shared. *ret_fd is a new descriptor that the caller passes
 * and closes, or -1 if the kind needs none. TUTTI_ERR_DEVICE, recorded but not logged: this driver
 * does not let other processes open the memory. */
int tutti_gpumem_export(const struct tutti_cu_driver *cuda, const struct tutti_gpumem *memory,
                        struct tutti_gpumem_token *ret_token, int *ret_fd);

/* Open another process's memory for `device`, which must be the current context's. The caller keeps
 * and closes `fd`, and releases the memory with tutti_gpumem_free. TUTTI_ERR_DEVICE, recorded
 * but not logged: the memory cannot be opened. */
int tutti_gpumem_open(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                      const struct tutti_gpumem_token *token, int fd,
                      struct tutti_gpumem *ret_memory);

/* Release memory that was allocated or opened. A zeroed struct is accepted, too. */
void tutti_gpumem_free(const struct tutti_cu_driver *cuda, struct tutti_gpumem *memory);

#endif
