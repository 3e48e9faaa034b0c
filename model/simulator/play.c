/* SPDX-License-Identifier: Apache-2.0
 * Runs the event loop, and starts the steps that can run when other steps complete. */
#include "simulator/play.h"

#include "base/array.h"
#include "base/result.h"
#include "simulator/symmetry.h"

#include <stdlib.h>

/* Times that differ by at most this count as equal. They may be sums of the same terms in different
 * orders, which are rounded differently. */
static const double instant_s = 1e-13;

int tutti_sim_list_add(struct tutti_sim_list *list, uint32_t id)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(list->at, list->count, list->capacity, "entries of a list"));
    list->at[list->count++] = id;
    return TUTTI_OK;
}

/* ---- steps ------------------------------------------------------------------- */

static int step_ready(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_step *step = &play->score.steps[id];

    step->ready_s = play->now_s;
    step->begin_s = play->now_s;
    step->cause = play->cause;
    if (step->in != TUTTI_SIM_NONE)
        return tutti_sim_message_satisfy(play,
                                         step->in); /* a fused step sends once a slice is in */
    if (step->out != TUTTI_SIM_NONE)
        return tutti_sim_message_satisfy(play, step->out);
    return tutti_sim_local_ready(play, id);
}

static int satisfy(struct tutti_sim_play *play, uint32_t id)
{
    return --play->score.steps[id].unmet == 0 ? step_ready(play, id) : TUTTI_OK;
}

int tutti_sim_half_done(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_step *step = &play->score.steps[id];

    if (step->halves > 1) {
        step->halves--;
        return TUTTI_OK;
    }
    step->halves = 0;
    step->done_s = play->now_s;
    play->nleft--;
    return tutti_sim_list_add(&play->done, id);
}

static int satisfy_dependents(struct tutti_sim_play *play)
{
    for (uint32_t i = 0; i < play->done.count; i++) {
        uint32_t id = play->done.at[i];
        const struct tutti_sim_step *step = &play->score.steps[id];

        play->cause = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_STEP, id};
        for (uint32_t d = 0; d < step->ndependents; d++)
            TUTTI_TRY(satisfy(play, play->score.dependents[step->dependents + d]));
        if (step->next_local != TUTTI_SIM_NONE)
            TUTTI_TRY(satisfy(play, step->next_local));
    }
    play->done.count = 0;
    return TUTTI_OK;
}

/* ---- the loop -------------------------------------------------------------------- */

static int handle_flow(struct tutti_sim_play *play, const struct tutti_sim_event *event)
{
    const struct tutti_sim_flow *flow = &play->flows.flows[event->id];
    uint32_t kind = flow->kind, owner = flow->owner;
    bool is_over;

    if (event->version != flow->version)
        return TUTTI_OK;
    TUTTI_TRY(tutti_sim_flow_reach(&play->flows, event->id, play->now_s, &is_over));
    switch (kind) {
    case TUTTI_SIM_FLOW_MESSAGE: return tutti_sim_message_flowed(play, owner, is_over);
    case TUTTI_SIM_FLOW_OVERHEAD: return tutti_sim_overhead_flowed(play, owner);
    default: return tutti_sim_work_flowed(play, owner);
    }
}

static int handle(struct tutti_sim_play *play, const struct tutti_sim_event *event)
{
    switch ((enum tutti_sim_event_kind)event->kind) {
    case TUTTI_SIM_EVENT_FLOW: return handle_flow(play, event);
    case TUTTI_SIM_EVENT_OVERHEAD:
    case TUTTI_SIM_EVENT_HEAD:
    case TUTTI_SIM_EVENT_ARRIVAL:
    case TUTTI_SIM_EVENT_TAIL: return tutti_sim_message_event(play, event->kind, event->id);
    default: return tutti_sim_work_event(play, event->kind, event->id);
    }
}

/* Handles all consequences of the events at the current time, until nothing more follows. */
static int settle(struct tutti_sim_play *play)
{
    do {
        TUTTI_TRY(satisfy_dependents(play));
        TUTTI_TRY(tutti_sim_run_idle_cores(play));
        if (play->done.count > 0)
            continue;
        TUTTI_TRY(tutti_sim_dispatch(play));
    } while (play->done.count > 0 || play->awake.count > 0 || play->ready.count > 0 ||
             play->sent.count > 0);
    return tutti_sim_flows_share(&play->flows, play->now_s);
}

static int begin(struct tutti_sim_play *play)
{
    play->cause = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_START, 0};
    for (uint32_t id = 0; id < play->score.nsteps; id++)
        if (play->score.steps[id].unmet == 0)
            play->score.steps[id].ready_s = -1;
    /* Steps are marked above before any of them starts. A step that starts may make others ready at
     * once, and these must not be started a second time. */
    for (uint32_t id = 0; id < play->score.nsteps; id++)
        if (play->score.steps[id].ready_s < 0)
            TUTTI_TRY(step_ready(play, id));
    return settle(play);
}

int tutti_sim_play(struct tutti_sim_play *play)
{
    TUTTI_TRY(begin(play));
    while (play->events.count > 0) {
        play->now_s = play->events.heap[0].at_s;
        while (play->events.count > 0 && play->events.heap[0].at_s <= play->now_s + instant_s) {
            struct tutti_sim_event event = tutti_sim_events_take(&play->events);

            TUTTI_TRY(handle(play, &event));
        }
        TUTTI_TRY(settle(play));
    }
    return TUTTI_OK;
}

