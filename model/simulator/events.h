/* SPDX-License-Identifier: Apache-2.0
 * A queue of future events, which yields the earliest event first. Events at the same time come in
 * the order in which they were added, so simulations are reproducible. */
#ifndef TUTTI_SIMULATOR_EVENTS_H
#define TUTTI_SIMULATOR_EVENTS_H

#include <stdint.h>

enum tutti_sim_event_kind {
    TUTTI_SIM_EVENT_FLOW,        /* a flow is at its mark or at its end (flows.h) */
    TUTTI_SIM_EVENT_OVERHEAD,    /* a message's overhead is over */
    TUTTI_SIM_EVENT_HEAD,        /* a message's first slice has arrived */
    TUTTI_SIM_EVENT_ARRIVAL,     /* all of a message has arrived */
    TUTTI_SIM_EVENT_TAIL,        /* a message's last slice has left */
    TUTTI_SIM_EVENT_WORKED_HEAD, /* a step has done the arithmetic of its first slice */
    TUTTI_SIM_EVENT_WORKED_TAIL, /* a step has done the arithmetic of its last slice */
    TUTTI_SIM_EVENT_SEEN,        /* ranks of the same cell see the signal that a step has given */
    TUTTI_SIM_EVENT_SEEN_AFAR,   /* ranks of other cells see that signal, if this takes longer */
};

struct tutti_sim_event {
    double at_s;      /* simulated time */
    uint64_t number;  /* number of events that were added before this one */
    uint32_t kind;    /* enum tutti_sim_event_kind */
    uint32_t id;      /* index of the flow, message or step */
    uint32_t version; /* version of the flow; the player ignores an event with an older version */
};

/* The events are in a binary heap. A queue that is zero-initialized is empty. */
struct tutti_sim_events {
    struct tutti_sim_event *heap;
    uint32_t count, capacity;
    uint64_t number; /* number of events that have been added */
};

/* Adds an event at the simulated time at_s, in seconds. `version` is the version of the flow, or 0
 * if the event belongs to no flow. Returns TUTTI_ERR_SYSTEM if memory runs out. */
int tutti_sim_events_add(struct tutti_sim_events *events, double at_s, uint32_t kind, uint32_t id,
                         uint32_t version);
/* Removes the earliest event and returns it. The queue must not be empty. */
struct tutti_sim_event tutti_sim_events_take(struct tutti_sim_events *events);
void tutti_sim_events_fini(struct tutti_sim_events *events);

#endif
