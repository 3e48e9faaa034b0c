/* SPDX-License-Identifier: Apache-2.0
 * Ranks are alive and do nothing. The deadline of the operation ends the wait for them. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NRANKS = 3, STOPPED = 2, TIMEOUT_MS = 250 };

static tuttiResult_t call_for_ever(struct crew_seat *seat)
{
    const struct crew_call *call = seat->crew->context;
    tuttiResult_t result;

    do {
        result = crew_call(seat, call);
        crew_add(&seat->board->steps[seat->rank]);
    } while (result == tuttiSuccess);
    if (seat->rank != STOPPED)
        crew_add(&seat->board->marks[0]);
    return result;
}

static void stop_one_until_the_others_gave_up(const struct crew *crew, struct crew_board *board,
                                              const pid_t *pids)
{
    (void)crew;
    assert_true(crew_await(&board->steps[STOPPED], 3));
    kill(pids[STOPPED], SIGSTOP);
    crew_await(&board->marks[0], NRANKS - 1);
    kill(pids[STOPPED], SIGCONT);
}

static void a_stopped_rank_is_named_at_the_deadline(void **state)
{
    static const int kinds[] = {CREW_ALLREDUCE, CREW_ALLTOALL, CREW_BARRIER, CREW_SENDRECV};
    const struct crew_way *way = *state;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct crew_call call = {kinds[i], 1000, tuttiInt32, tuttiSum, 0};
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                    .timeout_ms = TIMEOUT_MS, .run = call_for_ever,
                                    .meddle = stop_one_until_the_others_gave_up, .context = &call});
        const char *name = kinds[i] == CREW_SENDRECV ? "rank" : crew_names[kinds[i]];
        bool has_timed_out = false, is_named = false;

        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *report = &board->reports[rank];

            if (report->result != tuttiTimeout && report->result != tuttiRemoteError)
                fail_msg("%s, %s: rank %d got %d: %s", way->name, crew_names[kinds[i]], rank,
                         (int)report->result, report->text);
            has_timed_out |= rank != STOPPED && report->result == tuttiTimeout;
            is_named |= rank != STOPPED && strstr(report->text, "for rank 2") != NULL &&
                        strstr(report->text, name) != NULL;
        }
        if (!has_timed_out || !is_named)
            fail_msg("%s, %s: 0: %s 1: %s", way->name, crew_names[kinds[i]],
                     board->reports[0].text, board->reports[1].text);
        crew_clear(board);
    }
}

/* Everybody waits for a rank that never calls: the same deadline on each of them. */
static tuttiResult_t wait_for_one(struct crew_seat *seat)
{
    const struct crew_call *call = seat->crew->context;
    tuttiResult_t state = tuttiSuccess;

    if (seat->rank != STOPPED) {
        tuttiResult_t result = crew_call(seat, call);

        crew_add(&seat->board->marks[0]);
        return result;
    }
    if (!crew_await(&seat->board->marks[0], NRANKS - 1))
        return tuttiInternalError;
    tuttiCommGetAsyncError(seat->comm, &state);
    return crew_call(seat, call);
}

static void a_rank_that_never_calls_is_named_at_the_deadline(void **state)
{
    const struct crew_way *way = *state;
    struct crew_call call = {CREW_ALLREDUCE, 10, tuttiInt32, tuttiSum, 0};
    struct crew_board *board =
        crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                .timeout_ms = TIMEOUT_MS, .run = wait_for_one, .context = &call});
    bool is_named = false;

    for (int rank = 0; rank < NRANKS; rank++) {
        if (board->reports[rank].result != tuttiTimeout &&
            board->reports[rank].result != tuttiRemoteError)
            fail_msg("%s: rank %d got %d: %s", way->name, rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
        is_named |= rank != STOPPED && strstr(board->reports[rank].text, "rank 2") != NULL &&
                    strstr(board->reports[rank].text, "allreduce") != NULL;
    }
    if (!is_named)
        fail_msg("%s: 0: %s 1: %s", way->name, board->reports[0].text, board->reports[1].text);
    crew_clear(board);
}

int main(void)
{
    struct CMUnitTest tests[16];
    size_t count = 0;

    for (int i = 0; i < crew_way_count; i++) {
        void *way = (void *)(uintptr_t)&crew_ways[i];

        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            a_stopped_rank_is_named_at_the_deadline, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            a_rank_that_never_calls_is_named_at_the_deadline, way);
    }
    return _cmocka_run_group_tests("ranks that stall", tests, count, NULL, NULL);
}
