/* SPDX-License-Identifier: Apache-2.0
 * The score: the schedules of all ranks, reduced to what playing them needs. The steps of a rank
 * are contiguous, and each knows the steps that depend on it. A message knows its two steps and its
 * place in its lane (one sender, one receiver, one channel).
 *
 * Messages of a lane that form one gathered write (gather.c) are one message here.
 */
#ifndef TUTTI_SIMULATOR_SCORE_H
#define TUTTI_SIMULATOR_SCORE_H

#include "simulator/simulator.h"

#define SIM_NONE UINT32_MAX

/* What made a step or a message ready: the last of all preconditions. */
struct tutti_sim_cause {
    enum {
        SIM_CAUSE_START,  /* no precondition: the beginning */
        SIM_CAUSE_STEP,   /* step `id` was complete */
        SIM_CAUSE_SENT,   /* message `id` had left its lane */
        SIM_CAUSE_HEAD,   /* the first slice of message `id` had arrived */
        SIM_CAUSE_SIGNAL, /* the signal given by step `id` was seen */
    } kind;
    uint32_t id;
};

struct tutti_sim_step {
    uint8_t kind;       /* enum tutti_step_kind */
    uint8_t halves;     /* remaining halves (receiving, sending) of a two-sided step */
    bool is_shared;     /* a copy to or from a window, where others load and store */
    bool has_head;      /* the first slice has arrived */
    bool is_received;   /* the receiving half is over */
    bool is_worked;     /* its arithmetic is over */
    uint16_t signal;
    uint16_t copies;    /* GATHER_REDUCE: number of this rank's spans that the result goes to */
    int32_t peer;       /* for one-sided steps: a rank, TUTTI_ALL_RANKS or TUTTI_NO_RANK */
    uint32_t among, among_count; /* ranks it involves, in score->among; count 0: all ranks */
    uint32_t rank;
    uint32_t in, out;   /* messages, or SIM_NONE */
    uint32_t next_in, next_out; /* the next step of the same gathered message */
    uint32_t unmet;     /* number of preconditions still to be met */
    uint32_t first_chunk, end_chunk; /* the range of its buffer that it sends or receives into */
    uint32_t dependents, ndependents; /* range in score->dependents */
    uint32_t next_local; /* the next local step of its rank, in program order */
    uint32_t next_waiting; /* the next step in the queue that it is in */
    struct tutti_sim_cause cause;
    double bytes;
    double ready_s, begin_s, done_s;
    double alone_s;     /* time of its work if it has the machine to itself */
    double received_s;
};

struct tutti_sim_message {
    uint32_t sender, receiver; /* steps; the first of each if the message is gathered */
    uint32_t last_sender, last_receiver;
    bool is_part;              /* merged into a gathered message and no longer one of its own */
    uint32_t lane;             /* identified by the first message of the lane */
    uint32_t next;             /* the next message of its lane */
    uint32_t unmet;            /* parties (lane, senders, receivers) still to agree */
    uint32_t out_next, out_previous, in_next, in_previous; /* links in the queues of its ports */
    uint32_t out, in;          /* ports that it needs exclusively, or SIM_NONE */
    bool has_flowed, has_arrived, has_tail;
    struct tutti_sim_cause cause;
    double bytes;
    /* begin_s is less than 0 before it begins. */
    double ready_s, begin_s, flow_s, sent_s, arrived_s;
    double head_s;             /* when the first slice had left */
    double alone_s;            /* time of the bytes if nobody else sends any */
    double latency_s, overhead_s;
};

struct tutti_sim_score {
    uint32_t nranks;
    uint32_t *first; /* [nranks + 1]: index of the first step of each rank */
    struct tutti_sim_step *steps;
    uint32_t *dependents;
    uint32_t *among;
    struct tutti_sim_message *messages;
    uint32_t nsteps, ndependents, namong, nmessages;
    uint32_t step_capacity, dependent_capacity, among_capacity, message_capacity;
    uint32_t nsignals;
    double footprint_bytes; /* footprint of the call at one rank: topology/machine/machine.h */
    bool is_sharing; /* true if there are one-sided steps */
};

/* Requests all schedules, one at a time, matches their messages and, if `gathers`, joins some into
 * gathered writes. The caller releases *ret_score with tutti_sim_score_fini. TUTTI_ERR_ARGUMENT:
 * the schedules do not fit each other. TUTTI_ERR_SYSTEM: out of memory. Errors of the source are
 * returned as they are. */
int tutti_sim_score_load(const struct tutti_sim_source *source, bool gathers,
                         struct tutti_sim_score *ret_score);
/* gather.c */
void tutti_sim_score_gather(struct tutti_sim_score *score);
void tutti_sim_score_fini(struct tutti_sim_score *score);

#endif
