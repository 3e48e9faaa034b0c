/* SPDX-License-Identifier: Apache-2.0
 * Single edits of schedules, as a slip of the pen would make them. */
#include "schedule/mutate.h"

#include "base/result.h"
#include "schedule/access.h"
#include "schedule/derive.h"
#include "schedule/support.h"

#include <stdlib.h>
#include <string.h>

const char *mutation_name(enum mutation mutation)
{
    static const char *const names[MUTATION_COUNT] = {
        "wrong peer",     "wrong chunk",     "wrong buffer",       "lost step",
        "repeated step",  "swapped steps",   "lost dependency",    "wrong signal number",
        "reduce to copy",
    };

    return names[mutation];
}

static uint64_t draw(uint64_t *random, uint64_t count)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % count;
}

static bool edit_peer(struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    int32_t *peers[2], *peer, old;
    uint32_t npeers = 0;

    if (step->from >= 0)
        peers[npeers++] = &step->from;
    if (step->to >= 0)
        peers[npeers++] = &step->to;
    if (npeers == 0 || schedule->nranks < 3)
        return false;
    peer = peers[draw(random, npeers)];
    old = *peer;
    do {
        *peer = (int32_t)draw(random, schedule->nranks);
    } while (*peer == old || *peer == (int32_t)schedule->rank);
    return true;
}

/* Spans of the step that name memory, and whose memory it is. */
static uint32_t list_spans(const struct tutti_schedule *schedule, struct tutti_step *step,
                           struct tutti_span *spans[5], uint32_t owners[5])
{
    struct tutti_span *all[5] = {&step->src, &step->dst, &step->remote, &step->also,
                                 &step->remote_dst};
    uint32_t nspans = 0;

    for (uint32_t i = 0; i < 5; i++) {
        if (all[i]->buffer == TUTTI_BUF_NONE)
            continue;
        owners[nspans] = schedule->rank;
        if (i == 2 || i == 4)
            owners[nspans] = step->from >= 0 ? (uint32_t)step->from
                             : step->to >= 0 ? (uint32_t)step->to
                                             : schedule->rank;
        spans[nspans++] = all[i];
    }
    return nspans;
}

static bool edit_chunk(const struct tutti_schedule *const *schedules,
                       struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    struct tutti_span *spans[5];
    uint32_t owners[5], nspans = list_spans(schedule, step, spans, owners), which, chunks, old;

    if (nspans == 0)
        return false;
    which = (uint32_t)draw(random, nspans);
    chunks = tutti_buffer_chunks(schedules[owners[which]], owners[which],
                                 (enum tutti_buffer)spans[which]->buffer);
    if (chunks <= spans[which]->count)
        return false;
    old = spans[which]->first;
    do {
        spans[which]->first = (uint32_t)draw(random, chunks - spans[which]->count + 1);
    } while (spans[which]->first == old);
    return true;
}

static bool edit_buffer(const struct tutti_schedule *const *schedules,
                        struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    struct tutti_span *spans[5];
    uint32_t owners[5], nspans = list_spans(schedule, step, spans, owners), which, first;

    if (nspans == 0)
        return false;
    which = (uint32_t)draw(random, nspans);
    first = (uint32_t)draw(random, TUTTI_BUF_COUNT);
    for (uint32_t i = 0; i < TUTTI_BUF_COUNT; i++) {
        uint32_t buffer = (first + i) % TUTTI_BUF_COUNT;

        if (buffer == TUTTI_BUF_NONE || buffer == spans[which]->buffer ||
            tutti_buffer_chunks(schedules[owners[which]], owners[which],
                                (enum tutti_buffer)buffer) <
                spans[which]->first + spans[which]->count)
            continue;
        spans[which]->buffer = buffer;
        return true;
    }
    return false;
}

static bool edit_signal(struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    uint16_t old = step->signal;

    if (step->kind != TUTTI_STEP_WAIT)
        return false;
    do {
        step->signal = (uint16_t)(1 + draw(random, schedule->nsignals + 1u));
    } while (step->signal == old);
    return true;
}

