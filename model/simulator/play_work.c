/* SPDX-License-Identifier: Apache-2.0
 * Plays the work of a rank's own core: local and one-sided steps, and the arithmetic of receiving
 * steps. A core works on one step at a time, in the order in which the steps become ready. Work
 * takes no time if the machine gives neither a rate for it nor a memory bandwidth. */
#include "simulator/play.h"

#include "base/result.h"

#include <string.h>

static struct tutti_sim_step *step_of(struct tutti_sim_play *play, uint32_t id)
{
    return &play->score.steps[id];
}

static void queue_add(struct tutti_sim_play *play, struct tutti_sim_queue *queue, uint32_t id)
{
    step_of(play, id)->next_waiting = TUTTI_SIM_NONE;
    *(queue->tail == TUTTI_SIM_NONE ? &queue->head : &step_of(play, queue->tail)->next_waiting) =
        id;
    queue->tail = id;
}

static uint32_t queue_take(struct tutti_sim_play *play, struct tutti_sim_queue *queue)
{
    uint32_t id = queue->head;

    if (id != TUTTI_SIM_NONE)
        queue->head = step_of(play, id)->next_waiting;
    if (queue->head == TUTTI_SIM_NONE)
        queue->tail = TUTTI_SIM_NONE;
    return id;
}

/* Makes a step wait for its turn on the core of its rank. */
static int queue_work(struct tutti_sim_play *play, uint32_t id)
{
    uint32_t rank = step_of(play, id)->rank;

    queue_add(play, &play->cores[rank].queue, id);
    return tutti_sim_list_add(&play->awake, rank);
}

/* ---- receiving -------------------------------------------------------------------- */

static bool has_arithmetic(const struct tutti_sim_play *play, const struct tutti_sim_step *step)
{
    const struct tutti_machine *machine = play->network.machine;

    return (step->kind == TUTTI_STEP_RECV_REDUCE || step->kind == TUTTI_STEP_RECV_REDUCE_SEND ||
            step->kind == TUTTI_STEP_RECV_REDUCE_COPY_SEND) &&
           (machine->reduce_bytes_per_s > 0 || machine->memory_bytes_per_s > 0);
}

/* Lets a fused step forward its first slice. */
static int pass_on(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_step *step = step_of(play, id);

    if (!tutti_sim_is_fused(step))
        return TUTTI_OK;
    play->cause = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_HEAD, step->in};
    return tutti_sim_message_satisfy(play, step->out);
}

/* Ends the receiving half of a step: all input has arrived, and all arithmetic is done. */
static int finish_input(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_step *step = step_of(play, id);

    step->is_received = true;
    step->received_s = play->now_s;
    if (tutti_sim_is_fused(step))
        TUTTI_TRY(tutti_sim_message_complete_input(play, step->out));
    return tutti_sim_half_done(play, id);
}

int tutti_sim_head_arrived(struct tutti_sim_play *play, uint32_t id)
{
    if (has_arithmetic(play, step_of(play, id)))
        return queue_work(play, id);
    step_of(play, id)->has_worked = true;
    return pass_on(play, id);
}

int tutti_sim_all_arrived(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_step *step = step_of(play, id);

    if (!step->has_worked)
        return TUTTI_OK;
    if (step->alone_s == 0)
        return finish_input(play, id);
    /* The arithmetic ran while the bytes arrived. Only the arithmetic of the last slice remains. */
    return tutti_sim_add_event(play,
                               step->alone_s * tutti_sim_head_bytes(step->bytes) / step->bytes,
                               TUTTI_SIM_EVENT_WORKED_TAIL, id);
}

/* ---- work -------------------------------------------------------------------------- */

/* Frees the core after a step's work. The step is complete if it receives nothing. */
static int finish_work(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_step *step = step_of(play, id);

    play->cores[step->rank].is_busy = false;
    TUTTI_TRY(tutti_sim_list_add(&play->awake, step->rank));
    if (step->in == TUTTI_SIM_NONE)
        return tutti_sim_half_done(play, id);
    step->has_worked = true;
    return play->score.messages[step->in].has_arrived ? finish_input(play, id) : TUTTI_OK;
}

/* Returns the number of other ranks into which a PUT stores, or from which a GET loads. A step that
 * addresses several ranks also lists its own. */
static uint32_t count_others(const struct tutti_sim_play *play, const struct tutti_sim_step *step)
{
    if (step->peer != TUTTI_ALL_RANKS)
        return 1;
    return (step->among_count > 0 ? step->among_count : play->score.nranks) - 1;
}

static int begin_work(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_step *step = step_of(play, id);

    play->cores[step->rank].is_busy = true;
    step->begin_s = play->now_s;
    TUTTI_TRY(tutti_sim_route_work(&play->network, step, &play->route));
    if (step->bytes == 0 || play->route.bytes_per_s == 0) {
        if (step->in != TUTTI_SIM_NONE)
            TUTTI_TRY(pass_on(play, id));
        return finish_work(play, id);
    }
    step->alone_s = step->bytes / play->route.bytes_per_s;
    if (tutti_sim_is_fused(step))
        TUTTI_TRY(tutti_sim_add_event(play,
                                      tutti_sim_head_bytes(step->bytes) / play->route.bytes_per_s,
                                      TUTTI_SIM_EVENT_WORKED_HEAD, id));
    if (step->kind == TUTTI_STEP_PUT || step->kind == TUTTI_STEP_GET)
        play->bytes += step->bytes * count_others(play, step);
    return tutti_sim_flow_start(&play->flows, &play->route, step->bytes, TUTTI_SIM_NO_MARK,
                                TUTTI_SIM_FLOW_WORK, id, play->now_s);
}