int tutti_sim_play_check(const struct tutti_sim_play *play)
{
    const struct tutti_sim_score *score = &play->score;

    if (play->nleft == 0)
        return TUTTI_OK;
    for (uint32_t id = 0; id < score->nsteps; id++) {
        const struct tutti_sim_step *step = &score->steps[id];

        if (step->unmet == 0 && step->done_s < 0)
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "%u steps wait forever, the first is step %u (%s) of rank %u; "
                              "tutti-sched check tells why",
                              play->nleft, id - score->first[step->rank],
                              tutti_step_name((enum tutti_step_kind)step->kind), step->rank);
    }
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%u steps wait for each other; tutti-sched check tells why", play->nleft);
}

/* ---- init and fini ------------------------------------------------------------------ */

static int check_sharing(const struct tutti_sim_play *play)
{
    const struct tutti_placement *places = &play->network.machine->places;

    if (play->score.has_one_sided && play->score.period > 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the schedule is one-sided, and such schedules are "
                          "not played by symmetry; play all ranks");
    if (!play->score.has_one_sided || play->score.nranks == 1 ||
        (places->node != NULL && places->nnodes == 1))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "the schedule is one-sided, and the machine has several nodes; "
                      "one-sided schedules need all ranks on one node");
}

/* Returns one more than the largest signal number. That is the largest number of signals that a
 * rank gives, or the largest number that a step waits for. */
static uint32_t count_numbers(const struct tutti_sim_score *score)
{
    uint32_t most = 0;

    for (uint32_t rank = 0; rank < score->nranks; rank++) {
        uint32_t ngiven = 0;

        for (uint32_t id = score->first[rank]; id < score->first[rank + 1]; id++) {
            const struct tutti_sim_step *step = &score->steps[id];

            ngiven += step->kind == TUTTI_STEP_SIGNAL;
            if (step->kind == TUTTI_STEP_WAIT && step->signal > most)
                most = step->signal;
        }
        most = ngiven > most ? ngiven : most;
    }
    return most + 1;
}

static int prepare(struct tutti_sim_play *play)
{
    uint32_t nranks = play->score.nranks;
    size_t nseen;
    const struct tutti_sim_queue empty = {TUTTI_SIM_NONE, TUTTI_SIM_NONE};

    play->cores = calloc(nranks, sizeof(*play->cores));
    play->given = calloc(nranks, sizeof(*play->given));
    play->given_afar = calloc(nranks, sizeof(*play->given_afar));
    play->nnumbers = count_numbers(&play->score);
    nseen = (size_t)play->nnumbers * (1 + play->machine.places.ncells);
    play->ngiven = calloc(nseen, sizeof(*play->ngiven));
    play->ngiven_afar = calloc(nseen, sizeof(*play->ngiven_afar));
    play->waiting = calloc(nranks, sizeof(*play->waiting));
    if (play->cores == NULL || play->given == NULL || play->given_afar == NULL ||
        play->ngiven == NULL || play->ngiven_afar == NULL || play->waiting == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to simulate %u ranks", nranks);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        play->cores[rank].queue = empty;
        play->waiting[rank] = empty;
    }
    play->waiting_all = empty;
    play->network.among = play->score.among;
    play->flows.network = &play->network;
    play->flows.events = &play->events;
    play->flows.first_free = TUTTI_SIM_NONE;
    play->nleft = play->score.nsteps;
    for (uint32_t id = 0; id < play->score.nsteps; id++)
        play->score.steps[id].done_s = -1;
    return check_sharing(play);
}

int tutti_sim_play_init(struct tutti_sim_play *play, const struct tutti_sim_source *source,
                        const struct tutti_machine *machine, bool gathers)
{
    int rc;

    *play = (struct tutti_sim_play){.now_s = 0};
    /* tutti_sim_network_init makes this check too. It is made here as well, because loading many
     * schedules for a wrong machine would waste time. */
    TUTTI_TRY(tutti_sim_network_check(machine, source->nranks));
    if (source->period > 0)
        TUTTI_TRY(tutti_sim_period_check(machine, source->nranks, source->period));
    TUTTI_TRY(tutti_sim_score_load(source, gathers, &play->score));
    tutti_machine_for_footprint(machine, play->score.footprint_bytes, &play->machine);
    TUTTI_TRY_OR(fail, rc, tutti_sim_network_init(&play->network, &play->machine, source->nranks));
    if (source->period > 0)
        TUTTI_TRY_OR(fail, rc, tutti_sim_network_fold(&play->network, source->period));
    TUTTI_TRY_OR(fail, rc, prepare(play));
    return TUTTI_OK;

fail:
    tutti_sim_play_fini(play);
    return rc;
}

void tutti_sim_play_fini(struct tutti_sim_play *play)
{
    tutti_sim_flows_fini(&play->flows);
    tutti_sim_events_fini(&play->events);
    tutti_sim_score_fini(&play->score);
    tutti_sim_network_fini(&play->network);
    free(play->route.crossings);
    free(play->done.at);
    free(play->ready.at);
    free(play->sent.at);
    free(play->awake.at);
    free(play->cores);
    free(play->given);
    free(play->given_afar);
    free(play->ngiven);
    free(play->ngiven_afar);
    free(play->waiting);
    *play = (struct tutti_sim_play){.now_s = 0};
}
