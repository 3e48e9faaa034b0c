/* SPDX-License-Identifier: Apache-2.0
 * Guarding memory that ranks lend each other. A rank whose operation fails gives its buffers back
 * to the caller at once, while a peer may be copying from or to them. So a rank says when it is
 * inside others' memory, stays out of it once anybody has given up, and a rank that fails waits for
 * those of its own process, who would crash on memory that is freed, and for those of others, who
 * may store to memory that it has lent them. The latter may be stopped there, which only they can
 * change: for them it waits not for ever. */
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
    /* Pairs with the fence in tutti_fabric_abort: we see its note, or tutti_fabric_expel sees us.
     */
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
    /* release: pairs with the acquire in tutti_fabric_expel; we are done with the memory of others
     */
    if (--fabric->times_inside == 0)
        tutti_store_release(&fabric->segment->members[fabric->my_index].is_inside, 0);
    return !has_anybody_failed(fabric);
}

/* Could it be inside memory of mine, and harm? */
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
