/* SPDX-License-Identifier: Apache-2.0
 * Logical time: in which round each message of a schedule travels, when every message takes one
 * round and a rank sends one and receives one at a time.
 *
 * It is the time of the picture, not of a machine: a message starts as soon as its turn on its lane
 * comes, what it depends on is complete at both ends, and both ports are free. Local steps take no
 * time, but in schedules without messages, where copying is what is done: one round.
 */
#ifndef TUTTI_SCHED_ROUNDS_H
#define TUTTI_SCHED_ROUNDS_H

#include "schedule/access.h"
#include "schedule/text.h"

#include <stdint.h>

/* Something a rank does from `begin` to `end`; a message is one thing of two ranks. */
struct event {
    uint32_t kind;         /* enum tutti_step_kind: of a message, that of its receive */
    uint32_t from, to;     /* ranks; the same for local steps. TUTTI_ALL_RANKS: see step.h */
    uint32_t channel;
    uint32_t begin, end;
    struct tutti_span span; /* chunks at the sender */
    struct tutti_among among; /* of a gather_reduce: the ranks whose memory it reads */
    uint32_t wrapped;       /* chunks of a second message, from chunk 0 on, that goes with it */
};

struct rounds {
    struct event *events; /* owned */
    size_t nevents, capacity;
    uint32_t nrounds, nmessages;
};

/* False if the ranks do not come to an end: then tutti_schedule_check says why. */
bool rounds_play(const struct tutti_ensemble *team, struct rounds *ret_rounds);
void rounds_fini(struct rounds *rounds);

#endif
