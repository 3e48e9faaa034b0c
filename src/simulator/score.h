/* SPDX-License-Identifier: Apache-2.0
 * The score: the schedules of all ranks in the little that playing them needs. Steps of a rank lie
 * one after the other and know who waits for them; a message knows both its steps and its place in
 * its lane (one sender, one receiver, one channel).
 *
 * Messages of a lane that make one write (gather.c) are one here.
 */
#ifndef TUTTI_SIMULATOR_SCORE_H
#define TUTTI_SIMULATOR_SCORE_H

#include "simulator/simulator.h"

#define SIM_NONE UINT32_MAX

/* What made a step or a message ready, the last of all that had to happen. */
struct sim_cause {
    enum {
        SIM_CAUSE_START,  /* nothing: the beginning */
        SIM_CAUSE_STEP,   /* that step was complete */
        SIM_CAUSE_SENT,   /* that message had left its lane */
        SIM_CAUSE_HEAD,   /* the first slice of that message was there */
        SIM_CAUSE_SIGNAL, /* the signal that that step gave was seen */
    } kind;
    uint32_t id;
};

struct sim_step {
    uint8_t kind;       /* enum tutti_step_kind */
    uint8_t halves;     /* receiving and sending that is left of a two-sided step */
    bool is_shared;     /* a copy to or from a window: others load and store there */
    bool has_head;      /* the first slice is there */
    bool is_received;   /* the receiving half is over */
    bool is_worked;     /* its arithmetic is over */
    uint16_t signal;
    uint16_t copies;    /* GATHER_REDUCE: places of this rank that the result goes to */
    int32_t peer;       /* of one-sided steps: a rank, TUTTI_ALL_RANKS or TUTTI_NO_RANK */
    uint32_t among, among_count; /* in score->among: those that it goes by; count 0: all */
    uint32_t rank;
    uint32_t in, out;   /* messages, or SIM_NONE */
    uint32_t next_in, next_out; /* the next step of the same gathered message */
    uint32_t unmet;     /* what must happen before it starts */
    uint32_t first_chunk, end_chunk; /* of its buffer, that it sends or receives into */
    uint32_t dependents, ndependents; /* in score->dependents */
    uint32_t next_local; /* of its rank, in program order */
    uint32_t next_waiting; /* in the queue that it is in */
    struct sim_cause cause;
    double bytes;
    double ready_s, begin_s, done_s;
    double alone_s;     /* what its work takes if nobody else has any */
    double received_s;
};

struct sim_message {
    uint32_t sender, receiver; /* steps: the first of each, if it is gathered */
    uint32_t last_sender, last_receiver;
    bool is_part;              /* of a gathered one, and none itself */
    uint32_t lane;             /* the first message of its lane */
    uint32_t next;             /* of its lane */
    uint32_t unmet;            /* lane, senders, receivers */
    uint32_t out_next, out_previous, in_next, in_previous; /* in the queues of its ports */
    uint32_t out, in;          /* ports that it needs for itself, or SIM_NONE */
    bool has_flowed, has_arrived, has_tail;
    struct sim_cause cause;
    double bytes;
    /* begin_s is less than 0 before it begins. */
    double ready_s, begin_s, flow_s, sent_s, arrived_s;
    double head_s;             /* when the first slice had left */
    double alone_s;            /* what the bytes take if nobody else sends any */
    double latency_s, overhead_s;
};

struct sim_score {
    uint32_t nranks;
    uint32_t *first; /* [nranks + 1]: the first step of each rank */
    struct sim_step *steps;
    uint32_t *dependents;
    uint32_t *among;
    struct sim_message *messages;
    uint32_t nsteps, ndependents, namong, nmessages;
    uint32_t step_capacity, dependent_capacity, among_capacity, message_capacity;
    uint32_t nsignals;
    double footprint_bytes; /* of the call at a rank: topology/machine/machine.h */
    bool is_sharing; /* has one-sided steps */
};

/* Ask for all schedules, one after the other, match their messages, and gather some.
 * TUTTI_ERR_ARGUMENT: they do not fit each other; TUTTI_ERR_SYSTEM; what the source returns. */
int tutti_sim_score_load(const struct tutti_sim_source *source, bool gathers,
                         struct sim_score *ret_score);
/* gather.c */
void tutti_sim_score_gather(struct sim_score *score);
void tutti_sim_score_fini(struct sim_score *score);

#endif
