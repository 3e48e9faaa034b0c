/* SPDX-License-Identifier: Apache-2.0
 * Keeps one list per process of the device memory to which peers may get access. The list has
 * memory that tuttiMemAlloc has allocated on a device, and memory that the user has registered by
 * tuttiCommRegister. All functions are thread-safe. When a function allocates or registers memory,
 * the context of that memory must be the current one. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H
#define TUTTI_TRANSPORT_GPU_MEMORY_ALLOC_H

#include "transport/gpu_memory/gpu_memory.h"

/* Allocate zeroed memory on the current context's device. All devices of this process that can
 * reach it may use it, and other processes may use it if the driver permits that. The caller frees
 * it with tutti_gpumem_list_free. TUTTI_ERR_SYSTEM: no host memory. TUTTI_ERR_DEVICE: any other
 * failure. */
int tutti_gpumem_list_alloc(const struct tutti_cu_driver *cuda, size_t size_bytes,
                            void **ret_address);

/* Free an allocation. TUTTI_ERR_ARGUMENT: it is not an address that tutti_gpumem_list_alloc
 * returned. */
int tutti_gpumem_list_free(const struct tutti_cu_driver *cuda, void *address);

/* tutti_gpumem_list_add adds the whole allocation of the user that contains these bytes to the
 * list. The allocation stays there until tutti_gpumem_list_remove has been called for it as often
 * as tutti_gpumem_list_add. `address` of tutti_gpumem_list_remove is any address in the allocation.
 * If the user has freed the allocation already, it is the first address. TUTTI_ERR_DEVICE, recorded
 * but not logged: memory of its kind cannot be shared, or the bytes are in several allocations. */
int tutti_gpumem_list_add(const struct tutti_cu_driver *cuda, const void *address,
                          size_t size_bytes);
void tutti_gpumem_list_remove(const struct tutti_cu_driver *cuda, const void *address);

/* Returns a number that grows with every change of the list. */
uint64_t tutti_gpumem_list_generation(void);

/* An entry of the list. */
struct tutti_gpumem_allocation {
    uint64_t serial; /* no two entries have the same */
    tutti_cu_device device;
    tutti_cu_address begin;
    size_t size_bytes;
    bool is_passable; /* other processes can open the memory by `token` and `fd` */
    struct tutti_gpumem_token token;
    int fd; /* owned by the list, for kinds that are shared by a descriptor; else -1 */
};

/* Returns a copy of the descriptor of entry `serial`, which the caller closes; -1: errno tells why,
 * and is ENOENT if the entry is no longer on the list or has no descriptor. Another thread may free
 * an entry at any time, so that its descriptor denotes another file, but the copy is the right
 * one. */
int tutti_gpumem_list_descriptor(uint64_t serial);

/* Get at most `most` entries of `device`, the oldest first. With `for_processes`, get only those
 * that can be shared with other processes. Returns their number. The descriptors stay the list's
 * and are closed with their entries. */
size_t tutti_gpumem_list_get(tutti_cu_device device, bool for_processes,
                             struct tutti_gpumem_allocation *ret_parts, size_t most);

#endif
