/* SPDX-License-Identifier: Apache-2.0
 * Builds the score from the schedules of all ranks. A hash table finds the lane of a (sender,
 * receiver, channel). The i-th send of a lane and its i-th receive are the same message. The side
 * that is loaded first creates the message, and the other side claims it. */
#include "simulator/score.h"

#include "base/array.h"
#include "base/result.h"
#include "schedule/access.h"
#include "schedule/bind.h"
#include "simulator/symmetry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum side { SENDING, RECEIVING, SIDES };

struct lane {
    uint64_t key;                /* 0: a free entry of the table */
    uint32_t last;               /* the last message of the lane */
    uint32_t unclaimed[SIDES];   /* the first message whose step on this side is not loaded yet,
                                    or TUTTI_SIM_NONE */
};

struct lanes {
    struct lane *table;
    uint32_t size, used; /* number of entries, a power of two; number of entries in use */
};

/* Returns the entry of a key, or a free entry if the key is not in the table. */
static struct lane *find_lane(struct lanes *lanes, uint64_t key)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / the golden ratio */
    uint32_t mask = lanes->size - 1, at = (uint32_t)((key * golden) >> 32) & mask;

    while (lanes->table[at].key != 0 && lanes->table[at].key != key)
        at = (at + 1) & mask;
    return &lanes->table[at];
}

static int lanes_grow(struct lanes *lanes)
{
    struct lanes grown = {.size = lanes->size ? 2 * lanes->size : 1024, .used = lanes->used};

    grown.table = calloc(grown.size, sizeof(*grown.table));
    if (grown.table == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u lanes of a simulation", grown.used);
    for (uint32_t i = 0; i < lanes->size; i++)
        if (lanes->table[i].key != 0)
            *find_lane(&grown, lanes->table[i].key) = lanes->table[i];
    free(lanes->table);
    *lanes = grown;
    return TUTTI_OK;
}

/* Returns a number that identifies a lane and is not 0. A rank has at most 28 bits. */
static uint64_t lane_key(uint32_t from, uint32_t to, uint8_t channel)
{
    return ((uint64_t)from << 36 | (uint64_t)to << 8 | channel) + 1;
}

/* Returns the receiving rank of a lane. */
static uint32_t receiver_of(uint64_t key)
{
    return (uint32_t)((key - 1) >> 8) & ((1u << 28) - 1);
}

/* Returns the next message of the lane for this side. Creates the message if the other side has not
 * done so. */
static int claim(struct tutti_sim_score *score, struct lanes *lanes, uint64_t key, enum side side,
                 uint32_t *ret_message)
{
    struct lane *lane;
    uint32_t id;

    if (2 * lanes->used >= lanes->size)
        TUTTI_TRY(lanes_grow(lanes));
    lane = find_lane(lanes, key);
    if (lane->key == 0) {
        *lane = (struct lane){key, TUTTI_SIM_NONE, {TUTTI_SIM_NONE, TUTTI_SIM_NONE}};
        lanes->used++;
    }
    id = lane->unclaimed[side];
    if (id != TUTTI_SIM_NONE) {
        lane->unclaimed[side] = score->messages[id].next;
        *ret_message = id;
        return TUTTI_OK;
    }
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(score->messages, score->nmessages, score->message_capacity, "messages"));
    id = score->nmessages++;
    score->messages[id] = (struct tutti_sim_message){.sender = TUTTI_SIM_NONE,
                                                     .receiver = TUTTI_SIM_NONE,
                                                     .next = TUTTI_SIM_NONE,
                                                     .out = TUTTI_SIM_NONE,
                                                     .in = TUTTI_SIM_NONE,
                                                     .unmet = 2,
                                                     .begin_s = -1};
    score->messages[id].to = receiver_of(key);
    score->messages[id].lane = id;
    if (lane->last != TUTTI_SIM_NONE) {
        score->messages[lane->last].next = id;
        score->messages[id].lane = score->messages[lane->last].lane;
        score->messages[id].unmet++;
    }
    lane->last = id;
    if (lane->unclaimed[SIDES - 1 - side] == TUTTI_SIM_NONE)
        lane->unclaimed[SIDES - 1 - side] = id;
    *ret_message = id;
    return TUTTI_OK;
}

/* Returns the key of the lane by which a rank receives. In a play by symmetry the sender may not be
 * played. Then the lane is that of its representative, and the receiver is shifted like it. */
