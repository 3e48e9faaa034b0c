/* SPDX-License-Identifier: Apache-2.0
 * Device memory of this process that peers may be let into: what tuttiMemAlloc gives where a CUDA
 * context is current, and what tuttiCommRegister names. One list per process; thread-safe.
 *
 * Functions that allocate or register want the memory's context to be the current one. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H
#define TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H

#include "transport/gpu_memory/gpu_memory.h"

/* Allocate zeroed memory on the current context's device, which all devices of this process that
 * can reach it may use, and other processes where the driver allows that. */
int tutti_gpu_alloc(const struct tutti_cuda *cuda, size_t size_bytes, void **ret_address);

/* TUTTI_ERR_ARGUMENT: not an address that tutti_gpu_alloc gave. */
int tutti_gpu_alloc_free(const struct tutti_cuda *cuda, void *address);

/* List somebody else's memory, all of the allocation that these bytes lie in, until it is taken off
 * the list as often. TUTTI_ERR_DEVICE, noted: its kind cannot be passed on, or the bytes lie in
 * several. */
int tutti_gpu_enlist(const struct tutti_cuda *cuda, const void *address, size_t size_bytes);
void tutti_gpu_delist(const struct tutti_cuda *cuda, const void *address);

/* Grows with every change of the list. */
uint64_t tutti_gpu_alloc_generation(void);

/* One of the list. */
struct tutti_gpu_part {
    uint64_t serial; /* never the same for two */
    tutti_cu_device device;
    tutti_cu_address begin;
    size_t size_bytes;
    bool is_passable; /* to other processes: */
    struct tutti_gpu_token token;
    int fd; /* of this process, for those of the kinds that take one; else -1 */
};

/* Those of `device`, with `for_processes` only what can be passed on to these; the oldest first, at
 * most `most`. Returns how many. */
size_t tutti_gpu_alloc_list(tutti_cu_device device, bool for_processes,
                            struct tutti_gpu_part *ret_parts, size_t most);

#endif
