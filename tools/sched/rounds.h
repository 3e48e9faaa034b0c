/* SPDX-License-Identifier: Apache-2.0
 * Computes logical time: the round in which each message of a schedule travels. Every message takes
 * one round, and in a round each rank sends at most one message and receives at most one.
 *
 * tutti-sched draws pictures in this time. It does not predict the time on a machine. A lane is the
 * sequence of messages from one rank to another on one channel. A message starts as soon as it is
 * the next in its lane, its dependencies are complete at both ranks, and both ranks are free. Local
 * copies and reductions take no time. In schedules without messages they take one round. Steps
 * that reach the memory of other ranks take one round.
 */
#ifndef TUTTI_SCHED_ROUNDS_H
#define TUTTI_SCHED_ROUNDS_H

#include "schedule/access.h"
#include "schedule/text.h"

#include <stdint.h>

/* One message, or one local or one-sided step. It lasts from round `begin` to round `end`. If these
 * are equal, it takes no time. */
struct event {
    uint32_t kind;         /* enum tutti_step_kind; a message has the kind of its receiving step */
    uint32_t from, to;     /* ranks; equal for local steps. TUTTI_ALL_RANKS: see step.h */
    uint32_t channel;
    uint32_t begin, end;
    struct tutti_span span;   /* the chunks at the sender, or those that a local step reads */
    struct tutti_step_ranks among; /* for gather_reduce: the ranks whose memory it reads */
    /* Chunks that wrap around the end of a buffer travel as two messages, which are one event. This
     * is the number of chunks, from chunk 0 on, of the second message. 0: there is none. */
    uint32_t wrapped;
};

struct rounds {
    struct event *events; /* owned */
    size_t nevents, capacity;
    uint32_t nrounds, nmessages; /* a message that wraps around counts as two */
};

/* Plays the schedules. Returns false if the ranks deadlock, and leaves *ret_rounds unchanged.
 * tutti_check_schedule then finds the reason. Otherwise the caller releases *ret_rounds with
 * rounds_fini, which accepts a zero-initialized value. The events borrow from `team`. */
bool rounds_play(const struct tutti_ensemble *team, struct rounds *ret_rounds);
void rounds_fini(struct rounds *rounds);

#endif
