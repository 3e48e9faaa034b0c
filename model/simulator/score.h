/* SPDX-License-Identifier: Apache-2.0
 * The score holds the schedules of all ranks in the form that the simulator plays. The steps of a
 * rank are contiguous. Each step lists the steps that depend on it. Each message holds its sending
 * step, its receiving step and its position in its lane. A lane is the sequence of all messages
 * from one rank to another on one channel.
 *
 * The score joins the messages of a lane that form one gathered write (gather.c) into one message.
 * A step or message becomes ready when all of its preconditions are met. A step waits for the steps
 * that it depends on and, if it is not two-sided, for the one before it on its rank. A message
 * waits for its sending steps, its receiving steps and the message before it in its lane.
 */
#ifndef TUTTI_SIMULATOR_SCORE_H
#define TUTTI_SIMULATOR_SCORE_H

#include "simulator/simulator.h"

#define TUTTI_SIM_NONE UINT32_MAX

/* The event that made a step or a message ready: the precondition that was met last. */
struct tutti_sim_cause {
    enum {
        TUTTI_SIM_CAUSE_START,  /* the beginning of the play: there was no precondition */
        TUTTI_SIM_CAUSE_STEP,   /* step `id` was complete */
        TUTTI_SIM_CAUSE_SENT,   /* message `id` had left its lane */
        TUTTI_SIM_CAUSE_HEAD,   /* the first slice of message `id` had arrived */
        TUTTI_SIM_CAUSE_SIGNAL, /* the signal given by step `id` was seen */
    } kind;
    uint32_t id;
};

struct tutti_sim_step {
    uint8_t kind;       /* enum tutti_step_kind */
    uint8_t halves;     /* remaining halves (receiving, sending) of a two-sided step */
    bool is_shared;     /* a copy to or from a window, which other ranks load and store */
    bool has_head;      /* the first slice has arrived */
    bool is_received;   /* the receiving half is over */
    bool has_worked;    /* its arithmetic is over, or it has none */
    uint16_t signal;    /* WAIT: the number of the signal */
    uint16_t copies;    /* GATHER_REDUCE: number of spans of this rank that receive the result */
    int32_t peer;       /* for one-sided steps: a rank, TUTTI_ALL_RANKS or TUTTI_NO_RANK */
    uint32_t among, among_count; /* range in score->among: its ranks; count 0: all ranks */
    uint32_t rank;
    uint32_t in, out;   /* the messages that it receives and sends, or TUTTI_SIM_NONE */
    uint32_t next_in, next_out; /* the next step of the same gathered message */
    uint32_t unmet;             /* number of preconditions that are not met yet */
    uint32_t first_chunk, end_chunk; /* the chunks that it sends, or receives into; the end is
                                        exclusive */
    uint32_t dependents, ndependents; /* range in score->dependents */
    uint32_t next_local; /* the next local step of its rank, in program order */
    uint32_t next_waiting; /* the next step in the queue that it is in */
    struct tutti_sim_cause cause; /* what made the step ready */
    double bytes;
    double ready_s, begin_s; /* when it became ready; when its work began */
    double done_s;           /* when all of it was over; less than 0 before */
    double alone_s;     /* time of its work if no other work shares the machine */
    double received_s;  /* when its receiving half was over */
};

struct tutti_sim_message {
    uint32_t sender, receiver; /* steps; the first of each if the message is gathered */
    uint32_t last_sender, last_receiver; /* the last of each; else equal to the first */
    uint8_t channel;           /* of its lane */
    bool is_part;              /* part of a gathered message, so not played on its own */
    uint32_t to;               /* the receiving rank; in a play by symmetry, `receiver` is a step of
                                  its representative */
    uint32_t lane;             /* number of the first message of its lane */
    uint32_t next;             /* the next message of its lane, or TUTTI_SIM_NONE */
    uint32_t unmet;            /* number of preconditions that are not met yet */
    uint32_t out_next, out_previous, in_next, in_previous; /* neighbors in its ports' queues */
    uint32_t out, in;          /* ports that it needs exclusively, or TUTTI_SIM_NONE */
    bool has_flowed;           /* its flow is over */
    bool has_arrived;          /* all of it is at the receiver */
    bool has_tail;             /* its last slice leaves after its flow is over, because the slice
                                  waits for the input of the sending step */
    struct tutti_sim_cause cause; /* what made the message ready */
    double bytes;
    /* play.h has a drawing of these times. begin_s is less than 0 before the message begins. */
    double ready_s, begin_s, flow_s, sent_s, arrived_s;
    double head_s;             /* when the first slice had left */
    double alone_s;            /* time of the bytes if no other message shares the links */
    double latency_s, overhead_s; /* of its route */
};

struct tutti_sim_score {
    uint32_t nranks;
    uint32_t period; /* number of ranks that are played by symmetry; 0: all are played */
    uint32_t *first; /* [nranks + 1]: index of the first step of each rank */
    struct tutti_sim_step *steps;
    uint32_t *dependents; /* steps; each step has a range of this array */
    uint32_t *among;      /* ranks; each one-sided step to some ranks has a range of this array */
    struct tutti_sim_message *messages;
    uint32_t nsteps, ndependents, namong, nmessages;
    uint32_t step_capacity, dependent_capacity, among_capacity, message_capacity;
    double footprint_bytes; /* size of the call at one rank: topology/machine/machine.h */
    bool has_one_sided;     /* some step is one-sided */
};

/* Builds the score of a call. Requests the schedules of all ranks from the source, one at a time,
 * and matches sends with receives. If `gathers` is true, joins some messages into gathered writes.
 * The caller releases *ret_score with tutti_sim_score_fini. TUTTI_ERR_ARGUMENT: a message lacks one
 * of its steps, its two steps differ in size, or the source gave the schedule of another rank.
 * TUTTI_ERR_SYSTEM: out of memory. Errors of the source are returned unchanged. */
int tutti_sim_score_load(const struct tutti_sim_source *source, bool gathers,
                         struct tutti_sim_score *ret_score);
/* Joins messages into gathered writes (gather.c). tutti_sim_score_load calls this function. */
void tutti_sim_score_gather(struct tutti_sim_score *score);
void tutti_sim_score_fini(struct tutti_sim_score *score);

#endif
