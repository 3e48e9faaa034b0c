/* SPDX-License-Identifier: Apache-2.0
 * Keeps future events in a binary heap, so that adding an event and taking the earliest one are
 * fast. */
#include "simulator/events.h"

#include "base/array.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_before(const struct tutti_sim_event *a, const struct tutti_sim_event *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->number < b->number);
}

int tutti_sim_events_add(struct tutti_sim_events *events, double at_s, uint32_t kind, uint32_t id,
                         uint32_t version)
{
    struct tutti_sim_event event = {at_s, events->number, kind, id, version};
    uint32_t at;

    TUTTI_TRY(TUTTI_ARRAY_ROOM(events->heap, events->count, events->capacity, "events"));
    events->number++;
    for (at = events->count++; at > 0; at = (at - 1) / 2) {
        if (!is_before(&event, &events->heap[(at - 1) / 2]))
            break;
        events->heap[at] = events->heap[(at - 1) / 2];
    }
    events->heap[at] = event;
    return TUTTI_OK;
}

struct tutti_sim_event tutti_sim_events_take(struct tutti_sim_events *events)
{
    struct tutti_sim_event first = events->heap[0], last = events->heap[--events->count];
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < events->count; at = child) {
        if (child + 1 < events->count &&
            is_before(&events->heap[child + 1], &events->heap[child]))
            child++;
        if (!is_before(&events->heap[child], &last))
            break;
        events->heap[at] = events->heap[child];
    }
    events->heap[at] = last;
    return first;
}

void tutti_sim_events_fini(struct tutti_sim_events *events)
{
    free(events->heap);
    *events = (struct tutti_sim_events){.count = 0};
}
