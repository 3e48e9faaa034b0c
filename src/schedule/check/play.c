/* SPDX-License-Identifier: Apache-2.0
 * Plays the schedules of all ranks with a given number of credits. With 0 credits, a slice moves
 * only when both halves of its message are at the head of their lanes and have started. With c
 * credits, a lane holds the first c messages that are not yet received. Each later message waits
 * for the receive of the message c before it.
 *
 * A move that is possible stays possible whatever else moves. So one greedy play is enough: if it
 * ends, every timing ends; if it stops, every timing stops there. Nodes are logged as they happen,
 * in an order that respects happens-before.
 *
 * Runs follow one another under the executor's reuse rule. A rank starts run e when it has finished
 * run e - 1 and every other rank has given its first signal of run e - 1. No message is sent to a
 * rank that is in another run.
 */
#include "schedule/check/play.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE
#define SLICES TUTTI_CHECK_SLICES

static void log_node(struct tutti_check_play *play, uint32_t node)
{
    play->check->log[play->check->nlog++] = node;
}

static int push_agenda(struct tutti_check_play *play, uint32_t half)
{
    return tutti_check_push(&play->agenda, &play->nagenda, &play->agenda_capacity, half);
}

static int push_waiting(struct tutti_check_play *play, uint32_t what)
{
    return tutti_check_push(&play->waiting, &play->nwaiting, &play->waiting_capacity, what);
}

/* Try again everything that waits for signals. */
static int wake(struct tutti_check_play *play)
{
    while (play->nwaiting > 0)
        TUTTI_TRY(push_agenda(play, play->waiting[--play->nwaiting]));
    return TUTTI_OK;
}

/* Begin a rank's current run: try all its halves. */
static int begin_run(struct tutti_check_play *play, uint32_t rank)
{
    struct tutti_check *check = play->check;
    uint32_t first = check->first_step[rank], end = check->first_step[rank + 1];

    tutti_assert(play->run[rank] < check->nruns && first <= end);
    log_node(play, tutti_check_run_begin(check, play->run[rank], rank));
    play->steps_left[rank] = end - first;
    memset(play->started + 2 * first, 0, 2 * (end - first));
    memset(play->done + 2 * first, 0, 2 * (end - first));
    memset(play->moved + 2 * first, 0, 2 * (end - first));
    memset(play->arrived + 2 * first, 0, 2 * (end - first));
    for (uint32_t at = first; at < end; at++) {
        const struct tutti_step *step = tutti_check_step(check, at);

        play->waits_left[at] = step->dep_count;
        TUTTI_TRY(push_agenda(play, 2 * at));
        if (tutti_step_is_fused(step))
            TUTTI_TRY(push_agenda(play, 2 * at + 1));
    }
    return TUTTI_OK;
}

bool tutti_check_play_all_gave(const struct tutti_check_play *play, uint32_t rank, uint32_t number)
{
    return play->given[number] + (play->signals[rank] < number) == play->check->nranks;
}

/* True if every other rank has given its first signal of the run before, so that this run may
 * start. */
static bool may_begin_run(const struct tutti_check_play *play, uint32_t rank)
{
    uint32_t run = play->run[rank];

    return run == 0 || tutti_check_play_all_gave(
        play, rank, (run - 1) * play->check->schedules[rank]->nsignals + 1);
}

/* The item of `waiting` and `agenda` for a rank that waits for its next run (play.h). */
static uint32_t waiting_run(uint32_t rank)
{
    return NONE - 1 - rank;
}

static int try_run(struct tutti_check_play *play, uint32_t rank)
{
    if (may_begin_run(play, rank))
        return begin_run(play, rank);
    return push_waiting(play, waiting_run(rank));
}

/* The number of the last signal of the last run. */
static uint32_t last_signal(const struct tutti_check *check)
{
    return check->nruns * check->schedules[0]->nsignals;
}

/* Give all signals of a rank up to `number`. */
static int raise_signals(struct tutti_check_play *play, uint32_t rank, uint32_t number)
{
    tutti_assert(number <= last_signal(play->check));
    while (play->signals[rank] < number)
        play->given[++play->signals[rank]]++;
    return wake(play);
}

