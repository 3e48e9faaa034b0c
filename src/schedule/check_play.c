/* SPDX-License-Identifier: Apache-2.0
 * Playing the schedules of all ranks with no credits: a slice moves only when
 * both halves of its message are at the head of their lanes and started.
 *
 * What can move never loses that by something else moving, so one greedy play
 * is as good as all: if it ends, every timing ends; if it stops, every timing
 * stops there. The nodes are logged as they happen, in an order that respects
 * happens-before. Runs follow each other under the executor's reuse rule: a
 * rank starts run e when it has finished run e - 1 and every other rank has
 * given its first signal of run e - 1.
 */
#include "schedule/check_model.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE
#define SLICES 3

struct play {
    struct check *check;
    /* Per half. */
    uint8_t *started, *done, *moved; /* `moved`: slices that went through it */
    uint32_t *waits_left;            /* per step: dependencies that are not complete */
    uint32_t *dependents_first, *dependents;
    uint32_t *steps_left; /* per rank, in its run */
    uint32_t *run;        /* per rank; nruns when all are over */
    uint32_t *signals;    /* per rank, through all runs */
    bool *local_over;     /* per rank, in its run */
    uint32_t *agenda;       /* halves to try to start, or whose message may move */
    uint32_t nagenda, agenda_capacity;
    uint32_t *waiting; /* halves of WAIT steps; NONE - 1 - rank: that rank, before its next run */
    uint32_t nwaiting, waiting_capacity;
};

static void log_node(struct play *play, uint32_t node)
{
    play->check->log[play->check->nlog++] = node;
}

static int push_agenda(struct play *play, uint32_t half)
{
    return tutti_check_push(&play->agenda, &play->nagenda, &play->agenda_capacity, half);
}

static int push_waiting(struct play *play, uint32_t what)
{
    return tutti_check_push(&play->waiting, &play->nwaiting, &play->waiting_capacity, what);
}

/* Everything that waits for signals looks again. */
static int wake(struct play *play)
{
    while (play->nwaiting > 0)
        TUTTI_TRY(push_agenda(play, play->waiting[--play->nwaiting]));
    return TUTTI_OK;
}

static int begin_run(struct play *play, uint32_t rank)
{
    struct check *check = play->check;
    uint32_t first = check->first_step[rank], end = check->first_step[rank + 1];

    log_node(play, check_run_begin(check, play->run[rank], rank));
    play->steps_left[rank] = end - first;
    play->local_over[rank] = check->local_count[rank] == 0;
    memset(play->started + 2 * first, 0, 2 * (end - first));
    memset(play->done + 2 * first, 0, 2 * (end - first));
    memset(play->moved + 2 * first, 0, 2 * (end - first));
    for (uint32_t at = first; at < end; at++) {
        const struct tutti_step *step = check_step(check, at);

        play->waits_left[at] = step->dep_count;
        TUTTI_TRY(push_agenda(play, 2 * at));
        if (check_is_fused(step))
            TUTTI_TRY(push_agenda(play, 2 * at + 1));
    }
    return TUTTI_OK;
}

/* Has every other rank given its first signal of the run before, so that this one may start? */
static bool may_begin_run(const struct play *play, uint32_t rank)
{
    uint32_t nsignals = play->check->schedules[0]->nsignals, run = play->run[rank];

    for (uint32_t other = 0; other < play->check->nranks && run > 0; other++)
        if (other != rank && play->signals[other] < (run - 1) * nsignals + 1 &&
            play->run[other] < run)
            return false;
    return true;
}

static int try_run(struct play *play, uint32_t rank)
{
    if (may_begin_run(play, rank))
        return begin_run(play, rank);
    return push_waiting(play, NONE - 1 - rank);
}

/* When its local steps are over a rank counts as having given all signals of the run. */
static int raise_signals(struct play *play, uint32_t rank)
{
    uint32_t nsignals = play->check->schedules[rank]->nsignals;

    play->local_over[rank] = true;
    play->signals[rank] = (play->run[rank] + 1) * nsignals;
    return wake(play);
}

static int end_runs(struct play *play, uint32_t rank)
{
    struct check *check = play->check;

    while (play->run[rank] < check->nruns && play->steps_left[rank] == 0) {
        if (check->local_count[rank] == 0)
            TUTTI_TRY(raise_signals(play, rank));
        log_node(play, check_run_end(check, play->run[rank], rank));
        play->run[rank]++;
        TUTTI_TRY(wake(play));
        if (play->run[rank] == check->nruns)
            return TUTTI_OK;
        play->steps_left[rank] = NONE; /* not begun */
        TUTTI_TRY(try_run(play, rank));
    }
    return TUTTI_OK;
}