int tutti_sim_run_idle_cores(struct tutti_sim_play *play)
{
    for (uint32_t i = 0; i < play->awake.count; i++) {
        struct tutti_sim_core *core = &play->cores[play->awake.at[i]];

        while (!core->is_busy && core->queue.head != TUTTI_SIM_NONE)
            TUTTI_TRY(begin_work(play, queue_take(play, &core->queue)));
    }
    play->awake.count = 0;
    return TUTTI_OK;
}

int tutti_sim_work_flowed(struct tutti_sim_play *play, uint32_t id)
{
    return finish_work(play, id);
}

/* ---- signals -------------------------------------------------------------------------- */

/* Returns true if ranks see the signals of other cells later than those of their own cell. */
static bool has_slow_signals(const struct tutti_sim_play *play)
{
    return play->machine.places.cell != NULL && play->machine.bridge_latency_s > 0;
}

/* Returns the number of ranks whose signal number `signal` this rank can see. */
static uint32_t count_seen(const struct tutti_sim_play *play, uint32_t rank, uint16_t signal)
{
    uint32_t own;

    if (!has_slow_signals(play))
        return play->ngiven[signal];
    own = (1 + play->machine.places.cell[rank]) * play->nnumbers + signal;
    return play->ngiven[own] + play->ngiven_afar[signal] - play->ngiven_afar[own];
}

/* Returns true if this step sees the signal of every rank that it waits for. A step that waits for
 * all ranks does not wait for its own rank. */
static bool sees_signals(const struct tutti_sim_play *play, const struct tutti_sim_step *step)
{
    uint32_t missing;

    if (step->peer != TUTTI_ALL_RANKS) {
        bool is_afar = has_slow_signals(play) &&
                       tutti_machine_is_bridged(&play->machine, step->rank, (uint32_t)step->peer);

        return (is_afar ? play->given_afar : play->given)[step->peer] >= step->signal;
    }
    missing = play->score.nranks - count_seen(play, step->rank, step->signal);
    return missing == 0 || (missing == 1 && play->given[step->rank] < step->signal);
}

int tutti_sim_local_ready(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_step *step = step_of(play, id);

    switch (step->kind) {
    case TUTTI_STEP_SIGNAL: /* A signal is a store, so the rank that gives it continues at once. */
        TUTTI_TRY(tutti_sim_add_event(play, tutti_machine_signal_s(&play->machine),
                                      TUTTI_SIM_EVENT_SEEN, id));
        if (has_slow_signals(play))
            TUTTI_TRY(tutti_sim_add_event(
                play, tutti_machine_signal_s(&play->machine) + play->machine.bridge_latency_s,
                TUTTI_SIM_EVENT_SEEN_AFAR, id));
        return tutti_sim_half_done(play, id);
    case TUTTI_STEP_WAIT:
        if (sees_signals(play, step))
            return tutti_sim_half_done(play, id);
        queue_add(play, step->peer == TUTTI_ALL_RANKS ? &play->waiting_all
                                                      : &play->waiting[step->peer], id);
        return TUTTI_OK;
    default: return queue_work(play, id);
    }
}

/* Completes the steps of a queue that see all signals that they wait for. The other steps stay in
 * the queue. */
static int wake(struct tutti_sim_play *play, struct tutti_sim_queue *queue,
                struct tutti_sim_cause cause)
{
    struct tutti_sim_queue waiting = *queue;
    uint32_t id;

    *queue = (struct tutti_sim_queue){TUTTI_SIM_NONE, TUTTI_SIM_NONE};
    while ((id = queue_take(play, &waiting)) != TUTTI_SIM_NONE) {
        if (!sees_signals(play, step_of(play, id))) {
            queue_add(play, queue, id);
            continue;
        }
        step_of(play, id)->cause = cause;
        TUTTI_TRY(tutti_sim_half_done(play, id));
    }
    return TUTTI_OK;
}

/* Makes a signal of a step visible to ranks of the same cell, or (is_afar) of other cells. */
static int show_signal(struct tutti_sim_play *play, uint32_t id, bool is_afar)
{
    uint32_t rank = step_of(play, id)->rank;
    struct tutti_sim_cause cause = {TUTTI_SIM_CAUSE_SIGNAL, id};
    uint16_t number = ++(is_afar ? play->given_afar : play->given)[rank];
    uint32_t *ngiven = is_afar ? play->ngiven_afar : play->ngiven;

    ngiven[number]++;
    if (play->machine.places.cell != NULL)
        ngiven[(1 + play->machine.places.cell[rank]) * play->nnumbers + number]++;
    TUTTI_TRY(wake(play, &play->waiting[rank], cause));
    if (play->ngiven[number] + 1 < play->score.nranks)
        return TUTTI_OK; /* At least two ranks have not given it, so no wait for all ranks ends. */
    return wake(play, &play->waiting_all, cause);
}

int tutti_sim_work_event(struct tutti_sim_play *play, enum tutti_sim_event_kind kind, uint32_t id)
{
    switch (kind) {
    case TUTTI_SIM_EVENT_WORKED_HEAD: return pass_on(play, id);
    case TUTTI_SIM_EVENT_WORKED_TAIL: return finish_input(play, id);
    default: return show_signal(play, id, kind == TUTTI_SIM_EVENT_SEEN_AFAR);
    }
}