static uint64_t key_of_receive(const struct tutti_sim_score *score, uint32_t from, uint32_t to,
                               uint8_t channel)
{
    uint32_t played = tutti_sim_played_rank(score->period, from);

    return lane_key(played, (to + score->nranks - (from - played)) % score->nranks, channel);
}

/* Finds the messages that a two-sided step receives and sends. */
static int load_messages(struct tutti_sim_score *score, struct lanes *lanes,
                         const struct tutti_step *step, uint32_t rank, uint32_t id)
{
    struct tutti_sim_step *own = &score->steps[id];

    if (tutti_access_receives(step)) {
        TUTTI_TRY(claim(score, lanes,
                        key_of_receive(score, (uint32_t)step->from, rank, step->channel),
                        RECEIVING, &own->in));
        score->messages[own->in].receiver = id;
        score->messages[own->in].channel = step->channel;
        own->halves++;
    }
    if (tutti_access_sends(step)) {
        TUTTI_TRY(claim(score, lanes, lane_key(rank, (uint32_t)step->to, step->channel),
                        SENDING, &own->out));
        score->messages[own->out].sender = id;
        score->messages[own->out].channel = step->channel;
        own->halves++;
    }
    return TUTTI_OK;
}

/* Returns the peer of a one-sided step. */
static int32_t peer_of(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_PUT || step->kind == TUTTI_STEP_GATHER_REDUCE ? step->to
                                                                                  : step->from;
}

static int load_step(struct tutti_sim_score *score, struct lanes *lanes,
                     const struct tutti_schedule *schedule, uint32_t at,
                     const struct tutti_sim_source *source)
{
    const struct tutti_step *step = &schedule->steps[at];
    const struct tutti_span *span = step->dst.buffer == TUTTI_BUF_NONE ? &step->src : &step->dst;
    uint32_t id = score->nsteps;

    TUTTI_TRY(TUTTI_ARRAY_ROOM(score->steps, score->nsteps, score->step_capacity, "steps"));
    score->nsteps++;
    score->steps[id] = (struct tutti_sim_step){
        .kind = step->kind,
        .signal = step->signal,
        .peer = peer_of(step),
        .rank = schedule->rank,
        .is_shared = step->src.buffer == TUTTI_BUF_WINDOW || step->dst.buffer == TUTTI_BUF_WINDOW,
        .copies = (step->dst.buffer != TUTTI_BUF_NONE) + (step->also.buffer != TUTTI_BUF_NONE),
        .in = TUTTI_SIM_NONE,
        .out = TUTTI_SIM_NONE,
        .next_in = TUTTI_SIM_NONE,
        .next_out = TUTTI_SIM_NONE,
        .first_chunk = span->first,
        .end_chunk = span->first + span->count,
        .among = score->namong + step->among_first,
        .among_count = step->among_count,
        .unmet = step->dep_count,
        .next_local = TUTTI_SIM_NONE,
        .next_waiting = TUTTI_SIM_NONE,
        .bytes = (double)tutti_bind_step_bytes(schedule, step, source->element_bytes,
                                               source->block_count),
    };
    score->has_one_sided = score->has_one_sided || tutti_step_is_one_sided(step);
    return load_messages(score, lanes, step, schedule->rank, id);
}

/* Inverts the dependencies of a schedule, so that each step lists the steps that wait for it. Also
 * chains the steps that are not two-sided, because a rank runs these in program order. */
static int load_order(struct tutti_sim_score *score, const struct tutti_schedule *schedule)
{
    uint32_t first = score->first[schedule->rank], last_local = TUTTI_SIM_NONE;
    struct tutti_sim_step *steps = score->steps + first;

    TUTTI_TRY(TUTTI_ARRAY_RESERVE(score->dependents, score->ndependents + schedule->ndeps,
                                  score->dependent_capacity, "dependents of steps"));
    for (uint32_t i = 0; i < schedule->ndeps; i++)
        steps[schedule->deps[i]].ndependents++;
    /* Reserve the range of each step, and count again while filling the ranges. */
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        steps[at].dependents = score->ndependents;
        score->ndependents += steps[at].ndependents;
        steps[at].ndependents = 0;
    }
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        for (uint32_t i = 0; i < step->dep_count; i++) {
            struct tutti_sim_step *on = &steps[schedule->deps[step->dep_first + i]];

            score->dependents[on->dependents + on->ndependents++] = first + at;
        }
        if (tutti_step_is_two_sided(step))
            continue;
        if (last_local != TUTTI_SIM_NONE) {
            steps[last_local].next_local = first + at;
            steps[at].unmet++;
        }
        last_local = at;
    }
    return TUTTI_OK;
}

