/* SPDX-License-Identifier: Apache-2.0
 * Playing a score on a network, event by event. Everything that happens at one time is taken
 * together: first all its consequences, then ports and cores take up new work, then the links are
 * shared anew.
 *
 * A message                                        A step that receives and passes on
 *
 *   ready   begin   flow              sent  arrived   in   |-----========|
 *     |-port--|overhead|-----bytes-----|-latency-|    out       |-----========|
 *                                                             after the first slice of `in`, and
 *                                                             its last slice after the last of `in`
 *
 * A step's arithmetic starts with the first slice too. It and the local steps of a rank take turns
 * on the rank's core.
 *
 * Taken for granted: room for what a fused step has received and not sent yet.
 */
#ifndef TUTTI_SIMULATOR_PLAY_H
#define TUTTI_SIMULATOR_PLAY_H

#include "simulator/flows.h"

/* Bytes that pass through a fused step, or its arithmetic, at a time: what stays in a core's cache
 * and goes into a socket in one write. It matters for how fast a pipeline fills only. */
#define SIM_SLICE_BYTES 65536.0

enum sim_event_kind {
    SIM_EVENT_FLOW,         /* tutti_sim_flows_share foresaw it */
    SIM_EVENT_OVERHEAD,     /* of a message is over */
    SIM_EVENT_HEAD,         /* of a message is there */
    SIM_EVENT_ARRIVAL,      /* of a message */
    SIM_EVENT_TAIL,         /* of a message has left */
    SIM_EVENT_WORKED_HEAD,  /* a step has done the arithmetic of its first slice */
    SIM_EVENT_WORKED_TAIL,  /* and of its last one */
    SIM_EVENT_SEEN,         /* others see the signal that a step has given: those of its cell ... */
    SIM_EVENT_SEEN_AFAR,    /* ... and those of other cells, if it takes longer there */
};

enum sim_flow_kind { SIM_FLOW_MESSAGE, SIM_FLOW_OVERHEAD, SIM_FLOW_WORK };

struct sim_list {
    uint32_t *at;
    uint32_t count, capacity;
};

/* Steps in a queue, linked by next_waiting. */
struct sim_queue {
    uint32_t head, tail;
};

struct sim_core {
    struct sim_queue queue;
    bool is_busy;
};

struct sim_play {
    struct sim_score score;
    struct tutti_machine machine; /* as a call of this footprint finds it */
    struct sim_network network;
    struct sim_events events;
    struct sim_flows flows;
    struct sim_route route; /* of whatever is being started */
    double now_s;
    struct sim_cause cause; /* of what happens now */
    struct sim_list done;   /* steps whose consequences are still to come */
    struct sim_list ready;  /* the sending steps of messages that became ready now */
    struct sim_list sent;   /* messages that left their ports now */
    struct sim_list awake;  /* ranks whose core may have work */
    struct sim_core *cores; /* per rank */
    /* Signals: what each rank has given for others to see, how many ranks have given each number,
     * and who waits for one rank or for all. Each for those who see it at once, and, where a
     * machine has cells that see each other's signals later, for the others. */
    uint16_t *given, *given_afar;
    uint32_t *ngiven, *ngiven_afar; /* of all ranks, then of those of each cell: nnumbers each */
    uint32_t nnumbers;
    struct sim_queue *waiting;
    struct sim_queue waiting_all;
    uint32_t nleft;         /* steps that are not complete */
    uint64_t nmessages;
    double bytes;
};

int tutti_sim_list_add(struct sim_list *list, uint32_t id);

/* play.c: play until nothing happens any more. */
int tutti_sim_play_init(struct sim_play *play, const struct tutti_sim_source *source,
                        const struct tutti_machine *machine, bool gathers);
int tutti_sim_play(struct sim_play *play);
/* Is all done? TUTTI_ERR_ARGUMENT: somebody waits for ever. */
int tutti_sim_play_check(const struct sim_play *play);
void tutti_sim_play_fini(struct sim_play *play);

/* One of the two halves of a step, or all of a local one, is over. */
int tutti_sim_half_done(struct sim_play *play, uint32_t step);

/* play_messages.c. A message may go as soon as its lane, its sender and its receiver have each
 * agreed once. */
int tutti_sim_message_agree(struct sim_play *play, uint32_t message);
int tutti_sim_message_event(struct sim_play *play, enum sim_event_kind kind, uint32_t message);
int tutti_sim_message_flowed(struct sim_play *play, uint32_t message, bool is_over);
int tutti_sim_overhead_flowed(struct sim_play *play, uint32_t message);
/* The step that passes the message on has all of it. */
int tutti_sim_message_complete_input(struct sim_play *play, uint32_t message);
/* Give ports to those who wait for them. */
int tutti_sim_dispatch(struct sim_play *play);

/* play_work.c: local and one-sided steps, and the arithmetic of received ones. */
int tutti_sim_local_ready(struct sim_play *play, uint32_t step);
int tutti_sim_head_arrived(struct sim_play *play, uint32_t step);
int tutti_sim_all_arrived(struct sim_play *play, uint32_t step);
int tutti_sim_work_event(struct sim_play *play, enum sim_event_kind kind, uint32_t step);
int tutti_sim_work_flowed(struct sim_play *play, uint32_t step);
/* Let idle cores take up what waits for them. */
int tutti_sim_employ(struct sim_play *play);

static inline double sim_head(double bytes)
{
    return bytes < SIM_SLICE_BYTES ? bytes : SIM_SLICE_BYTES;
}

static inline bool sim_is_fused(const struct sim_step *step)
{
    return step->in != SIM_NONE && step->out != SIM_NONE;
}

static inline bool sim_is_gathered(const struct sim_message *message)
{
    return message->last_sender != message->sender;
}

static inline int sim_foresee(struct sim_play *play, double after_s, enum sim_event_kind kind,
                              uint32_t id)
{
    return tutti_sim_events_add(&play->events, play->now_s + after_s, kind, id, 0);
}

#endif
