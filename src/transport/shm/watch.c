/* SPDX-License-Identifier: Apache-2.0
 * Detects which ranks of the host have given up, left or died, from the segment and its locks. */
#include "transport/shm/shm.h"

#include <stdio.h>
#include <string.h>

/* ---- death --------------------------------------------------------------------------- */

/* Returns true if the member has ended; *ret_loss describes it. */
static bool has_ended(const struct tutti_shm *shm, uint32_t index, struct tutti_loss *ret_loss)
{
    const struct tutti_shm_segment *segment = shm->segment;
    int pid = (int)segment->pids[index];
    bool is_alive;
    uint32_t presence;

    if (index == shm->my_index)
        return false;
    /* Test the lock first, then the flag, which is set before the lock is released. */
    is_alive = segment->access[index] == TUTTI_DOMAIN_ACCESS_STORE ||
               tutti_shm_segment_is_alive(segment, index);
    /* acquire: pairs with the release in tutti_shm_leave */
    presence = tutti_load_acquire(&segment->members[index].presence);
    if (presence == TUTTI_SHM_MEMBER_LEFT || (presence != TUTTI_SHM_MEMBER_DROPPED && is_alive))
        return false;
    ret_loss->peer = (int)shm->members[index];
    snprintf(ret_loss->what, sizeof ret_loss->what,
             presence == TUTTI_SHM_MEMBER_DROPPED
                 ? "(pid %d) destroyed its communicator while others used it"
                 : "(pid %d) died",
             pid);
    return true;
}

bool tutti_shm_find_dead(const struct tutti_fabric *fabric, int *from, uint32_t most,
                         struct tutti_loss *ret_loss)
{
    const struct tutti_shm *shm = tutti_shm_of(fabric);
    uint32_t index, count;

    if (!shm->has_domain)
        return false;
    index = tutti_shm_index(shm, *from);
    count = shm->nmembers < most ? shm->nmembers : most;
    for (uint32_t i = 0; i < count; i++) {
        bool is_dead = has_ended(shm, index, ret_loss);

        index = index + 1 < shm->nmembers ? index + 1 : 0;
        *from = (int)shm->members[index];
        if (is_dead)
            return true;
    }
    return false;
}

/* ---- abort --------------------------------------------------------------------------- */

static void post_note(struct tutti_abort_note *note, const struct tutti_cause *cause)
{
    uint32_t expected = TUTTI_NOTE_EMPTY;

    /* acquire and release: pairs with itself in other ranks, of which one writes the note */
    if (!tutti_compare_exchange(&note->state, &expected, (uint32_t)TUTTI_NOTE_BEING_WRITTEN))
        return; /* another rank was first, and all ranks report the reason of that rank */
    note->code = cause->code;
    note->rank = cause->rank;
    tutti_message_copy(note->reason, sizeof note->reason, cause->reason);
    /* release: pairs with the acquire in tutti_fabric_find_abort, publishes the note */
    tutti_store_release(&note->state, (uint32_t)TUTTI_NOTE_WRITTEN);
}

void tutti_shm_abort(struct tutti_fabric *fabric, struct tutti_cause *cause)
{
    struct tutti_shm_segment *segment = tutti_shm_of(fabric)->segment;
    const struct tutti_abort_note *note;

    if (segment == NULL)
        return;
    note = segment->domain.note;
    /* acquire: pairs with the release in post_note; the note is complete */
    if (!fabric->has_heard && tutti_load_acquire(&note->state) == TUTTI_NOTE_WRITTEN) {
        cause->code = note->code;
        cause->rank = note->rank;
        snprintf(cause->reason, sizeof cause->reason, "%.*s", (int)sizeof note->reason - 1,
                 note->reason);
    }
    post_note(segment->domain.note, cause);
    /* Pairs with the fence in tutti_domain_enter. */
    tutti_fence_after_flag(segment->domain.has_joint_fences);
    tutti_domain_ring_all(&segment->domain);
}

/* ---- leaving ------------------------------------------------------------------------- */

void tutti_shm_leave(struct tutti_fabric *fabric, bool is_orderly)
{
    struct tutti_shm *shm = tutti_shm_of(fabric);

    if (!shm->has_domain)
        return;
    /* release: pairs with the acquire in has_ended; it comes before the lock is released */
    tutti_store_release(&shm->segment->members[shm->my_index].presence,
                        (uint32_t)(is_orderly ? TUTTI_SHM_MEMBER_LEFT : TUTTI_SHM_MEMBER_DROPPED));
    /* Wake peers that sleep, so that they see this at once. Peers in the same process have no other
     * sign that this rank has ended. */
    if (!is_orderly)
        tutti_domain_ring_all(&shm->segment->domain);
}

bool tutti_shm_has_left(const struct tutti_fabric *fabric, int rank)
{
    const struct tutti_shm *shm = tutti_shm_of(fabric);

    for (uint32_t index = 0; shm->has_domain && index < shm->nmembers; index++)
        if ((int)shm->members[index] == rank)
            /* acquire: pairs with the release in tutti_shm_leave; everything that it sent is
             * visible */
            return tutti_load_acquire(&shm->segment->members[index].presence) ==
                   TUTTI_SHM_MEMBER_LEFT;
    return false;
}