static int load_schedule(struct tutti_sim_score *score, struct lanes *lanes,
                         const struct tutti_schedule *schedule,
                         const struct tutti_sim_source *source)
{
    for (uint32_t at = 0; at < schedule->nsteps; at++)
        TUTTI_TRY(load_step(score, lanes, schedule, at, source));
    TUTTI_TRY(TUTTI_ARRAY_RESERVE(score->among, score->namong + schedule->namong,
                                  score->among_capacity, "ranks of steps"));
    if (schedule->namong > 0)
        memcpy(score->among + score->namong, schedule->among,
               schedule->namong * sizeof(*score->among));
    score->namong += schedule->namong;
    return load_order(score, schedule);
}

/* Reports an error of a step, and returns TUTTI_ERR_ARGUMENT. */
static int refuse_step(const struct tutti_sim_score *score, uint32_t step, const char *what)
{
    uint32_t rank = score->steps[step].rank;

    return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %u, step %u (%s): %s", rank,
                      step - score->first[rank],
                      tutti_step_name((enum tutti_step_kind)score->steps[step].kind), what);
}

/* Checks that each message has a sending and a receiving step of equal size. */
static int match(struct tutti_sim_score *score)
{
    for (uint32_t id = 0; id < score->nmessages; id++) {
        struct tutti_sim_message *message = &score->messages[id];

        if (message->receiver == TUTTI_SIM_NONE)
            return refuse_step(score, message->sender, "no rank receives what it sends");
        if (message->sender == TUTTI_SIM_NONE)
            return refuse_step(score, message->receiver, "no rank sends what it receives");
        message->last_sender = message->sender;
        message->last_receiver = message->receiver;
        message->bytes = score->steps[message->sender].bytes;
        if (score->steps[message->receiver].bytes != message->bytes)
            return refuse_step(score, message->receiver, "it receives more or less than is sent");
    }
    return TUTTI_OK;
}

static int load_rank(struct tutti_sim_score *score, struct lanes *lanes,
                     const struct tutti_sim_source *source, uint32_t rank)
{
    const struct tutti_schedule *schedule;
    int rc;

    score->first[rank] = score->nsteps;
    TUTTI_TRY(source->schedule(source->context, rank, &schedule));
    if (schedule->rank != rank || schedule->nranks != source->nranks)
        rc = tutti_fail(TUTTI_ERR_ARGUMENT,
                        "the schedule for rank %u of %u is one of rank %u of %u", rank,
                        source->nranks, schedule->rank, schedule->nranks);
    else
        rc = load_schedule(score, lanes, schedule, source);
    score->footprint_bytes =
        source->footprint_bytes > 0
            ? source->footprint_bytes
            : tutti_machine_footprint(schedule->collective, source->nranks,
                                      (double)source->block_count * (double)source->element_bytes);
    source->drop(source->context, schedule);
    return rc;
}

int tutti_sim_score_load(const struct tutti_sim_source *source, bool gathers,
                         struct tutti_sim_score *ret_score)
{
    struct tutti_sim_score score = {.nranks = source->nranks, .period = source->period};
    uint32_t nplayed = source->period > 0 ? source->period : source->nranks;
    struct lanes lanes = {.size = 0};
    int rc;

    score.first = calloc((size_t)source->nranks + 1, sizeof(*score.first));
    if (score.first == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to simulate %u ranks", source->nranks);
    for (uint32_t rank = 0; rank < nplayed; rank++)
        TUTTI_TRY_OR(fail, rc, load_rank(&score, &lanes, source, rank));
    for (uint32_t rank = nplayed; rank <= source->nranks; rank++)
        score.first[rank] = score.nsteps;
    TUTTI_TRY_OR(fail, rc, match(&score));
    if (gathers)
        tutti_sim_score_gather(&score);
    free(lanes.table);
    *ret_score = score;
    return TUTTI_OK;

fail:
    free(lanes.table);
    tutti_sim_score_fini(&score);
    return rc;
}

void tutti_sim_score_fini(struct tutti_sim_score *score)
{
    free(score->first);
    free(score->steps);
    free(score->dependents);
    free(score->among);
    free(score->messages);
    *score = (struct tutti_sim_score){.nranks = 0};
}