static int complete_step(struct play *play, uint32_t at)
{
    struct check *check = play->check;
    uint32_t rank = check->step_rank[at];

    for (uint32_t d = play->dependents_first[at]; d < play->dependents_first[at + 1]; d++) {
        uint32_t other = play->dependents[d];

        if (--play->waits_left[other] == 0) {
            TUTTI_TRY(push_agenda(play, 2 * other));
            if (check_is_fused(check_step(check, other)))
                TUTTI_TRY(push_agenda(play, 2 * other + 1));
        }
    }
    play->steps_left[rank]--;
    if (check->local_last[rank] == at)
        TUTTI_TRY(raise_signals(play, rank));
    return end_runs(play, rank);
}

static int complete_half(struct play *play, uint32_t half)
{
    struct check *check = play->check;

    play->done[half] = 1;
    if (check->lane_after[half] != NONE)
        TUTTI_TRY(push_agenda(play, check->lane_after[half]));
    if (check_is_fused(check_step(check, half / 2)) && !play->done[half ^ 1])
        return TUTTI_OK;
    return complete_step(play, half / 2);
}

static bool is_wait_over(const struct play *play, uint32_t at)
{
    const struct check *check = play->check;
    const struct tutti_step *step = check_step(check, at);
    uint32_t rank = check->step_rank[at];
    uint32_t number = play->run[rank] * check->schedules[rank]->nsignals + step->signal;

    if (step->from != TUTTI_ALL_RANKS)
        return play->signals[step->from] >= number;
    for (uint32_t other = 0; other < check->nranks; other++)
        if (other != rank && play->signals[other] < number)
            return false;
    return true;
}

static int run_local(struct play *play, uint32_t half)
{
    struct check *check = play->check;
    const struct tutti_step *step = check_step(check, half / 2);
    uint32_t rank = check->step_rank[half / 2];

    if (step->kind == TUTTI_STEP_WAIT && !is_wait_over(play, half / 2))
        return push_waiting(play, half);
    log_node(play, check_begin(check, play->run[rank], half));
    log_node(play, check_end(check, play->run[rank], half));
    play->started[half] = 1;
    if (step->kind == TUTTI_STEP_SIGNAL) {
        play->signals[rank]++;
        TUTTI_TRY(wake(play));
    }
    return complete_half(play, half);
}

/* Slices that a sending half could give by now. */
static uint32_t slices_at_hand(const struct play *play, uint32_t send)
{
    return check_is_fused(check_step(play->check, send / 2)) ? play->moved[send ^ 1] : SLICES;
}

/* Without a store, a slice is taken only when the one before went on. */
static bool has_room(const struct play *play, uint32_t recv)
{
    return check_step(play->check, recv / 2)->kind != TUTTI_STEP_RECV_REDUCE_SEND ||
           play->moved[recv] == play->moved[recv + 1];
}

static int end_message(struct play *play, uint32_t send, uint32_t recv, uint32_t run)
{
    struct check *check = play->check;
    bool is_send_held = check_step(check, send / 2)->kind == TUTTI_STEP_RECV_REDUCE_SEND;
    bool is_recv_held = check_step(check, recv / 2)->kind == TUTTI_STEP_RECV_REDUCE_SEND;

    log_node(play, check_end(check, run, send));
    log_node(play, check_end(check, run, recv));
    /* The last slice that a step without a store took is gone: now its receive half is over too. */
    if (is_send_held)
        TUTTI_TRY(complete_half(play, send ^ 1));
    TUTTI_TRY(complete_half(play, send));
    return is_recv_held ? TUTTI_OK : complete_half(play, recv);
}

static int move_slices(struct play *play, uint32_t half)
{
    struct check *check = play->check;
    bool is_send = (half & 1) || check_step(check, half / 2)->kind == TUTTI_STEP_SEND;
    uint32_t send = is_send ? half : check->mate[half], recv = is_send ? check->mate[half] : half;
    uint32_t sender = check->step_rank[send / 2], receiver = check->step_rank[recv / 2];
    uint32_t run = play->run[sender];

    /* One of them may be a run ahead, or not have begun this one. */
    if (run != play->run[receiver] || play->steps_left[sender] == NONE ||
        play->steps_left[receiver] == NONE)
        return TUTTI_OK;
    if (!play->started[send] || !play->started[recv] || play->moved[send] == SLICES ||
        play->moved[send] == slices_at_hand(play, send) || !has_room(play, recv))
        return TUTTI_OK;
    if (play->moved[send] == 0) {
        log_node(play, check_begin(check, run, send));
        log_node(play, check_begin(check, run, recv));
    }
    play->moved[send]++;
    play->moved[recv]++;

    /* Ask again for this message, the one that the receiver feeds, and the one that feeds us. */
    TUTTI_TRY(push_agenda(play, half));
    if (check_is_fused(check_step(check, recv / 2)))
        TUTTI_TRY(push_agenda(play, recv + 1));
    if (check_is_fused(check_step(check, send / 2)))
        TUTTI_TRY(push_agenda(play, send ^ 1));
    return play->moved[send] == SLICES ? end_message(play, send, recv, run) : TUTTI_OK;
}

