/* SPDX-License-Identifier: Apache-2.0
 * The state of the interpreter. Only interpreter*.c use it. */
#ifndef TUTTI_TESTS_SCHEDULE_INTERPRETER_MACHINE_H
#define TUTTI_TESTS_SCHEDULE_INTERPRETER_MACHINE_H

#include "schedule/interpreter.h"
#include "schedule/interpreter_memory.h"

#include <stddef.h>

/* One half of a step in its lane. */
struct item {
    uint32_t step;
    bool sends, receives; /* neither: local */
};

struct lane {
    uint32_t rank, peer, channel;
    bool sends, receives;
    uint32_t count, head;
    struct item *items;
    uint64_t priority;
    bool is_started;
    /* Slices on their way in buffered runs, at the sending lane. */
    struct value *queue;
    uint32_t *queue_counts;
    size_t nqueue, queue_head, nslices, slices_head;
};

struct rank_state {
    uint32_t run, signals, nlocal_left;
    bool is_running, is_late;
    uint32_t nhalves_left;
    uint8_t *halves_left;          /* per step */
    uint8_t *received, *forwarded; /* slices, per step */
    struct value *bounce;          /* per step and chunk: the slice held by a step without store */
    uint32_t *bounce_first;
};

struct machine {
    struct tutti_schedule *const *schedules;
    uint32_t nranks, nruns, nlanes;
    const struct interpreter_options *options;
    struct lane *lanes;
    struct rank_state *ranks;
    struct memory memory;
    enum outcome outcome;
    uint64_t random;
};

static inline bool step_receives(const struct tutti_step *step)
{
    switch (step->kind) {
    case TUTTI_STEP_RECV: case TUTTI_STEP_RECV_REDUCE: case TUTTI_STEP_RECV_COPY_SEND:
    case TUTTI_STEP_RECV_REDUCE_SEND: case TUTTI_STEP_RECV_REDUCE_COPY_SEND: return true;
    default: return false;
    }
}

static inline bool step_sends(const struct tutti_step *step)
{
    switch (step->kind) {
    case TUTTI_STEP_SEND: case TUTTI_STEP_RECV_COPY_SEND: case TUTTI_STEP_RECV_REDUCE_SEND:
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND: return true;
    default: return false;
    }
}

static inline bool step_is_one_sided(const struct tutti_step *step)
{
    switch (step->kind) {
    case TUTTI_STEP_PUT: case TUTTI_STEP_GET: case TUTTI_STEP_GATHER_REDUCE:
    case TUTTI_STEP_SIGNAL: case TUTTI_STEP_WAIT: return true;
    default: return false;
    }
}

struct lane *machine_lane(struct machine *machine, uint32_t rank, uint32_t peer, uint32_t channel,
                          bool is_sending, bool is_receiving);

/* Move what can move at the head of a lane: one slice of one step. False: nothing can. */
bool machine_move_lane(struct machine *machine, struct lane *lane);

#endif
