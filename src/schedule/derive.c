/* SPDX-License-Identifier: Apache-2.0
 * Derives dependencies from the history of each run of memory (chunk_history.h): which step wrote
 * it last, and which steps have read it since.
 *
 * A reader waits for the last writer. A writer waits for the readers since then; these have waited
 * for the last writer. If there are no such readers, the writer waits for the last writer itself.
 * Of the steps of one lane only the last is listed, because a lane completes in order. Fused steps
 * are in two lanes and complete out of order, so each is listed.
 *
 * Signals and waits order memory that this rank does not see: a SIGNAL waits for the two-sided
 * steps before it, and two-sided steps wait for the last WAIT.
 *
 * A step in a queue waits for the step before it in the queue that has the same direction.
 */
#include "schedule/derive.h"

#include "base/array.h"
#include "base/result.h"
#include "schedule/chunk_history.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_NO_STEP
#define LOCAL_LANE 0

struct derive {
    const struct tutti_schedule *schedule;
    struct tutti_chunk_history history;
    /* The steps that the current step has to wait for. */
    uint32_t *candidates, ncandidates;
    uint32_t *seen;      /* per step: the last step that it was a candidate of, or NONE */
    uint32_t *lane_last; /* per lane: its last candidate */
    uint32_t *lane_step; /* per lane: 1 + the step that has this candidate, or 0 */
    uint32_t *deps;      /* the result */
    uint32_t ndeps, deps_capacity;
    uint32_t last_wait, last_signal; /* steps, or NONE */
    uint32_t *queue_last; /* per queue and direction: its last step, or NONE; NULL: no queues */
};

/* The lane whose turn a step waits for before it starts; for a fused step, its receive lane. After
 * the local lane, each pair of channel and peer has two lanes: receives, then sends. */
static uint32_t lane_of(const struct derive *derive, const struct tutti_step *step)
{
    uint32_t nranks = derive->schedule->nranks;

    if (!tutti_step_is_two_sided(step))
        return LOCAL_LANE;
    if (tutti_access_receives(step))
        return 1 + (step->channel * nranks + (uint32_t)step->from) * 2;
    return 2 + (step->channel * nranks + (uint32_t)step->to) * 2;
}

/* Make step `on` a candidate: `step` has to wait for it. Not if both are in the same lane, which
 * already orders them. Of the candidates in one lane derive_step keeps the last. */
static void add_candidate(struct derive *derive, uint32_t step, uint32_t on)
{
    const struct tutti_step *steps = derive->schedule->steps;
    uint32_t lane;

    if (on == NONE || on == step || derive->seen[on] == step)
        return;
    tutti_assert(on < step && derive->ncandidates < derive->schedule->nsteps);
    derive->seen[on] = step;
    if (!tutti_step_is_fused(&steps[on])) {
        lane = lane_of(derive, &steps[on]);
        if (lane == lane_of(derive, &steps[step]))
            return;
        if (derive->lane_step[lane] != step + 1 || derive->lane_last[lane] < on)
            derive->lane_last[lane] = on;
        derive->lane_step[lane] = step + 1;
    }
    derive->candidates[derive->ncandidates++] = on;
}

/* The earlier steps that an access must wait for, as the head of this file says. */
static void find_in_memory(struct derive *derive, uint32_t step, const struct tutti_touch *access)
{
    const struct tutti_chunk_history *history = &derive->history;
    uint32_t end, at = tutti_chunk_history_split(&derive->history, access->span, &end);

    for (; at < end; at = tutti_chunk_history_next(history, at)) {
        const struct tutti_chunk_run *run = &history->runs[at];

        if (!access->is_write || run->readers == NONE)
            add_candidate(derive, step, run->writer);
        else
            for (uint32_t r = run->readers; r != NONE; r = history->readers[r].before)
                add_candidate(derive, step, history->readers[r].step);
    }
}

static int note_in_memory(struct derive *derive, uint32_t step, const struct tutti_touch *access)
{
    if (!access->is_write)
        return tutti_chunk_history_read(&derive->history, step, access->span);
    tutti_chunk_history_write(&derive->history, step, access->span);
    return TUTTI_OK;
}

static void find_in_signals(struct derive *derive, uint32_t at)
{
    const struct tutti_step *step = &derive->schedule->steps[at];

    if (tutti_step_is_two_sided(step))
        add_candidate(derive, at, derive->last_wait);
    if (step->kind == TUTTI_STEP_WAIT)
        derive->last_wait = at;
    /* Steps before the last SIGNAL need not be listed: that SIGNAL has waited for them, and it is
     * before this one in the local lane. */
    if (step->kind == TUTTI_STEP_SIGNAL) {
        for (uint32_t i = derive->last_signal == NONE ? 0 : derive->last_signal + 1; i < at; i++)
            add_candidate(derive, at, i);
        derive->last_signal = at;
    }
}

