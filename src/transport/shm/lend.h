/* SPDX-License-Identifier: Apache-2.0
 * Memory of tuttiMemAlloc, lent to the processes of a domain: they map it, and load from it and
 * store to it as if it were theirs.
 *
 * Nobody negotiates. Each member keeps, in the segment, a shelf of the allocations that it has; a
 * number, growing, names each. A peer maps what is new on a shelf when it sees in a post that there
 * is something new, and then says up to which number it has come. The owner offers a buffer, in its
 * posts, only by a number that all peers have come to. So an offer is good for everybody, and all
 * see the same offers: what they conclude from them is the same on all ranks.
 *
 *     owner   allocates   post: 3 on the shelf                    post: input is in 3
 *     peer                           maps 3 | has come to 3                      loads
 *
 * Messages do the same for two members alone: shm.c.
 *
 * A peer that cannot map never comes to that number, and the buffer is read and written by other
 * means, as ordinary memory is. Freed memory is never offered again; its mappings go when the shelf
 * next changes, or with the communicator, its pages at once.
 */
#ifndef TUTTI_TRANSPORT_SHM_LEND_H
#define TUTTI_TRANSPORT_SHM_LEND_H

#include "transport/domain.h"

/* Allocations on a shelf: the newest that a process has. */
#define TUTTI_SHELF_PLACES 64

/* Number n is at place n modulo TUTTI_SHELF_PLACES. Written by its owner alone. */
struct tutti_shelf_place {
    uint64_t number; /* 0 while the rest is being written, and for what is freed */
    uint64_t inode, begin, size_bytes;
    int32_t fd; /* of the owner's process */
};

/* A buffer that is not there is nobody's concern. */
#define TUTTI_NOT_THERE UINT32_MAX

static inline struct tutti_shelf_place *tutti_domain_shelf(const struct tutti_domain *domain,
                                                           uint32_t index)
{
    return domain->shelves + (size_t)index * TUTTI_SHELF_PLACES;
}

/* Up to which number of `owner` has `reader` come? Written by the reader alone. */
static inline uint32_t *tutti_domain_come(const struct tutti_domain *domain, uint32_t reader,
                                          uint32_t owner)
{
    return domain->come + reader * domain->come_stride + owner;
}

struct tutti_lend;

/* One per communicator of which ranks are processes that share `domain` (borrowed). One thread at a
 * time. */
int tutti_lend_create(struct tutti_domain *domain, struct tutti_lend **ret_lend);

/* Unmaps what others have lent. NULL is ignored. */
void tutti_lend_destroy(struct tutti_lend *lend);

/* The number that a buffer of mine may be offered by; 0: it cannot be. */
uint32_t tutti_lend_offer(struct tutti_lend *lend, const void *buffer, size_t size_bytes);

/* The number that a buffer of mine has, whoever has come to it; 0: it has none. */
uint32_t tutti_lend_number(struct tutti_lend *lend, const void *buffer, size_t size_bytes);

/* Has member `index` come to that number of mine? Then it may be offered to that member. */
bool tutti_lend_has_come(const struct tutti_lend *lend, uint32_t index, uint32_t number);

/* The last number on my shelf, for my post. */
uint32_t tutti_lend_last(const struct tutti_lend *lend);

/* Member `index` has come to number `last`, as it says: map what is new to me. */
void tutti_lend_learn(struct tutti_lend *lend, uint32_t index, uint32_t last);

/* Where I see the `size_bytes` at `address` of member `index`, who offered them by `number`; NULL:
 * nowhere, or not all of them. */
uint8_t *tutti_lend_at(const struct tutti_lend *lend, uint32_t index, uint32_t number,
                       uint64_t address, uint64_t size_bytes);

/* A copy of another process's descriptor, to be closed; -1: errno. */
int tutti_fetch_descriptor(int pid, int fd);

/* Heap held, for the memory report. */
size_t tutti_lend_bytes(const struct tutti_lend *lend);

#endif
