/* SPDX-License-Identifier: Apache-2.0
 * Plays a score (score.h) on a network, event by event. All events of the same time are handled
 * together. First come all their consequences. Then ports and cores begin new work. Then new rates
 * on the links are computed (flows.h).
 *
 * A message                                        A step that receives and passes on
 *
 *   ready   begin   flow              sent  arrived   in   |-----========|
 *     |-port--|overhead|-----bytes-----|-latency-|    out       |-----========|
 *                                                             after the first slice of `in`, and
 *                                                             its last slice after the last of `in`
 *
 * A step's arithmetic starts with the first slice too. The arithmetic and the local steps of a rank
 * take turns on the rank's core.
 *
 * The simulator assumes that there is always room for the data that a fused step has received and
 * not sent yet.
 */
#ifndef TUTTI_SIMULATOR_PLAY_H
#define TUTTI_SIMULATOR_PLAY_H

#include "simulator/flows.h"

/* Slice size: the bytes that pass through a fused step or its arithmetic at a time. It stands for
 * what stays in a core's cache and goes into a socket in one write. It only affects how fast a
 * pipeline fills. */
#define TUTTI_SIM_SLICE_BYTES 65536.0

/* A flow moves the bytes of a message, or is a message's overhead on cores, or the work of a step.
 */
enum tutti_sim_flow_kind { TUTTI_SIM_FLOW_MESSAGE, TUTTI_SIM_FLOW_OVERHEAD, TUTTI_SIM_FLOW_WORK };

/* A list of ids that grows. */
struct tutti_sim_list {
    uint32_t *at;
    uint32_t count, capacity;
};

/* A queue of steps, linked by next_waiting. Both ends are TUTTI_SIM_NONE if the queue is empty. */
struct tutti_sim_queue {
    uint32_t head, tail;
};

/* The core of a rank, and the steps that wait for their turn on it. */
struct tutti_sim_core {
    struct tutti_sim_queue queue;
    bool is_busy;
};

struct tutti_sim_play {
    struct tutti_sim_score score;
    struct tutti_machine machine; /* with the rates for a call of this footprint */
    struct tutti_sim_network network;
    struct tutti_sim_events events;
    struct tutti_sim_flows flows;
    struct tutti_sim_route route; /* scratch: the route of the message or work being started */
    double now_s;
    struct tutti_sim_cause cause; /* cause of the events being handled */
    struct tutti_sim_list done;   /* steps whose consequences have not been handled yet */
    /* Messages that became ready at this time, each by its (first) sending step. */
    struct tutti_sim_list ready;
    struct tutti_sim_list sent;   /* messages that left their ports at this time */
    struct tutti_sim_list awake;  /* ranks whose core may have work */
    struct tutti_sim_core *cores; /* per rank */
    /* The signals of a rank are numbered 1, 2, ... in the order in which it gives them. The plain
     * arrays are for ranks of the same cell. The `_afar` ones are for ranks of other cells, if
     * these see signals later. */
    uint16_t *given, *given_afar;       /* per rank: number of its signals that are seen */
    uint32_t *ngiven, *ngiven_afar;     /* [1 + ncells][nnumbers]: number of ranks whose signal with
                                           this number is seen; of all ranks, then of each cell */
    uint32_t nnumbers;                  /* one more than the largest number of a signal */
    struct tutti_sim_queue *waiting;    /* per rank: the steps that wait for signals of this rank */
    struct tutti_sim_queue waiting_all; /* the steps that wait for signals of all ranks */
    uint32_t nleft;                     /* steps that are not complete */
    uint64_t nmessages;                 /* messages that have begun */
    double bytes;                       /* bytes that these messages and one-sided steps move */
};

/* Appends an id. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_list_add(struct tutti_sim_list *list, uint32_t id);

/* play.c. The caller releases *play with tutti_sim_play_fini. `gathers`: join messages into
 * gathered writes (gather.c). The errors are those of tutti_simulate. */
int tutti_sim_play_init(struct tutti_sim_play *play, const struct tutti_sim_source *source,
                        const struct tutti_machine *machine, bool gathers);
/* Runs until no events are left. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_play(struct tutti_sim_play *play);
/* Checks that all steps are complete. TUTTI_ERR_ARGUMENT: some steps wait forever. */
int tutti_sim_play_check(const struct tutti_sim_play *play);
void tutti_sim_play_fini(struct tutti_sim_play *play);

/* Records that one of the two halves of a step, or all of a local step, is over. */
int tutti_sim_half_done(struct tutti_sim_play *play, uint32_t step);

/* play_messages.c. Records that a precondition of a message is met: that its lane, a sender or a
 * receiver is ready. After the last precondition the message is ready. */
int tutti_sim_message_satisfy(struct tutti_sim_play *play, uint32_t message);
/* Handle an event of a message, the mark (`is_over` is false) or the end of its flow, and the end
 * of its overhead's flow. */
int tutti_sim_message_event(struct tutti_sim_play *play, enum tutti_sim_event_kind kind,
                            uint32_t message);
int tutti_sim_message_flowed(struct tutti_sim_play *play, uint32_t message, bool is_over);
int tutti_sim_overhead_flowed(struct tutti_sim_play *play, uint32_t message);
/* Records that the step which sends this message has received all of its input. */
int tutti_sim_message_complete_input(struct tutti_sim_play *play, uint32_t message);
/* Gives free ports to waiting messages. */
int tutti_sim_dispatch(struct tutti_sim_play *play);

/* play_work.c: local and one-sided steps, and the arithmetic of receiving steps. These functions
 * record that a local step may run, that the first slice of a step's input has arrived, and that
 * all of its input has arrived. The last two handle a step's event and the end of its work. */
int tutti_sim_local_ready(struct tutti_sim_play *play, uint32_t step);
int tutti_sim_head_arrived(struct tutti_sim_play *play, uint32_t step);
int tutti_sim_all_arrived(struct tutti_sim_play *play, uint32_t step);
int tutti_sim_work_event(struct tutti_sim_play *play, enum tutti_sim_event_kind kind,
                         uint32_t step);
int tutti_sim_work_flowed(struct tutti_sim_play *play, uint32_t step);
/* Lets idle cores take up waiting work. */
int tutti_sim_run_idle_cores(struct tutti_sim_play *play);

/* Returns the size of the first slice of a message or step of `bytes` bytes. */
static inline double tutti_sim_head_bytes(double bytes)
{
    return bytes < TUTTI_SIM_SLICE_BYTES ? bytes : TUTTI_SIM_SLICE_BYTES;
}

/* True if the step receives a message and sends one. */
static inline bool tutti_sim_is_fused(const struct tutti_sim_step *step)
{
    return step->in != TUTTI_SIM_NONE && step->out != TUTTI_SIM_NONE;
}

/* True if the message consists of several joined ones. */
static inline bool tutti_sim_is_gathered(const struct tutti_sim_message *message)
{
    return message->last_sender != message->sender;
}

/* Schedules an event `after_s` from now. */
static inline int tutti_sim_add_event(struct tutti_sim_play *play, double after_s,
                                      enum tutti_sim_event_kind kind, uint32_t id)
{
    return tutti_sim_events_add(&play->events, play->now_s + after_s, kind, id, 0);
}

#endif
