/* SPDX-License-Identifier: Apache-2.0
 * Guards memory that ranks lend each other.
 *
 * A rank whose operation fails returns its buffers to the caller at once, while a peer may be
 * copying from or to them. So a rank announces when it is inside others' memory, and stays out of
 * it once any rank has given up. A rank that fails waits for the ranks of its own process, which
 * would crash on freed memory. It also waits for ranks of other processes that may store to memory
 * that it has lent them. The process of such a rank may be stopped there, so this second wait has a
 * limit. */
#include "transport/shm/segment.h"

#include "base/clock.h"

#include <sched.h>

/* The limit of the wait for ranks of other processes. */
#define PATIENCE_NS TUTTI_NS_PER_S

static struct tutti_shm_segment *segment_of(struct tutti_domain *domain)
{
    return (struct tutti_shm_segment *)domain;
}

static bool has_anybody_failed(const struct tutti_domain *domain)
{
    /* acquire: pairs with the compare-exchange in post_note */
    return tutti_load_acquire(&domain->note->state) != TUTTI_NOTE_EMPTY;
}

bool tutti_domain_enter(struct tutti_domain *domain)
{
    struct tutti_shm_segment *segment = segment_of(domain);
    struct tutti_shm_member *me;

    if (segment->times_inside++ > 0)
        return true;
    me = &segment->members[domain->me];
    tutti_store_relaxed(&me->is_inside, 1);
    /* Pairs with the fence in tutti_shm_abort: either this rank sees its note, or
     * tutti_domain_drain sees this rank. */
    tutti_fence_before_look(domain->has_joint_fences);
    if (!has_anybody_failed(domain))
        return true;
    /* release: pairs with the acquire in tutti_domain_drain */
    tutti_store_release(&me->is_inside, 0);
    segment->times_inside = 0;
    return false;
}

bool tutti_domain_exit(struct tutti_domain *domain)
{
    struct tutti_shm_segment *segment = segment_of(domain);

    tutti_assert(segment->times_inside > 0);
    /* release: pairs with the acquire in tutti_domain_drain; this rank has finished with the memory
     * of others */
    if (--segment->times_inside == 0)
        tutti_store_release(&segment->members[domain->me].is_inside, 0);
    return !has_anybody_failed(domain);
}

/* True if this rank must wait while member `index` is inside, because that member may access memory
 * that this rank is about to return to its caller. */
static bool is_awaited(const struct tutti_shm_segment *segment, uint32_t index, uint64_t until)
{
    if (segment->access[index] == TUTTI_DOMAIN_ACCESS_STORE)
        return true;
    return segment->lends && segment->access[index] == TUTTI_DOMAIN_ACCESS_READ &&
           tutti_now_ns() < until && tutti_shm_segment_is_alive(segment, index);
}

void tutti_domain_drain(struct tutti_domain *domain)
{
    struct tutti_shm_segment *segment = segment_of(domain);
    uint64_t until = tutti_now_ns() + PATIENCE_NS;

    for (uint32_t index = 0; index < domain->nmembers; index++)
        /* acquire: pairs with the release in tutti_domain_exit; the member has left this memory */
        while (index != domain->me && is_awaited(segment, index, until) &&
               tutti_load_acquire(&segment->members[index].is_inside) != 0)
            sched_yield();
}
