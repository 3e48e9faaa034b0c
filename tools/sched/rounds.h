/* SPDX-License-Identifier: Apache-2.0
 * Logical time: the round in which each message of a schedule travels, if every message takes one
 * round and a rank sends one and receives one at a time.
 *
 * This is the time of the picture, not of a machine. A message starts as soon as it is at the head
 * of its lane, its dependencies are complete at both ends, and both ports are free. Local steps
 * take no time, except in schedules without messages, where a copy takes one round.
 */
#ifndef TUTTI_SCHED_ROUNDS_H
#define TUTTI_SCHED_ROUNDS_H

#include "schedule/access.h"
#include "schedule/text.h"

#include <stdint.h>

/* Something that a rank does from `begin` to `end`. A message is one event of two ranks. */
struct event {
    uint32_t kind;         /* enum tutti_step_kind; for a message, that of its receiving step */
    uint32_t from, to;     /* ranks; equal for local steps. TUTTI_ALL_RANKS: see step.h */
    uint32_t channel;
    uint32_t begin, end;
    struct tutti_span span; /* chunks at the sender */
    struct tutti_among among; /* for gather_reduce: the ranks whose memory it reads */
    uint32_t wrapped;       /* chunks of a second message, from chunk 0 on, that travels with it */
};

struct rounds {
    struct event *events; /* owned */
    size_t nevents, capacity;
    uint32_t nrounds, nmessages;
};

/* Plays the schedules. False if the ranks deadlock; tutti_schedule_check says why. The caller
 * releases *ret_rounds with rounds_fini. */
bool rounds_play(const struct tutti_ensemble *team, struct rounds *ret_rounds);
void rounds_fini(struct rounds *rounds);

#endif