/* When its local steps are over, a rank counts as having given all signals of the run. */
static int end_local(struct tutti_check_play *play, uint32_t rank)
{
    return raise_signals(play, rank,
                         (play->run[rank] + 1) * play->check->schedules[rank]->nsignals);
}

/* If a rank's current run is over, end it and try to begin the next one. */
static int end_runs(struct tutti_check_play *play, uint32_t rank)
{
    struct tutti_check *check = play->check;

    while (play->run[rank] < check->nruns && play->steps_left[rank] == 0) {
        if (check->local_count[rank] == 0)
            TUTTI_TRY(end_local(play, rank));
        log_node(play, tutti_check_run_end(check, play->run[rank], rank));
        play->run[rank]++;
        TUTTI_TRY(wake(play));
        if (play->run[rank] == check->nruns)
            return TUTTI_OK;
        play->steps_left[rank] = NONE; /* the run has not begun */
        TUTTI_TRY(try_run(play, rank));
    }
    return TUTTI_OK;
}

/* A step is complete: let the steps that wait for it try, and end the run if it was the last. */
static int complete_step(struct tutti_check_play *play, uint32_t at)
{
    struct tutti_check *check = play->check;
    uint32_t rank = check->step_rank[at];

    for (uint32_t d = play->dependents_first[at]; d < play->dependents_first[at + 1]; d++) {
        uint32_t other = play->dependents[d];

        tutti_assert(play->waits_left[other] > 0 && check->step_rank[other] == rank);
        if (--play->waits_left[other] == 0) {
            TUTTI_TRY(push_agenda(play, 2 * other));
            if (tutti_step_is_fused(tutti_check_step(check, other)))
                TUTTI_TRY(push_agenda(play, 2 * other + 1));
        }
    }
    tutti_assert(play->steps_left[rank] > 0 && play->steps_left[rank] != NONE);
    play->steps_left[rank]--;
    if (check->local_last[rank] == at)
        TUTTI_TRY(end_local(play, rank));
    return end_runs(play, rank);
}

/* A half is done: let the halves that wait for it try, and complete its step if both are done. */
static int complete_half(struct tutti_check_play *play, uint32_t half)
{
    struct tutti_check *check = play->check;

    tutti_assert(play->started[half] && !play->done[half]);
    play->done[half] = 1;
    if (check->lane_after[half] != NONE)
        TUTTI_TRY(push_agenda(play, check->lane_after[half]));
    if (play->credit_mate[half] != NONE)
        TUTTI_TRY(push_agenda(play, play->credit_mate[half]));
    if (tutti_step_is_fused(tutti_check_step(check, half / 2)) && !play->done[half ^ 1])
        return TUTTI_OK;
    return complete_step(play, half / 2);
}

static bool is_wait_over(const struct tutti_check_play *play, uint32_t at)
{
    const struct tutti_check *check = play->check;
    const struct tutti_step *step = tutti_check_step(check, at);
    uint32_t rank = check->step_rank[at];
    uint32_t number = play->run[rank] * check->schedules[rank]->nsignals + step->signal;

    if (step->from != TUTTI_ALL_RANKS)
        return play->signals[step->from] >= number;
    return tutti_check_play_all_gave(play, rank, number);
}

/* Carry out a local step, or let a WAIT wait. */
static int run_local(struct tutti_check_play *play, uint32_t half)
{
    struct tutti_check *check = play->check;
    const struct tutti_step *step = tutti_check_step(check, half / 2);
    uint32_t rank = check->step_rank[half / 2];

    if (step->kind == TUTTI_STEP_WAIT && !is_wait_over(play, half / 2))
        return push_waiting(play, half);
    log_node(play, tutti_check_begin(check, play->run[rank], half));
    log_node(play, tutti_check_end(check, play->run[rank], half));
    play->started[half] = 1;
    if (step->kind == TUTTI_STEP_SIGNAL)
        TUTTI_TRY(raise_signals(play, rank, play->signals[rank] + 1));
    return complete_half(play, half);
}

uint32_t tutti_check_play_sendable(const struct tutti_check_play *play, uint32_t send)
{
    return tutti_step_is_fused(tutti_check_step(play->check, send / 2)) ? play->moved[send ^ 1]
                                                                        : SLICES;
}