static bool edit_kind(struct tutti_step *step)
{
    switch (step->kind) {
    case TUTTI_STEP_RECV_REDUCE:
        step->kind = TUTTI_STEP_RECV;
        return true;
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND:
        step->kind = TUTTI_STEP_RECV_COPY_SEND;
        return true;
    case TUTTI_STEP_REDUCE:
        step->kind = TUTTI_STEP_COPY;
        return true;
    default:
        return false;
    }
}

static bool lose_dependency(struct tutti_schedule *schedule, struct tutti_step *step,
                            uint64_t *random)
{
    uint32_t lost;

    if (step->dep_count == 0)
        return false;
    lost = step->dep_first + (uint32_t)draw(random, step->dep_count);
    schedule->deps[lost] = schedule->deps[step->dep_first + --step->dep_count];
    return true;
}

static bool edit_order(struct tutti_schedule *schedule, uint32_t at, enum mutation mutation)
{
    struct tutti_step *steps = schedule->steps, step = steps[at];
    size_t after = schedule->nsteps - at - 1;

    switch (mutation) {
    case MUTATE_LOSE_STEP:
        memmove(steps + at, steps + at + 1, after * sizeof(*steps));
        schedule->nsteps--;
        return true;
    case MUTATE_REPEAT_STEP:
        memmove(steps + at + 1, steps + at, (after + 1) * sizeof(*steps));
        schedule->nsteps++;
        return true;
    default:
        if (after == 0)
            return false;
        steps[at] = steps[at + 1];
        steps[at + 1] = step;
        return true;
    }
}

static bool edit(const struct tutti_schedule *const *schedules, struct tutti_schedule *schedule,
                 uint32_t at, enum mutation mutation, uint64_t *random)
{
    struct tutti_step *step = &schedule->steps[at];

    switch (mutation) {
    case MUTATE_PEER:
        return edit_peer(schedule, step, random);
    case MUTATE_CHUNK:
        return edit_chunk(schedules, schedule, step, random);
    case MUTATE_BUFFER:
        return edit_buffer(schedules, schedule, step, random);
    case MUTATE_LOSE_DEPENDENCY:
        return lose_dependency(schedule, step, random);
    case MUTATE_SIGNAL_NUMBER:
        return edit_signal(schedule, step, random);
    case MUTATE_REDUCE_TO_COPY:
        return edit_kind(step);
    default:
        return edit_order(schedule, at, mutation);
    }
}

/* A wrong peer may have less memory than the right one. */
static bool is_in_range(const struct tutti_schedule *const *schedules,
                        const struct tutti_schedule *schedule)
{
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
        uint32_t naccesses = tutti_step_accesses(&schedule->steps[at], accesses);

        for (uint32_t a = 0; a < naccesses; a++)
            for (uint32_t rank = 0; rank < schedule->nranks; rank++) {
                bool is_own = rank == schedule->rank;
                bool is_owner = accesses[a].rank == TUTTI_ALL_RANKS ? !is_own
                                : accesses[a].rank >= 0 ? (uint32_t)accesses[a].rank == rank
                                                        : is_own;

                if (is_owner && accesses[a].span.first + accesses[a].span.count >
                                    tutti_buffer_chunks(schedules[rank], rank,
                                                        (enum tutti_buffer)accesses[a].span.buffer))
                    return false;
            }
    }
    return true;
}

struct tutti_schedule *mutate(const struct tutti_schedule *const *schedules, uint32_t nranks,
                              enum mutation mutation, uint64_t seed, uint32_t *ret_rank,
                              uint32_t *ret_step)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + (uint64_t)mutation * 977 + nranks;

    for (int attempt = 0; attempt < 40; attempt++) {
        uint32_t rank = (uint32_t)draw(&random, nranks), at;
        struct tutti_schedule *mutant;

        if (schedules[rank]->nsteps == 0)
            continue;
        at = (uint32_t)draw(&random, schedules[rank]->nsteps);
        mutant = schedule_clone(schedules[rank]);
        if (edit(schedules, mutant, at, mutation, &random) && is_in_range(schedules, mutant) &&
            (mutation == MUTATE_LOSE_DEPENDENCY || tutti_schedule_derive(mutant) == TUTTI_OK)) {
            *ret_rank = rank;
            *ret_step = at;
            return mutant;
        }
        tutti_schedule_destroy(mutant);
    }
    return NULL;
}