static int look_at(struct play *play, uint32_t half)
{
    struct check *check = play->check;

    if (half >= NONE - check->nranks) {
        TUTTI_TRY(try_run(play, NONE - 1 - half));
        return end_runs(play, NONE - 1 - half);
    }
    if (play->steps_left[check->step_rank[half / 2]] == NONE || play->done[half])
        return TUTTI_OK;
    if (!play->started[half]) {
        uint32_t before = check->lane_before[half];

        if (play->waits_left[half / 2] > 0 || (before != NONE && !play->done[before]))
            return TUTTI_OK;
        if (!tutti_step_is_two_sided(check_step(check, half / 2)))
            return run_local(play, half);
        play->started[half] = 1;
    }
    return tutti_step_is_two_sided(check_step(check, half / 2)) ? move_slices(play, half)
                                                                : TUTTI_OK;
}

/* The first step that is ready on its own side but gets no further. */
static int report_deadlock(struct play *play)
{
    struct check *check = play->check;

    for (int is_wait = 1; is_wait >= 0; is_wait--)
        for (uint32_t at = 0; at < check->nsteps; at++) {
            const struct tutti_step *step = check_step(check, at);
            uint32_t rank = check->step_rank[at], half = 2 * at, before;

            if (play->run[rank] == check->nruns || play->steps_left[rank] == NONE ||
                play->waits_left[at] > 0)
                continue;
            if (check_is_fused(step) && play->done[half])
                half++;
            before = check->lane_before[half];
            if (play->done[half] || (before != NONE && !play->done[before]))
                continue;
            if ((step->kind == TUTTI_STEP_WAIT) == (is_wait == 1))
                return tutti_check_found(
                    check, rank, at, "deadlock in run %u: %s with rank %d never gets further",
                    play->run[rank], tutti_step_name((enum tutti_step_kind)step->kind),
                    step->from != TUTTI_NO_RANK ? step->from : step->to);
        }
    return tutti_check_found(check, 0, NONE, "deadlock between runs");
}

static int index_dependents(struct play *play)
{
    struct check *check = play->check;
    uint32_t total = 0, *first;

    for (uint32_t rank = 0; rank < check->nranks; rank++)
        for (uint32_t i = 0; i < check->schedules[rank]->nsteps; i++)
            total += check->schedules[rank]->steps[i].dep_count;
    TUTTI_TRY(tutti_check_alloc(&play->dependents_first, check->nsteps + 2, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->dependents, total, sizeof(uint32_t), 0));

    /* Counted two places up; writing them down moves the starts one up, to where they belong. */
    first = play->dependents_first;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t at = 0; at < check->nsteps; at++) {
            const struct tutti_step *step = check_step(check, at);
            uint32_t rank = check->step_rank[at];
            const uint32_t *deps = check->schedules[rank]->deps + step->dep_first;

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

static int prepare(struct play *play)
{
    struct check *check = play->check;
    size_t nhalves = 2 * (size_t)check->nsteps;

    check->nruns = check->is_shared ? TUTTI_CHECK_SHARED_RUNS : 1;
    TUTTI_TRY(tutti_check_alloc(&check->log, check_nodes(check), sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->started, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->done, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->moved, nhalves, 1, 0));
    TUTTI_TRY(tutti_check_alloc(&play->waits_left, check->nsteps, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->steps_left, check->nranks, sizeof(uint32_t), 0xff));
    TUTTI_TRY(tutti_check_alloc(&play->run, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->signals, check->nranks, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&play->local_over, check->nranks, sizeof(bool), 0));
    return index_dependents(play);
}

static int play_all(struct play *play)
{
    struct check *check = play->check;

    TUTTI_TRY(prepare(play));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        TUTTI_TRY(begin_run(play, rank));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        TUTTI_TRY(end_runs(play, rank));
    while (play->nagenda > 0)
        TUTTI_TRY(look_at(play, play->agenda[--play->nagenda]));
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        if (play->run[rank] < check->nruns)
            return report_deadlock(play);
    return TUTTI_OK;
}

int tutti_check_play(struct check *check)
{
    struct play play = {.check = check};
    int rc = play_all(&play);

    free(play.started);
    free(play.done);
    free(play.moved);
    free(play.waits_left);
    free(play.dependents_first);
    free(play.dependents);
    free(play.steps_left);
    free(play.run);
    free(play.signals);
    free(play.local_over);
    free(play.agenda);
    free(play.waiting);
    return rc;
}