bool tutti_check_play_has_room(const struct tutti_check_play *play, uint32_t recv)
{
    return tutti_check_step(play->check, recv / 2)->kind != TUTTI_STEP_RECV_REDUCE_SEND ||
           play->moved[recv] == play->moved[recv + 1];
}

/* True if a slice can move from a send into its lane. */
static bool may_give(const struct tutti_check_play *play, uint32_t send, uint32_t recv)
{
    const struct tutti_check *check = play->check;
    uint32_t sender = check->step_rank[send / 2], receiver = check->step_rank[recv / 2];

    /* Both must be in the same run. */
    if (play->run[sender] != play->run[receiver] || play->steps_left[sender] == NONE ||
        play->steps_left[receiver] == NONE)
        return false;
    if (!play->started[send] || play->moved[send] == SLICES ||
        play->moved[send] == tutti_check_play_sendable(play, send))
        return false;
    if (play->credits == 0)
        return play->started[recv] && tutti_check_play_has_room(play, recv);
    return play->credit_mate[send] == NONE || play->done[play->credit_mate[send]];
}

/* Move one slice into the lane. */
static int give(struct tutti_check_play *play, uint32_t send, uint32_t recv)
{
    struct tutti_check *check = play->check;
    const struct tutti_step *step = tutti_check_step(check, send / 2);
    uint32_t run = play->run[check->step_rank[send / 2]];

    tutti_assert(play->moved[send] < SLICES && play->arrived[recv] < SLICES);
    if (play->moved[send] == 0)
        log_node(play, tutti_check_begin(check, run, send));
    play->moved[send]++;
    play->arrived[recv]++;
    TUTTI_TRY(push_agenda(play, send));
    if (tutti_step_is_fused(step))
        TUTTI_TRY(push_agenda(play, send ^ 1));
    if (play->moved[send] < SLICES)
        return TUTTI_OK;
    log_node(play, tutti_check_end(check, run, send));
    /* A step without a store ends its receiving half only when its last slice has been sent on. */
    if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
        TUTTI_TRY(complete_half(play, send ^ 1));
    return complete_half(play, send);
}

/* Move one slice out of the lane. */
static int take(struct tutti_check_play *play, uint32_t recv)
{
    struct tutti_check *check = play->check;
    const struct tutti_step *step = tutti_check_step(check, recv / 2);
    uint32_t run = play->run[check->step_rank[recv / 2]];

    tutti_assert(play->moved[recv] < play->arrived[recv] && play->arrived[recv] <= SLICES);
    if (play->moved[recv] == 0)
        log_node(play, tutti_check_begin(check, run, recv));
    play->moved[recv]++;
    TUTTI_TRY(push_agenda(play, recv));
    if (tutti_step_is_fused(step))
        TUTTI_TRY(push_agenda(play, recv + 1));
    if (play->moved[recv] < SLICES)
        return TUTTI_OK;
    log_node(play, tutti_check_end(check, run, recv));
    return step->kind == TUTTI_STEP_RECV_REDUCE_SEND ? TUTTI_OK : complete_half(play, recv);
}

/* Move a slice into the lane and one out of it, if they can move. */
static int move_slices(struct tutti_check_play *play, uint32_t half)
{
    struct tutti_check *check = play->check;
    bool is_send = (half & 1) || tutti_check_step(check, half / 2)->kind == TUTTI_STEP_SEND;
    uint32_t send = is_send ? half : check->mate[half], recv = is_send ? check->mate[half] : half;

    tutti_assert(check->mate[half] != NONE && check->mate[check->mate[half]] == half);
    if (may_give(play, send, recv))
        TUTTI_TRY(give(play, send, recv));
    if (play->started[recv] && play->moved[recv] < play->arrived[recv] &&
        tutti_check_play_has_room(play, recv))
        TUTTI_TRY(take(play, recv));
    return TUTTI_OK;
}

/* Do what can be done for an item of the agenda. */
static int do_item(struct tutti_check_play *play, uint32_t item)
{
    struct tutti_check *check = play->check;
    uint32_t half = item;

    if (item >= waiting_run(check->nranks - 1)) {
        uint32_t rank = NONE - 1 - item;

        TUTTI_TRY(try_run(play, rank));
        return end_runs(play, rank);
    }
    if (play->steps_left[check->step_rank[half / 2]] == NONE || play->done[half])
        return TUTTI_OK;
    if (!play->started[half]) {
        uint32_t before = check->lane_before[half];

        if (play->waits_left[half / 2] > 0 || (before != NONE && !play->done[before]))
            return TUTTI_OK;
        if (!tutti_step_is_two_sided(tutti_check_step(check, half / 2)))
            return run_local(play, half);
        play->started[half] = 1;
    }
    return tutti_step_is_two_sided(tutti_check_step(check, half / 2)) ? move_slices(play, half)
                                                                      : TUTTI_OK;
}

