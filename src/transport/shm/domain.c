/* SPDX-License-Identifier: Apache-2.0
 * Wakes other members of a domain, reads their memory, and compares their counts. */
#include "transport/domain.h"

#include "base/result.h"
#include "transport/shm/segment.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The rank that clears the member's flag also decrements the count of sleepers. So the count is
 * always the number of flags that are set, and a member that is awake is not rung for later
 * signals. */
void tutti_domain_ring(struct tutti_domain *domain, uint32_t index)
{
    const struct tutti_shm_segment *segment = (const struct tutti_shm_segment *)domain;
    struct tutti_waiter *waiter = &domain->waiters[index];
    /* acquire and release: pairs with the exchanges in announce() and retract() of fabric_wait.c */
    uint32_t how = tutti_exchange(&waiter->sleep_kind, (uint32_t)TUTTI_AWAKE);

    if (how != TUTTI_AWAKE)
        (void)tutti_fetch_add(domain->sleepers, -1u);
    /* release: pairs with the acquire of the sleeper in fabric_wait.c */
    (void)tutti_fetch_add(&waiter->rings, 1);
    if (how == TUTTI_SLEEPS_ON_SOCKETS)
        tutti_bell_ring(&segment->bell, index);
    else
        syscall(SYS_futex, &waiter->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void tutti_domain_ring_all(struct tutti_domain *domain)
{
    for (uint32_t index = 0; index < domain->nmembers; index++)
        if (index != domain->me && tutti_load_relaxed(&domain->waiters[index].sleep_kind) != 0)
            tutti_domain_ring(domain, index);
}

int tutti_domain_compare_counts(const struct tutti_domain *domain, uint32_t index,
                                enum tutti_domain_counts_side side, uint64_t number,
                                uint64_t *ret_mine, uint64_t *ret_theirs)
{
    const uint64_t *mine = tutti_domain_counts(domain, domain->me, side, number);
    const uint64_t *theirs = tutti_domain_counts(domain, index, side, number);
    uint64_t here = 0, there = 0;
    uint32_t entry = 0; /* the entry after the one that was compared last */

    /* acquire, all: pairs with tutti_domain_show_counts */
    if (tutti_load_acquire(&mine[0]) != number || tutti_load_acquire(&theirs[0]) != number)
        return -1;
    for (; entry < domain->nmembers && here == there; entry++) {
        here = tutti_load_acquire(&mine[1 + entry]);
        there = tutti_load_acquire(&theirs[1 + entry]);
    }
    if (here == there || tutti_load_acquire(&theirs[0]) != number)
        return -1;
    *ret_mine = here;
    *ret_theirs = there;
    return (int)entry - 1;
}

/* A member whose memory cannot be read any more has most likely ended. If a member of the host has
 * published a reason for giving up, that reason is reported instead. */
static int fail_read(const struct tutti_shm_segment *segment, uint32_t index, const char *reason)
{
    const struct tutti_abort_note *note = segment->domain.note;

    /* acquire: pairs with the release that publishes the note */
    if (tutti_load_acquire(&note->state) == TUTTI_NOTE_WRITTEN)
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d aborted: %.*s", (int)note->rank,
                          (int)sizeof note->reason - 1, note->reason);
    return tutti_fail(TUTTI_ERR_REMOTE, "cannot read memory of rank %u (pid %d): %s",
                      segment->domain.ranks[index], (int)segment->pids[index], reason);
}

int tutti_domain_read(struct tutti_domain *domain, uint32_t index, void *dst, uint64_t address,
                      size_t size)
{
    const struct tutti_shm_segment *segment = (const struct tutti_shm_segment *)domain;
    uint8_t *to = dst;

    if (domain->access[index] == TUTTI_DOMAIN_ACCESS_STORE) {
        memcpy(dst, (const void *)(uintptr_t)address, size);
        return TUTTI_OK;
    }
    while (size > 0) {
        struct iovec local = {.iov_base = to, .iov_len = size};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
        ssize_t moved = process_vm_readv(segment->pids[index], &local, 1, &remote, 1, 0);

        if (moved <= 0)
            return fail_read(segment, index,
                             moved < 0 ? strerror(errno) : "no byte could be copied");
        to += moved;
        address += (uint64_t)moved;
        size -= (size_t)moved;
    }
    return TUTTI_OK;
}

enum tutti_domain_access tutti_shm_segment_probe(const struct tutti_identity *mine,
                                                 const struct tutti_identity *theirs, bool may_read)
{
    uint8_t seen[TUTTI_IDENTITY_BYTES];
    struct iovec local = {.iov_base = seen, .iov_len = sizeof seen};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)theirs->probe_address,
                           .iov_len = sizeof seen};

    if (tutti_identity_same_process(mine, theirs))
        return TUTTI_DOMAIN_ACCESS_STORE;
    /* In another pid namespace the same pid would denote another process. */
    if (!may_read || mine->pid_namespace != theirs->pid_namespace || mine->pid_namespace == 0)
        return TUTTI_DOMAIN_ACCESS_NONE;
    if (process_vm_readv(theirs->pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof seen ||
        memcmp(seen, theirs->probe, sizeof seen) != 0)
        return TUTTI_DOMAIN_ACCESS_NONE;
    return TUTTI_DOMAIN_ACCESS_READ;
}