static void find_in_queue(struct derive *derive, uint32_t at)
{
    const struct tutti_step *step = &derive->schedule->steps[at];
    uint32_t *last;

    if (step->queue == 0)
        return;
    last = &derive->queue_last[2 * step->queue + tutti_access_sends(step)];
    add_candidate(derive, at, *last);
    *last = at;
}

static int derive_step(struct derive *derive, uint32_t at)
{
    struct tutti_step *step = &derive->schedule->steps[at];
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_step_accesses(step, accesses);

    derive->ncandidates = 0;
    for (uint32_t i = 0; i < naccesses; i++)
        if (accesses[i].rank == TUTTI_NO_RANK)
            find_in_memory(derive, at, &accesses[i]);
    find_in_signals(derive, at);
    find_in_queue(derive, at);
    for (uint32_t i = 0; i < naccesses; i++)
        if (accesses[i].rank == TUTTI_NO_RANK)
            TUTTI_TRY(note_in_memory(derive, at, &accesses[i]));

    TUTTI_TRY(TUTTI_ARRAY_RESERVE(derive->deps, derive->ndeps + derive->ncandidates,
                                  derive->deps_capacity, "dependencies of a schedule"));
    step->dep_first = derive->ndeps;
    for (uint32_t i = 0; i < derive->ncandidates; i++) {
        uint32_t on = derive->candidates[i];
        const struct tutti_step *other = &derive->schedule->steps[on];

        if (tutti_step_is_fused(other) || derive->lane_last[lane_of(derive, other)] == on)
            derive->deps[derive->ndeps++] = on;
    }
    step->dep_count = derive->ndeps - step->dep_first;
    return TUTTI_OK;
}

static void release(struct derive *derive)
{
    tutti_chunk_history_fini(&derive->history);
    free(derive->seen);
    free(derive->lane_step);
    free(derive->lane_last);
    free(derive->candidates);
    free(derive->deps);
    free(derive->queue_last);
}

/* Queues are numbered from 1, so the two items of queue 0 stay unused. */
static int prepare_queues(struct derive *derive)
{
    const struct tutti_schedule *schedule = derive->schedule;
    size_t nqueues = 0;

    for (uint32_t i = 0; i < schedule->nsteps; i++)
        if (schedule->steps[i].queue > nqueues)
            nqueues = schedule->steps[i].queue;
    if (nqueues == 0)
        return TUTTI_OK;
    derive->queue_last = malloc(2 * (nqueues + 1) * sizeof(uint32_t));
    if (derive->queue_last == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu queues of a schedule", nqueues);
    memset(derive->queue_last, 0xff, 2 * (nqueues + 1) * sizeof(uint32_t));
    return TUTTI_OK;
}

static int prepare(struct derive *derive, struct tutti_schedule *schedule)
{
    size_t nsteps = schedule->nsteps;
    size_t nlanes = 1 + 2 * (size_t)schedule->nranks * schedule->nchannels;

    *derive = (struct derive){.schedule = schedule, .last_wait = NONE, .last_signal = NONE};
    TUTTI_TRY(tutti_chunk_history_init(&derive->history, schedule));
    derive->seen = malloc((nsteps + 1) * sizeof(uint32_t));
    derive->candidates = malloc((nsteps + 1) * sizeof(uint32_t));
    derive->lane_step = calloc(nlanes, sizeof(uint32_t));
    derive->lane_last = malloc(nlanes * sizeof(uint32_t));
    if (derive->seen == NULL || derive->candidates == NULL || derive->lane_step == NULL ||
        derive->lane_last == NULL) {
        release(derive);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to derive the dependencies of %zu steps",
                          nsteps);
    }
    memset(derive->seen, 0xff, nsteps * sizeof(uint32_t));
    return TUTTI_OK;
}

void tutti_schedule_summarize(struct tutti_schedule *schedule)
{
    schedule->nchannels = 1;
    schedule->is_one_sided = true;
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        if (!tutti_step_is_two_sided(step))
            continue;
        schedule->is_one_sided = false;
        if (step->channel >= schedule->nchannels)
            schedule->nchannels = (uint16_t)(step->channel + 1);
    }
}

int tutti_schedule_derive(struct tutti_schedule *schedule)
{
    struct derive derive;
    int rc = TUTTI_OK;

    tutti_schedule_summarize(schedule);
    TUTTI_TRY(prepare(&derive, schedule));
    TUTTI_TRY_OR(release_all, rc, prepare_queues(&derive));
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        TUTTI_TRY_OR(release_all, rc, derive_step(&derive, i));

    /* Swap, so that release() frees the old dependencies. */
    uint32_t *old = schedule->deps;
    schedule->deps = derive.deps;
    schedule->ndeps = derive.ndeps;
    derive.deps = old;

release_all:
    release(&derive);
    return rc;
}
