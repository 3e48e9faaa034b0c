/* SPDX-License-Identifier: Apache-2.0
 * Lends memory of tuttiMemAlloc to the other processes of a domain. They map it, and load and store
 * there as in their own memory.
 *
 * There is no negotiation. Each member keeps a list of its allocations in the segment. The
 * allocations have ascending numbers. When a post shows a peer that a list has new entries, the
 * peer maps these allocations. Then it announces the number up to which it has mapped the list. The
 * owner offers a buffer, in its posts, only by a number up to which all peers have mapped its list.
 * So an offer is valid for all peers, all of them see the same offers, and all ranks decide in the
 * same way.
 *
 *     owner   allocates   post: 3 in the list                    post: input is in 3
 *     peer                           maps 3 | has mapped up to 3                 loads
 *
 * Messages do the same for only two members (shm.c).
 *
 * A peer that cannot map an allocation never announces its number. The buffer is then read and
 * written by other means, as ordinary memory is. Freed memory is never offered again. Its pages are
 * returned at once. Its mappings are removed when the list next changes, or with the
 * communicator. */
#ifndef TUTTI_TRANSPORT_SHM_LEND_H
#define TUTTI_TRANSPORT_SHM_LEND_H

#include "transport/domain.h"

/* The number of allocations in a list. These are the newest of a process. */
#define TUTTI_LEND_SLOTS 64

/* An entry of a list. Allocation number n is at position n modulo TUTTI_LEND_SLOTS. Only the owner
 * of the list writes it. */
struct tutti_lend_slot {
    uint64_t number; /* 0 while the rest is being written, and for freed memory */
    uint64_t inode;  /* of the allocation's memfd */
    uint64_t begin;  /* address in the owner's process */
    uint64_t size_bytes;
    int32_t fd;      /* a descriptor of the owner's process for the memfd */
};

/* The number of a buffer that does not exist. Such a buffer does not keep ranks from using others
 * that are lent. */
#define TUTTI_NOT_THERE UINT32_MAX

/* Returns the list of member `index`. */
static inline struct tutti_lend_slot *tutti_lend_slots(const struct tutti_domain *domain,
                                                       uint32_t index)
{
    return domain->lend_slots + (size_t)index * TUTTI_LEND_SLOTS;
}

/* Returns the place of the number up to which `reader` has mapped the list of `owner`. Only the
 * reader writes it. */
static inline uint32_t *tutti_lend_mapped(const struct tutti_domain *domain, uint32_t reader,
                                          uint32_t owner)
{
    return domain->mapped + reader * domain->mapped_stride + owner;
}

struct tutti_lend;

/* Create the state of lending for a communicator whose ranks are processes that share `domain`. The
 * domain must outlive it. One thread at a time may use it. TUTTI_ERR_SYSTEM: no memory. */
int tutti_lend_create(struct tutti_domain *domain, struct tutti_lend **ret_lend);

/* Unmaps the memory that others have lent. NULL is ignored. */
void tutti_lend_destroy(struct tutti_lend *lend);

/* Returns the number by which a buffer of this rank may be offered to all, or 0 if it cannot be
 * offered. */
uint32_t tutti_lend_offer(struct tutti_lend *lend, const void *buffer, size_t size_bytes);

/* Returns the number of a buffer of this rank, whichever peers have mapped it, or 0 if it has
 * none. */
uint32_t tutti_lend_number(struct tutti_lend *lend, const void *buffer, size_t size_bytes);

/* True if member `index` has mapped this rank's memory up to `number`. Then the number may be
 * offered to that member. */
bool tutti_lend_is_mapped(const struct tutti_lend *lend, uint32_t index, uint32_t number);

/* Returns the last number on this rank's list, for its post. */
uint32_t tutti_lend_last(const struct tutti_lend *lend);

/* Member `index` has announced that its list reaches number `last`. Map the allocations that are
 * new to this rank. */
void tutti_lend_learn(struct tutti_lend *lend, uint32_t index, uint32_t last);

/* Returns the address at which this rank maps the `size_bytes` at `address` of member `index`,
 * which offered them by `number`. NULL means that it does not map them, or not all of them. */
uint8_t *tutti_lend_at(const struct tutti_lend *lend, uint32_t index, uint32_t number,
                       uint64_t address, uint64_t size_bytes);

/* Returns the heap memory that `lend` holds, in bytes, for the memory report. NULL is accepted. */
size_t tutti_lend_bytes(const struct tutti_lend *lend);

#endif