/* For each step, list the steps that depend on it. */
static int index_dependents(struct tutti_check_play *play)
{
    struct tutti_check *check = play->check;
    uint32_t total = 0, *first;

    for (uint32_t rank = 0; rank < check->nranks; rank++)
        for (uint32_t i = 0; i < check->schedules[rank]->nsteps; i++)
            total += check->schedules[rank]->steps[i].dep_count;
    TUTTI_TRY(tutti_check_alloc(&play->dependents_first, check->nsteps + 2, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->dependents, total, sizeof(uint32_t), 0));

    /* The first pass counts the dependents of step s in first[s + 2]. Then the counts are added up,
     * so that the list of step s starts at first[s + 1]. The second pass writes the lists. It moves
     * first[s + 1] to the end of list s, which is the start of list s + 1. */
    first = play->dependents_first;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t at = 0; at < check->nsteps; at++) {
            const struct tutti_step *step = tutti_check_step(check, at);
            uint32_t rank = check->step_rank[at];
            const uint32_t *deps = tutti_step_deps(check->schedules[rank], step);

            for (uint32_t d = 0; d < step->dep_count; d++) {
                uint32_t on = check->first_step[rank] + deps[d];

                if (pass == 0)
                    first[on + 2]++;
                else
                    play->dependents[first[on + 1]++] = at;
            }
        }
        for (uint32_t at = 0; at < check->nsteps && pass == 0; at++)
            first[at + 2] += first[at + 1];
    }
    return TUTTI_OK;
}

/* The receive of a lane's message i gives its credit to the send of message i + credits. */
static void index_credits(struct tutti_check_play *play)
{
    const struct tutti_check *check = play->check;

    for (uint32_t i = 0; i < check->nlanes && play->credits > 0; i++) {
        uint32_t before = check->lane_sends[i], after = before;

        for (uint32_t c = 0; c < play->credits && after != NONE; c++)
            after = check->lane_after[after];
        for (; after != NONE; after = check->lane_after[after]) {
            play->credit_mate[after] = check->mate[before];
            play->credit_mate[check->mate[before]] = after;
            before = check->lane_after[before];
        }
    }
}

static int prepare(struct tutti_check_play *play)
{
    struct tutti_check *check = play->check;
    size_t nhalves = 2 * (size_t)check->nsteps;
    size_t nnumbers = (size_t)last_signal(check) + 1;

    check->nlog = 0;
    TUTTI_TRY(tutti_check_alloc(&play->started, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->done, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->moved, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->arrived, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->credit_mate, nhalves, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&play->waits_left, check->nsteps, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->steps_left, check->nranks, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&play->run, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->signals, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->given, nnumbers, sizeof(uint32_t), 0));
    index_credits(play);
    return index_dependents(play);
}

int tutti_check_play_all(struct tutti_check_play *play)
{
    struct tutti_check *check = play->check;

    TUTTI_TRY(prepare(play));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        TUTTI_TRY(begin_run(play, rank));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        TUTTI_TRY(end_runs(play, rank));
    while (play->nagenda > 0)
        TUTTI_TRY(do_item(play, play->agenda[--play->nagenda]));
    return TUTTI_OK;
}

bool tutti_check_play_is_over(const struct tutti_check_play *play)
{
    for (uint32_t rank = 0; rank < play->check->nranks; rank++)
        if (play->run[rank] < play->check->nruns)
            return false;
    return true;
}

void tutti_check_play_fini(struct tutti_check_play *play)
{
    free(play->started);
    free(play->done);
    free(play->moved);
    free(play->arrived);
    free(play->credit_mate);
    free(play->waits_left);
    free(play->dependents_first);
    free(play->dependents);
    free(play->steps_left);
    free(play->run);
    free(play->signals);
    free(play->given);
    free(play->agenda);
    free(play->waiting);
}
