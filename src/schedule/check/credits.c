/* SPDX-License-Identifier: Apache-2.0
 * Finds how many credits are enough, by bisection over plays: a play that ends with some credits
 * also ends with more. If no number is enough, reports which step waits for which.
 */
#include "schedule/check/play.h"

#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE
#define MOST_TOLD 8 /* the most steps of a cycle that a message names */

/* ---- which step waits for which --------------------------------------------------- */

/* True if a half is not done although no step of its own rank holds it up. */
static bool is_stuck(const struct tutti_check_play *play, uint32_t half)
{
    const struct tutti_check *check = play->check;
    uint32_t before = check->lane_before[half];

    return !play->done[half] && play->waits_left[half / 2] == 0 &&
           (before == NONE || play->done[before]);
}

/* The half of step `at` that is not done yet. */
static uint32_t undone_half(const struct tutti_check_play *play, uint32_t at)
{
    bool is_fused = tutti_step_is_fused(tutti_check_step(play->check, at));

    return play->done[2 * at] && is_fused ? 2 * at + 1 : 2 * at;
}

/* The local step that `rank` has reached; NONE if it is between two runs. */
static uint32_t local_half(const struct tutti_check_play *play, uint32_t rank)
{
    const struct tutti_check *check = play->check;

    if (play->steps_left[rank] == NONE)
        return NONE;
    for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++)
        if (check->local_index[at] != NONE && !play->done[2 * at])
            return 2 * at;
    return NONE;
}

/* The local step at which a rank stands that has not given the signal that WAIT step `at` waits
 * for. */
static uint32_t find_signaller(const struct tutti_check_play *play, uint32_t at)
{
    const struct tutti_check *check = play->check;
    const struct tutti_step *step = tutti_check_step(check, at);
    uint32_t own = check->step_rank[at];
    uint32_t number = play->run[own] * check->schedules[own]->nsignals + step->signal;

    if (step->from != TUTTI_ALL_RANKS)
        return local_half(play, (uint32_t)step->from);
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        if (rank != own && play->signals[rank] < number)
            return local_half(play, rank);
    return NONE;
}

/* The half that an unfinished half waits for. */
static uint32_t find_blocker(const struct tutti_check_play *play, uint32_t half)
{
    const struct tutti_check *check = play->check;
    uint32_t at = half / 2, rank = check->step_rank[at], mate = check->mate[half];
    const struct tutti_step *step = tutti_check_step(check, at);
    const uint32_t *deps = tutti_step_deps(check->schedules[rank], step);
    bool is_send = (half & 1) || step->kind == TUTTI_STEP_SEND;

    for (uint32_t d = 0; d < step->dep_count && !play->started[half]; d++) {
        uint32_t on = undone_half(play, check->first_step[rank] + deps[d]);

        if (!play->done[on])
            return on;
    }
    if (check->lane_before[half] != NONE && !play->done[check->lane_before[half]])
        return check->lane_before[half];
    if (step->kind == TUTTI_STEP_WAIT)
        return find_signaller(play, at);
    if (mate == NONE || play->steps_left[check->step_rank[mate / 2]] == NONE)
        return NONE;
    if (is_send && play->moved[half] == tutti_check_play_sendable(play, half))
        return half ^ 1;
    if (is_send)
        return play->credits == 0 ? mate : play->credit_mate[half];
    return tutti_check_play_has_room(play, half) ? mate : half + 1;
}

struct text {
    char *at;
    size_t left;
};

/* Append to a text; what does not fit is cut off. */
static void __attribute__((format(printf, 2, 3))) tell(struct text *text, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= text->left)
        length = (int)text->left - 1;
    text->at += length;
    text->left -= (size_t)length;
}

static void tell_step(const struct tutti_check *check, struct text *text, uint32_t half)
{
    uint32_t at = half / 2, rank = check->step_rank[at];
    const struct tutti_step *step = tutti_check_step(check, at);
    int32_t from = step->kind == TUTTI_STEP_WAIT || tutti_access_receives(step) ? step->from
                                                                              : TUTTI_NO_RANK;

    tell(text, "rank %u step %u (%s", rank, at - check->first_step[rank],
         tutti_step_name((enum tutti_step_kind)step->kind));
    if (from >= 0)
        tell(text, " from %d", from);
    if (from == TUTTI_ALL_RANKS)
        tell(text, " for all");
    if (tutti_access_sends(step))
        tell(text, " to %d", step->to);
    tell(text, ")");
}

/* Report a chain of steps: follow each half to the half that it waits for, until a half comes up
 * for the second time. */
