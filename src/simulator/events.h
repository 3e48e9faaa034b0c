/* SPDX-License-Identifier: Apache-2.0
 * What will happen, the earliest first; of those at one time, the one that was foreseen first. */
#ifndef TUTTI_SIMULATOR_EVENTS_H
#define TUTTI_SIMULATOR_EVENTS_H

#include <stdint.h>

struct sim_event {
    double at_s;
    uint64_t number;  /* in the order of foreseeing */
    uint32_t kind, id; /* play.h */
    uint32_t version; /* of a flow; an older one is void */
};

/* A binary heap; zeroed, it is empty. */
struct sim_events {
    struct sim_event *heap;
    uint32_t count, capacity;
    uint64_t number;
};

int tutti_sim_events_add(struct sim_events *events, double at_s, uint32_t kind, uint32_t id,
                         uint32_t version);
/* Takes the earliest; there is one. */
struct sim_event tutti_sim_events_take(struct sim_events *events);
void tutti_sim_events_fini(struct sim_events *events);

#endif
