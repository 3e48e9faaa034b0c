/* SPDX-License-Identifier: Apache-2.0
 * Plays schedules in logical time, round by round. Each round first runs all local and one-sided
 * steps that can run. It then starts the messages whose ports are free. Messages that come earlier
 * in the schedules of their ranks start first. A rank has one port to send and one to receive. */
#include "sched/rounds.h"

#include "common/memory.h"
#include "schedule/access.h"

#include <stdlib.h>
#include <string.h>

#define NOT_YET UINT32_MAX /* a round that has not come, or a step that is not known */

/* One message. Its send half is a step of rank `from`, and its receive half is a step of rank
 * `to`. */
struct message {
    uint32_t from, to, channel;
    uint32_t from_step, to_step; /* the indices of these steps */
};

/* The messages from one rank to another on one channel, in order. */
struct lane {
    uint32_t first, count; /* range in player->messages */
    uint32_t next;         /* number of messages that have started */
    uint32_t free_at;      /* the first round in which the next message may start */
};

/* The state of all ranks while their schedules are played. */
struct player {
    const struct tutti_ensemble *team; /* the schedules */
    uint32_t n, nchannels; /* numbers of ranks and of channels */
    uint32_t now;          /* the current round */
    /* For each rank and step: the first round in which the step, its receive half or its send half
     * is complete. NOT_YET: it has not started. */
    uint32_t **done, **received, **sent;
    uint32_t *next_local;  /* for each rank: its next local or one-sided step */
    uint32_t *local_until; /* for each rank: the round in which its previous local step ends */
    uint32_t *nsignals;    /* for each rank: the number of signals that it has given */
    struct lane *lanes;    /* see lane_of */
    struct message *messages; /* lane by lane */
    struct rounds rounds;     /* the result so far */
};

static const struct tutti_step *step_at(const struct player *player, uint32_t rank, uint32_t step)
{
    return &player->team->schedules[rank]->steps[step];
}