static int tell_cycle(struct tutti_check_play *play, uint32_t half, struct text *text)
{
    struct tutti_check *check = play->check;
    uint32_t *place; /* per half: its position in the chain, from 1 on; 0: not in the chain */
    uint32_t told = 0, next;

    TUTTI_TRY(tutti_check_alloc(&place, 2 * (size_t)check->nsteps, sizeof(*place), 0));
    for (uint32_t i = 1; half != NONE && place[half] == 0; i++) {
        place[half] = i;
        next = find_blocker(play, half);
        /* A step that waits for its own other half is reported once. */
        if (told < MOST_TOLD && (next == NONE || next / 2 != half / 2)) {
            if (told > 0)
                tell(text, told == 1 ? " waits for " : ", which waits for ");
            tell_step(check, text, half);
            told++;
        }
        half = next;
    }
    if (half != NONE) {
        tell(text, told == MOST_TOLD ? ", and so on, back to "
                   : told == 1       ? " waits for "
                                     : ", which waits for ");
        tell_step(check, text, half);
    }
    free(place);
    return TUTTI_OK;
}

static int report_deadlock(struct tutti_check_play *play)
{
    struct tutti_check *check = play->check;
    char cycle[sizeof(check->report->what)] = "", credits[32] = "unlimited credits";
    struct text text = {cycle, sizeof(cycle)};
    uint32_t half = NONE, rank;

    /* Prefer a WAIT as the first step that is named. It is the more likely cause, because a rank
     * that is late with a message may be waiting for a signal. */
    for (int is_wait = 1; is_wait >= 0 && half == NONE; is_wait--)
        for (uint32_t at = 0; at < check->nsteps && half == NONE; at++) {
            rank = check->step_rank[at];
            if (play->run[rank] < check->nruns && play->steps_left[rank] != NONE &&
                (tutti_check_step(check, at)->kind == TUTTI_STEP_WAIT) == (is_wait == 1) &&
                is_stuck(play, undone_half(play, at)))
                half = undone_half(play, at);
        }
    if (half == NONE)
        return tutti_check_fail(check, 0, NONE, "deadlock between runs");
    TUTTI_TRY(tell_cycle(play, half, &text));
    if (play->credits == 0)
        snprintf(credits, sizeof(credits), "no credits");
    else if (play->credits != UINT32_MAX)
        snprintf(credits, sizeof(credits), "%u credits", play->credits);
    rank = check->step_rank[half / 2];
    return tutti_check_fail(check, rank, half / 2, "deadlock in run %u with %s: %s",
                            play->run[rank], credits, cycle);
}

/* ---- how many credits are enough --------------------------------------------------- */

/* Play with this many credits. If the play stops although it must not, report a deadlock. */
static int try(struct tutti_check *check, uint32_t credits, bool may_stop, bool *ret_is_over)
{
    struct tutti_check_play play = {.check = check, .credits = credits};
    int rc = tutti_check_play_all(&play);

    if (rc == TUTTI_OK) {
        *ret_is_over = tutti_check_play_is_over(&play);
        if (!*ret_is_over && !may_stop)
            rc = report_deadlock(&play);
    }
    tutti_check_play_fini(&play);
    return rc;
}

/* Messages of the longest lane; more credits than these change nothing. */
static uint32_t longest_lane(const struct tutti_check *check)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < check->nlanes; i++) {
        uint32_t length = 0;

        for (uint32_t half = check->lane_sends[i]; half != NONE; half = check->lane_after[half])
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

int tutti_check_credits(struct tutti_check *check)
{
    /* The most credits with which a play is known to stop; the least with which it ends. */
    uint32_t stops = 0, ends = check->options.credits, longest;
    bool is_over;

    check->nruns = check->is_shared ? TUTTI_CHECK_SHARED_RUNS : 1;
    TUTTI_TRY(tutti_check_alloc(&check->log, tutti_check_nodes(check), sizeof(uint32_t), 0));
    TUTTI_TRY(try(check, 0, ends > 0, &is_over));
    if (is_over)
        return TUTTI_OK;

    TUTTI_TRY(try(check, ends, false, &is_over));
    longest = longest_lane(check);
    ends = ends < longest ? ends : longest;
    while (ends - stops > 1) {
        uint32_t middle = stops + (ends - stops) / 2;

        TUTTI_TRY(try(check, middle, true, &is_over));
        if (is_over)
            ends = middle;
        else
            stops = middle;
    }
    check->report->credits = ends;
    /* Play again, because the log must come from a play that ended. */
    return try(check, ends, false, &is_over);
}
