/* SPDX-License-Identifier: Apache-2.0
 * Allocates memory that other processes of the host can map, for tuttiMemAlloc. A large allocation
 * has a memfd of its own, so that it can be lent (lend.h). A small allocation is not worth a
 * descriptor, and is ordinary memory. So is an allocation for which no memfd can be made. There is
 * one list of allocations per process. All functions are thread-safe. */
#ifndef TUTTI_TRANSPORT_SHM_MEMORY_H
#define TUTTI_TRANSPORT_SHM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Allocates `size_bytes` (at least 1) of zeroed memory, page-aligned. Memory that is at least as
 * large as a huge page is in huge pages, if the kernel has them, and is then committed at once. The
 * caller frees it with tutti_memory_free. TUTTI_ERR_ARGUMENT: no memory can be that large.
 * TUTTI_ERR_SYSTEM: there is no memory left. */
int tutti_memory_alloc(size_t size_bytes, void **ret_address);

/* Frees an allocation. TUTTI_ERR_ARGUMENT: it is not an address that tutti_memory_alloc returned.
 * Its pages return to the kernel even while other processes map them, and these then read zeros. */
int tutti_memory_free(void *address);

/* Returns a number that grows whenever an allocation that can be lent is made or freed. */
uint64_t tutti_memory_generation(void);

/* An allocation that can be lent. */
struct tutti_memory_part {
    uint64_t inode; /* the inode of its memfd; no two memfds have the same */
    uint64_t begin; /* address in this process */
    uint64_t size_bytes;
    int32_t fd;     /* the memfd, owned by the allocation */
};

/* Lists at most `most` allocations that can be lent, the newest first. Returns their number. */
size_t tutti_memory_list(struct tutti_memory_part *ret_parts, size_t most);

/* Maps `size_bytes` of the file `fd`, or of ordinary memory if `fd` is -1. The address is aligned
 * for huge pages if the memory can hold one. NULL: errno tells why. The caller releases the memory
 * with tutti_memory_unmap. */
void *tutti_memory_map(int fd, size_t size_bytes);
void tutti_memory_unmap(void *address, size_t size_bytes);

#endif