/* Adds an event for the caller to fill. The pointer is valid until the next call. */
static struct event *add_event(struct rounds *rounds)
{
    if (rounds->nevents == rounds->capacity) {
        rounds->capacity = rounds->capacity == 0 ? 256 : 2 * rounds->capacity;
        rounds->events = must_have(realloc(rounds->events,
                                           rounds->capacity * sizeof *rounds->events));
    }
    return &rounds->events[rounds->nevents++];
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static struct lane *lane_of(const struct player *player, uint32_t from, uint32_t to,
                            uint32_t channel)
{
    return &player->lanes[((size_t)from * player->n + to) * player->nchannels + channel];
}

static size_t count_lanes(const struct player *player)
{
    return (size_t)player->n * player->n * player->nchannels;
}

/* Counts the sends of each lane, and makes room for their messages. */
static void make_room(struct player *player)
{
    uint32_t total = 0;

    for (uint32_t rank = 0; rank < player->n; rank++)
        for (uint32_t i = 0; i < player->team->schedules[rank]->nsteps; i++)
            if (tutti_access_sends(step_at(player, rank, i)))
                lane_of(player, rank, (uint32_t)step_at(player, rank, i)->to,
                        step_at(player, rank, i)->channel)->count++;
    for (size_t i = 0; i < count_lanes(player); i++) {
        player->lanes[i].first = total;
        total += player->lanes[i].count;
        player->lanes[i].count = 0; /* add_sends counts again */
    }
    player->messages = must_calloc(total, sizeof *player->messages);
}

/* Adds a message for each send, in the order of the schedules. */
static void add_sends(struct player *player)
{
    for (uint32_t rank = 0; rank < player->n; rank++)
        for (uint32_t i = 0; i < player->team->schedules[rank]->nsteps; i++) {
            const struct tutti_step *step = step_at(player, rank, i);

            if (tutti_access_sends(step)) {
                struct lane *lane = lane_of(player, rank, (uint32_t)step->to, step->channel);
                struct message *message = &player->messages[lane->first + lane->count++];

                message->from = rank;
                message->to = (uint32_t)step->to;
                message->channel = step->channel;
                message->from_step = i;
                message->to_step = NOT_YET;
            }
        }
}

/* Pairs the k-th send of each lane with its k-th receive. Returns false if a send or a receive has
 * no partner. */
static bool find_messages(struct player *player)
{
    size_t nlanes = count_lanes(player);
    uint32_t *received = must_calloc(nlanes, sizeof *received);
    bool all_have_partners = true;

    make_room(player);
    add_sends(player);
    for (uint32_t rank = 0; rank < player->n; rank++)
        for (uint32_t i = 0; i < player->team->schedules[rank]->nsteps; i++) {
            const struct tutti_step *step = step_at(player, rank, i);
            struct lane *lane;
            uint32_t *k;

            if (!tutti_access_receives(step))
                continue;
            lane = lane_of(player, (uint32_t)step->from, rank, step->channel);
            k = &received[lane - player->lanes];
            if (*k < lane->count)
                player->messages[lane->first + *k].to_step = i;
            else
                all_have_partners = false;
            ++*k;
        }
    for (size_t i = 0; i < nlanes; i++)
        all_have_partners = all_have_partners && received[i] == player->lanes[i].count;
    free(received);
    return all_have_partners;
}

/* ---- local and one-sided steps --------------------------------------------------------------- */

static bool deps_are_complete(const struct player *player, uint32_t rank, uint32_t step)
{
    const struct tutti_schedule *schedule = player->team->schedules[rank];
    const struct tutti_step *waiting = &schedule->steps[step];

    for (uint32_t i = 0; i < waiting->dep_count; i++)
        if (player->done[rank][schedule->deps[waiting->dep_first + i]] > player->now)
            return false;
    return true;
}

/* Returns true if all ranks for which a wait step waits have given the signal. */
static bool is_signaled(const struct player *player, uint32_t rank, const struct tutti_step *wait)
{
    for (uint32_t other = 0; other < player->n; other++) {
        bool is_meant = wait->from == TUTTI_ALL_RANKS ? other != rank
                                                      : other == (uint32_t)wait->from;

        if (is_meant && player->nsignals[other] < wait->signal)
            return false;
    }
    return true;
}

/* Adds the event of a local or one-sided step that starts now. A put to several ranks gives one
 * event for each of them. */
static void add_local(struct player *player, uint32_t rank, const struct tutti_step *step,
                      uint32_t end)
{
    struct event *event;

    if (step->kind == TUTTI_STEP_PUT && step->to == TUTTI_ALL_RANKS) {
        struct tutti_step_ranks among = tutti_step_ranks(player->team->schedules[rank], step);
        struct tutti_step one = *step;

        for (uint32_t i = 0; i < among.count; i++) {
            one.to = (int32_t)tutti_step_ranks_at(among, i);
            if (tutti_step_ranks_at(among, i) != rank)
                add_local(player, rank, &one, end);
        }
        return;
    }
    event = add_event(&player->rounds);
    *event = (struct event){.kind = step->kind, .from = rank, .to = rank, .begin = player->now,
                            .end = end, .span = step->src};
    if (step->kind == TUTTI_STEP_PUT)
        event->to = (uint32_t)step->to;
    if (step->kind == TUTTI_STEP_GET || step->kind == TUTTI_STEP_WAIT)
        event->from = (uint32_t)step->from;
    if (step->kind == TUTTI_STEP_GET)
        event->span = step->remote;
    if (step->kind == TUTTI_STEP_GATHER_REDUCE)
        event->among = tutti_step_ranks(player->team->schedules[rank], step);
}

/* Starts a rank's local and one-sided steps in order, until one must wait. Returns true if any step
 * has started. */
static bool run_locals(struct player *player, uint32_t rank)
{
    const struct tutti_schedule *schedule = player->team->schedules[rank];
    uint32_t *next = &player->next_local[rank];
    bool has_started = false;

    for (; *next < schedule->nsteps; ++*next) {
        const struct tutti_step *step = &schedule->steps[*next];
        bool takes_round = step->kind == TUTTI_STEP_PUT || step->kind == TUTTI_STEP_GET ||
                           step->kind == TUTTI_STEP_GATHER_REDUCE;
        uint32_t end;

        if (tutti_step_is_two_sided(step))
            continue;
        if (player->local_until[rank] > player->now || !deps_are_complete(player, rank, *next))
            break;
        if (step->kind == TUTTI_STEP_WAIT && !is_signaled(player, rank, step))
            break;
        if (step->kind == TUTTI_STEP_COPY || step->kind == TUTTI_STEP_REDUCE)
            takes_round = schedule->is_one_sided;
        end = player->now + takes_round;
        player->nsignals[rank] += step->kind == TUTTI_STEP_SIGNAL;
        player->done[rank][*next] = end;
        player->local_until[rank] = end;
        add_local(player, rank, step, end);
        has_started = true;
    }
    return has_started;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns true if message number `index` of a lane can start now. Whether the ports of its ranks
 * are free is not checked. */
static bool may_start(const struct player *player, const struct lane *lane, uint32_t index)
{
    const struct message *message = &player->messages[lane->first + index];
    const struct tutti_step *send = step_at(player, message->from, message->from_step);

    if (lane->free_at > player->now ||
        !deps_are_complete(player, message->from, message->from_step) ||
        !deps_are_complete(player, message->to, message->to_step))
        return false;
    /* A step that receives and sends can only send after it has received. */
    return !tutti_access_receives(send) ||
           player->received[message->from][message->from_step] <= player->now;
}

/* Records that the send half or the receive half of a step ends with this round. `half` is
 * player->sent or player->received. The step is complete if its other half is, too. */
static void finish_half(struct player *player, uint32_t rank, uint32_t step, uint32_t **half)
{
    const struct tutti_step *whole = step_at(player, rank, step);

    half[rank][step] = player->now + 1;
    if ((!tutti_access_receives(whole) || player->received[rank][step] != NOT_YET) &&
        (!tutti_access_sends(whole) || player->sent[rank][step] != NOT_YET))
        player->done[rank][step] = player->now + 1;
}

/* Returns the span of the data that a step sends. A step that receives and sends passes on the span
 * that it has stored. If it stores nothing, it passes on the span with which it has reduced. */
static struct tutti_span sent_span(const struct tutti_step *send)
{
    return tutti_access_receives(send) && send->dst.buffer != TUTTI_BUF_NONE ? send->dst
                                                                             : send->src;
}

/* Starts the next message of a lane. */
static void start_message(struct player *player, struct lane *lane)
{
    const struct message *message = &player->messages[lane->first + lane->next++];
    const struct tutti_step *recv = step_at(player, message->to, message->to_step);

    finish_half(player, message->from, message->from_step, player->sent);
    finish_half(player, message->to, message->to_step, player->received);
    *add_event(&player->rounds) = (struct event){
        .kind = recv->kind,
        .from = message->from,
        .to = message->to,
        .channel = message->channel,
        .begin = player->now,
        .end = player->now + 1,
        .span = sent_span(step_at(player, message->from, message->from_step)),
    };
    player->rounds.nmessages++;
}

/* Chunks that wrap around the end of a buffer travel as two messages of one lane. If the next
 * message is the second of them, starts it too, and joins the two into one event. */
static void start_wrapped(struct player *player, struct lane *lane)
{
    struct event *event = &player->rounds.events[player->rounds.nevents - 1];
    const struct message *message = &player->messages[lane->first + lane->next];
    struct tutti_span span;

    if (lane->next == lane->count || event->span.first == 0 || !may_start(player, lane, lane->next))
        return;
    span = sent_span(step_at(player, message->from, message->from_step));
    if (span.first != 0 || span.buffer != event->span.buffer)
        return;
    start_message(player, lane);
    player->rounds.nevents--;
    player->rounds.events[player->rounds.nevents - 1].wrapped = span.count;
}

/* A lane whose next message can start, if its ports are free. */
struct candidate {
    struct lane *lane;
    uint32_t order; /* sum of the positions in the schedules of both ranks */
    uint32_t from, to;
};

static int by_order(const void *a, const void *b)
{
    const struct candidate *first = a, *second = b;

    if (first->order != second->order)
        return first->order < second->order ? -1 : 1;
    return first->lane < second->lane ? -1 : first->lane > second->lane;
}

/* Starts the messages of this round. Returns true if there is one. */
static bool start_messages(struct player *player)
{
    size_t nlanes = count_lanes(player), count = 0;
    struct candidate *candidates = must_calloc(nlanes, sizeof *candidates);
    bool *is_sending = must_calloc(player->n, sizeof *is_sending);
    bool *is_receiving = must_calloc(player->n, sizeof *is_receiving);
    bool has_started = false;

    for (size_t i = 0; i < nlanes; i++) {
        struct lane *lane = &player->lanes[i];
        const struct message *next = &player->messages[lane->first + lane->next];

        if (lane->next < lane->count && may_start(player, lane, lane->next))
            candidates[count++] = (struct candidate){
                lane, next->from_step + next->to_step, next->from, next->to};
    }
    qsort(candidates, count, sizeof *candidates, by_order);
    for (size_t i = 0; i < count; i++) {
        const struct candidate *candidate = &candidates[i];

        if (is_sending[candidate->from] || is_receiving[candidate->to])
            continue;
        is_sending[candidate->from] = is_receiving[candidate->to] = true;
        start_message(player, candidate->lane);
        start_wrapped(player, candidate->lane);
        candidate->lane->free_at = player->now + 1;
        has_started = true;
    }
    free(candidates);
    free(is_sending);
    free(is_receiving);
    return has_started;
}

/* ---- all rounds ------------------------------------------------------------------------------ */

static bool all_are_done(const struct player *player)
{
    for (uint32_t rank = 0; rank < player->n; rank++)
        for (uint32_t i = 0; i < player->team->schedules[rank]->nsteps; i++)
            if (player->done[rank][i] > player->now)
                return false;
    return true;
}

/* Returns true if a local or one-sided step of some rank takes this round. */
static bool runs_local_step(const struct player *player)
{
    for (uint32_t rank = 0; rank < player->n; rank++)
        if (player->local_until[rank] > player->now)
            return true;
    return false;
}

/* Plays rounds until nothing more can start. Returns true if all steps are then complete. */
static bool play(struct player *player)
{
    if (!find_messages(player))
        return false;
    for (;; player->now++) {
        bool has_started_local = true, has_started_message;

        /* A step that takes no time may let steps of other ranks start in the same round. */
        while (has_started_local) {
            has_started_local = false;
            for (uint32_t rank = 0; rank < player->n; rank++)
                has_started_local = run_locals(player, rank) || has_started_local;
        }
        has_started_message = start_messages(player);
        if (!has_started_message && !runs_local_step(player))
            break;
    }
    player->rounds.nrounds = player->now;
    return all_are_done(player);
}

/* Allocates a round for each rank and step, and sets all to NOT_YET. */
static uint32_t **alloc_times(const struct tutti_ensemble *team)
{
    uint32_t **times = must_calloc(team->nranks, sizeof *times);

    for (uint32_t rank = 0; rank < team->nranks; rank++) {
        times[rank] = must_calloc(team->schedules[rank]->nsteps, sizeof **times);
        memset(times[rank], 0xff, team->schedules[rank]->nsteps * sizeof **times);
    }
    return times;
}

static void free_times(const struct tutti_ensemble *team, uint32_t **times)
{
    for (uint32_t rank = 0; rank < team->nranks; rank++)
        free(times[rank]);
    free(times);
}

bool rounds_play(const struct tutti_ensemble *team, struct rounds *ret_rounds)
{
    uint32_t n = team->nranks;
    struct player player = {.team = team, .n = n, .nchannels = 1};
    bool has_ended;

    for (uint32_t rank = 0; rank < n; rank++)
        for (uint32_t i = 0; i < team->schedules[rank]->nsteps; i++)
            if (step_at(&player, rank, i)->channel >= player.nchannels)
                player.nchannels = step_at(&player, rank, i)->channel + 1u;
    player.done = alloc_times(team);
    player.received = alloc_times(team);
    player.sent = alloc_times(team);
    player.next_local = must_calloc(n, sizeof *player.next_local);
    player.local_until = must_calloc(n, sizeof *player.local_until);
    player.nsignals = must_calloc(n, sizeof *player.nsignals);
    player.lanes = must_calloc((size_t)n * n * player.nchannels, sizeof *player.lanes);
    has_ended = play(&player);
    free_times(team, player.done);
    free_times(team, player.received);
    free_times(team, player.sent);
    free(player.next_local);
    free(player.local_until);
    free(player.nsignals);
    free(player.lanes);
    free(player.messages);
    if (!has_ended)
        rounds_fini(&player.rounds);
    else
        *ret_rounds = player.rounds;
    return has_ended;
}

void rounds_fini(struct rounds *rounds)
{
    free(rounds->events);
    *rounds = (struct rounds){.events = NULL};
}
