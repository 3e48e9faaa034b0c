/* SPDX-License-Identifier: Apache-2.0
 * The queue of future events, earliest first. Events at the same time come in the order in which
 * they were added. */
#ifndef TUTTI_SIMULATOR_EVENTS_H
#define TUTTI_SIMULATOR_EVENTS_H

#include <stdint.h>

struct tutti_sim_event {
    double at_s;
    uint64_t number;  /* sequence number of adding */
    uint32_t kind, id; /* see play.h */
    uint32_t version; /* of a flow; an event with an older version is stale and ignored */
};

/* A binary heap. Zero-initialized it is empty. */
struct tutti_sim_events {
    struct tutti_sim_event *heap;
    uint32_t count, capacity;
    uint64_t number;
};

/* Adds an event at time at_s. `version` is that of a flow, else 0. TUTTI_ERR_SYSTEM: out of
 * memory. */
int tutti_sim_events_add(struct tutti_sim_events *events, double at_s, uint32_t kind, uint32_t id,
                         uint32_t version);
/* Takes the earliest event. The queue must not be empty. */
struct tutti_sim_event tutti_sim_events_take(struct tutti_sim_events *events);
void tutti_sim_events_fini(struct tutti_sim_events *events);

#endif
