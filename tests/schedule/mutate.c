/* SPDX-License-Identifier: Apache-2.0
 * Makes single edits of schedules, as a typing error would. */
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
        "wrong peer",    "wrong channel",   "wrong kind",       "wrong chunk",
        "other chunks",  "wrong count",     "wrong buffer",     "split step",
        "lost step",     "repeated step",   "swapped steps",    "lost dependency",
        "other dependency", "wrong signal number",
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

/* All spans move by the same number of chunks. */
static bool edit_all_chunks(struct tutti_schedule *schedule, struct tutti_step *step,
                            uint64_t *random)
{
    struct tutti_span *spans[5];
    uint32_t owners[5], nspans = list_spans(schedule, step, spans, owners);
    uint32_t by = 1 + (uint32_t)draw(random, 3);
    bool is_back = draw(random, 2) == 0;

    for (uint32_t i = 0; i < nspans; i++)
        if (is_back && spans[i]->first < by)
            return false;
    for (uint32_t i = 0; i < nspans; i++)
        spans[i]->first = is_back ? spans[i]->first - by : spans[i]->first + by;
    return nspans > 0;
}

static bool edit_count(struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    struct tutti_span *spans[5];
    uint32_t owners[5], nspans = list_spans(schedule, step, spans, owners);
    bool is_less = draw(random, 2) == 0;

    for (uint32_t i = 0; i < nspans; i++) {
        if (is_less && spans[i]->count == 1)
            return false;
        spans[i]->count = is_less ? spans[i]->count - 1 : spans[i]->count + 1;
    }
    return nspans > 0;
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

static bool edit_channel(struct tutti_schedule *schedule, struct tutti_step *step, uint64_t *random)
{
    uint8_t old = step->channel;

    if (!tutti_step_is_two_sided(step))
        return false;
    do {
        step->channel = (uint8_t)draw(random, schedule->nchannels + 1u);
    } while (step->channel == old);
    return true;
}

/* To one that has the same peers; spans that it lacks lie where the other one is. */
static bool edit_kind(struct tutti_step *step, uint64_t *random)
{
    switch (step->kind) {
    case TUTTI_STEP_RECV:
        step->kind = TUTTI_STEP_RECV_REDUCE;
        step->src = step->dst;
        return true;
    case TUTTI_STEP_RECV_REDUCE:
        step->kind = TUTTI_STEP_RECV;
        return true;
    case TUTTI_STEP_RECV_COPY_SEND:
        step->kind = TUTTI_STEP_RECV_REDUCE_COPY_SEND;
        step->src = step->dst;
        return true;
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND:
        step->kind = draw(random, 2) == 0 ? TUTTI_STEP_RECV_COPY_SEND
                                          : TUTTI_STEP_RECV_REDUCE_SEND;
        if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
            step->dst = TUTTI_NO_SPAN;
        else
            step->src = TUTTI_NO_SPAN;
        return true;
    case TUTTI_STEP_RECV_REDUCE_SEND:
        step->kind = TUTTI_STEP_RECV_REDUCE_COPY_SEND;
        step->dst = step->src;
        return true;
    case TUTTI_STEP_COPY:
        step->kind = TUTTI_STEP_REDUCE;
        return true;
    case TUTTI_STEP_REDUCE:
    case TUTTI_STEP_GATHER_REDUCE:
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

static bool edit_dependency(struct tutti_schedule *schedule, struct tutti_step *step,
                            uint64_t *random)
{
    uint32_t at = (uint32_t)(step - schedule->steps), *dep, old;

    if (step->dep_count == 0 || at < 2)
        return false;
    dep = &schedule->deps[step->dep_first + draw(random, step->dep_count)];
    old = *dep;
    do {
        *dep = (uint32_t)draw(random, at);
    } while (*dep == old);
    return true;
}

/* The step, and behind it the rest of its chunks in another one. */
static bool split_step(struct tutti_schedule *schedule, uint32_t at, uint64_t *random)
{
    struct tutti_step *steps = schedule->steps;
    struct tutti_span *spans[5], *rests[5];
    uint32_t owners[5], nspans = list_spans(schedule, &steps[at], spans, owners), count;

    if (nspans == 0 || spans[0]->count < 2)
        return false;
    memmove(steps + at + 1, steps + at, (schedule->nsteps - at) * sizeof(*steps));
    schedule->nsteps++;
    list_spans(schedule, &steps[at + 1], rests, owners);
    count = 1 + (uint32_t)draw(random, spans[0]->count - 1);
    for (uint32_t i = 0; i < nspans; i++) {
        rests[i]->first += count;
        rests[i]->count -= count;
        spans[i]->count = count;
    }
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
    case MUTATE_CHANNEL:
        return edit_channel(schedule, step, random);
    case MUTATE_KIND:
        return edit_kind(step, random);
    case MUTATE_CHUNK:
        return edit_chunk(schedules, schedule, step, random);
    case MUTATE_ALL_CHUNKS:
        return edit_all_chunks(schedule, step, random);
    case MUTATE_COUNT:
        return edit_count(schedule, step, random);
    case MUTATE_BUFFER:
        return edit_buffer(schedules, schedule, step, random);
    case MUTATE_SPLIT_STEP:
        return split_step(schedule, at, random);
    case MUTATE_LOSE_DEPENDENCY:
        return lose_dependency(schedule, step, random);
    case MUTATE_OTHER_DEPENDENCY:
        return edit_dependency(schedule, step, random);
    case MUTATE_SIGNAL_NUMBER:
        return edit_signal(schedule, step, random);
    default:
        return edit_order(schedule, at, mutation);
    }
}

static bool is_among(const struct tutti_schedule *schedule, const struct tutti_step *step,
                     uint32_t rank)
{
    struct tutti_step_ranks among = tutti_step_ranks(schedule, step);

    for (uint32_t i = 0; i < among.count; i++)
        if (tutti_step_ranks_at(among, i) == rank)
            return true;
    return false;
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
                bool is_owner = accesses[a].rank == TUTTI_ALL_RANKS
                                    ? !is_own && is_among(schedule, &schedule->steps[at], rank)
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
    bool keeps_deps = mutation == MUTATE_LOSE_DEPENDENCY || mutation == MUTATE_OTHER_DEPENDENCY;
    uint64_t total = 0, first;

    for (uint32_t rank = 0; rank < nranks; rank++)
        total += schedules[rank]->nsteps;
    /* Multiples of the golden ratio, modulo 1, are spread evenly however many there are. */
    first = ((seed * 0x9e3779b97f4a7c15u >> 32) * total) >> 32;
    for (uint64_t attempt = 0; attempt < total; attempt++) {
        uint32_t at = (uint32_t)((first + attempt) % total), rank = 0;
        struct tutti_schedule *mutant;

        for (; at >= schedules[rank]->nsteps; rank++)
            at -= schedules[rank]->nsteps;
        mutant = schedule_clone(schedules[rank]);
        if (edit(schedules, mutant, at, mutation, &random) && is_in_range(schedules, mutant) &&
            (keeps_deps || tutti_schedule_derive(mutant) == TUTTI_OK)) {
            *ret_rank = rank;
            *ret_step = at;
            return mutant;
        }
        tutti_schedule_destroy(mutant);
    }
    return NULL;
}
