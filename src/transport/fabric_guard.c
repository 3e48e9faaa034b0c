/* SPDX-License-Identifier: Apache-2.0
 * Guards memory that ranks lend each other.
 *
 * A rank whose operation fails returns its buffers to the caller at once, while a peer may be
 * copying from or to them. So a rank announces when it is inside others' memory, and stays out of
 * it once any rank has given up. A rank that fails waits for the ranks of its own process, which
 * would crash on freed memory. It also waits for ranks of other processes that may store to memory
 * that it has lent them. Such a rank may be stopped there, and only it can change that, so this
 * second wait has a limit. */
#include "transport/fabric_private.h"

#include "base/clock.h"

#include <sched.h>

#define PATIENCE_NS TUTTI_NS_PER_S

static bool has_anybody_failed(const struct tutti_fabric *fabric)
{
    return tutti_load_acquire(&fabric->segment->header->note.state) != TUTTI_NOTE_EMPTY;
}

bool tutti_fabric_enter(struct tutti_fabric *fabric)
{
    struct tutti_member *me;

    if (!fabric->shares_memory)
        return true;
    if (fabric->times_inside++ > 0)
        return true;
    me = &fabric->segment->members[fabric->my_index];
    tutti_store_relaxed(&me->is_inside, 1);
    /* Pairs with the fence in tutti_fabric_abort: either this rank sees its note, or
     * tutti_fabric_expel sees this rank. */
    tutti_fence_before_look(fabric->segment->domain.has_joint_fences);
    if (!has_anybody_failed(fabric))
        return true;
    tutti_store_release(&me->is_inside, 0);
    fabric->times_inside = 0;
    return false;
}

bool tutti_fabric_exit(struct tutti_fabric *fabric)
{
    if (!fabric->shares_memory)
        return true;
    /* release: pairs with the acquire in tutti_fabric_expel; this rank has finished with the memory
     * of others */
    if (--fabric->times_inside == 0)
        tutti_store_release(&fabric->segment->members[fabric->my_index].is_inside, 0);
    return !has_anybody_failed(fabric);
}

/* True if it may be inside memory of this rank, and do harm. */
static bool is_awaited(const struct tutti_fabric *fabric, uint32_t index, uint64_t until)
{
    const struct tutti_segment *segment = fabric->segment;

    if (segment->access[index] == TUTTI_ACCESS_STORE)
        return true;
    return segment->lends && segment->access[index] == TUTTI_ACCESS_READ &&
           tutti_now_ns() < until && tutti_segment_is_alive(segment, index);
}

void tutti_fabric_expel(struct tutti_fabric *fabric)
{
    uint64_t until = tutti_now_ns() + PATIENCE_NS;

    if (!fabric->shares_memory)
        return;
    for (uint32_t index = 0; index < fabric->nmembers; index++)
        while (index != fabric->my_index && is_awaited(fabric, index, until) &&
               tutti_load_acquire(&fabric->segment->members[index].is_inside) != 0)
            sched_yield();
}
