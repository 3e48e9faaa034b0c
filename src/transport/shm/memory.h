/* SPDX-License-Identifier: Apache-2.0
 * Memory that other processes of the host can map: what tuttiMemAlloc gives. An allocation is a
 * memfd of its own, so that it can be lent (lend.h). Where that cannot be had, or is not worth a
 * descriptor, it is ordinary memory. One list per process; thread-safe. */
#ifndef TUTTI_TRANSPORT_SHM_MEMORY_H
#define TUTTI_TRANSPORT_SHM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* `size_bytes` (at least 1) of zeroed memory, page-aligned; from a huge page on in huge pages,
 * where the kernel gives them, and then committed at once. TUTTI_ERR_ARGUMENT: no memory can be
 * that large; TUTTI_ERR_SYSTEM: there is none. */
int tutti_memory_alloc(size_t size_bytes, void **ret_address);

/* TUTTI_ERR_ARGUMENT: not an address that tutti_memory_alloc gave. Its pages go back to the kernel
 * even while other processes map them: these then see zeros. */
int tutti_memory_free(void *address);

/* Grows with every allocation that can be lent, and with its end. */
uint64_t tutti_memory_generation(void);

/* An allocation that can be lent. */
struct tutti_memory_part {
    uint64_t inode; /* of its file: never the same for two */
    uint64_t begin, size_bytes;
    int32_t fd;
};

/* The newest of them, at most `most`; returns how many. */
size_t tutti_memory_list(struct tutti_memory_part *ret_parts, size_t most);

/* Address space for `size_bytes` of shared memory, aligned for huge pages if there is room for one,
 * which `fd` is then mapped to. NULL: errno. For tutti_memory_unmap. */
void *tutti_memory_map(int fd, size_t size_bytes);
void tutti_memory_unmap(void *address, size_t size_bytes);

#endif
