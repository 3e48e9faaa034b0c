/* SPDX-License-Identifier: Apache-2.0
 * Guarding memory that ranks lend each other. A rank whose operation fails gives its buffers back
 * to the caller at once, while a peer may be copying from or to them. So a rank says when it is
 * inside others' memory, stays out of it once anybody has given up, and a rank that fails waits for
 * those of its own process, who would crash on memory that is freed. */
#include "transport/fabric_private.h"

#include <sched.h>

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

void tutti_fabric_expel(struct tutti_fabric *fabric)
{
    if (!fabric->shares_memory)
        return;
    for (uint32_t index = 0; index < fabric->nmembers; index++)
        while (index != fabric->my_index &&
               fabric->segment->access[index] == TUTTI_ACCESS_STORE &&
               tutti_load_acquire(&fabric->segment->members[index].is_inside) != 0)
            sched_yield();
}
