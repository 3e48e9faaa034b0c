/* SPDX-License-Identifier: Apache-2.0
 * Device memory of this process to which peers may get access: memory of tuttiMemAlloc if a CUDA
 * context is current, and memory that tuttiCommRegister names. There is one list per process.
 * Thread-safe. Functions that allocate or register need the memory's context to be the current
 * one. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H
#define TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H

#include "transport/gpu_memory/gpu_memory.h"

/* Allocate zeroed memory on the current context's device. All devices of this process that can
 * reach it may use it, and other processes if the driver permits that. */
int tutti_gpu_alloc(const struct tutti_cuda *cuda, size_t size_bytes, void **ret_address);

/* Free an allocation. TUTTI_ERR_ARGUMENT: it is not an address that tutti_gpu_alloc returned. */
int tutti_gpu_alloc_free(const struct tutti_cuda *cuda, void *address);

/* List memory of the caller, all of the allocation that contains these bytes, until it is taken off
 * the list as often. TUTTI_ERR_DEVICE, noted: its kind cannot be shared, or the bytes are in
 * several allocations. */
int tutti_gpu_enlist(const struct tutti_cuda *cuda, const void *address, size_t size_bytes);
void tutti_gpu_delist(const struct tutti_cuda *cuda, const void *address);

/* Grows with every change of the list. */
uint64_t tutti_gpu_alloc_generation(void);

/* One of the list. */
struct tutti_gpu_allocation {
    uint64_t serial; /* no two entries have the same */
    tutti_cu_device device;
    tutti_cu_address begin;
    size_t size_bytes;
    bool is_passable; /* to other processes: */
    struct tutti_gpu_token token;
    int fd; /* descriptor of this process, for kinds that are shared by one; else -1 */
};

/* Get the entries of `device`, the oldest first, at most `most`. With `for_processes`, only those
 * that can be shared with processes. Returns their number. */
size_t tutti_gpu_alloc_list(tutti_cu_device device, bool for_processes,
                            struct tutti_gpu_allocation *ret_parts, size_t most);

#endif
