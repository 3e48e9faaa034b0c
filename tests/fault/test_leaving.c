/* SPDX-License-Identifier: Apache-2.0
 * Ranks leave too early, in good time, and by tuttiCommAbort. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NRANKS = 3, LEAVER = 1 };
enum { MARK_GONE, MARK_WAITING };

static const struct crew_call small = {CREW_BARRIER, 0, tuttiInt8, tuttiSum, 0};

static void leave(struct crew_seat *seat)
{
    tuttiCommDestroy(seat->comm);
    seat->comm = NULL;
    crew_add(&seat->board->marks[MARK_GONE]);
}

/* ---- too early --------------------------------------------------------------------------- */

static tuttiResult_t leave_others_in_the_lurch(struct crew_seat *seat)
{
    const struct crew_call *call = seat->crew->context;
    tuttiResult_t result = crew_call(seat, &small);

    if (seat->rank == LEAVER) {
        leave(seat);
        return result;
    }
    while (result == tuttiSuccess)
        result = crew_call(seat, call);
    return result;
}

static void check_lurch(const struct crew *crew, const char *way, int kind, bool all_know)
{
    struct crew_board *board = crew_run(crew);
    int naming = 0;

    assert_int_equal(board->reports[LEAVER].result, tuttiSuccess);
    for (int rank = 0; rank < NRANKS; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (rank == LEAVER)
            continue;
        if (report->result != tuttiRemoteError)
            fail_msg("%s, %s: rank %d got %d: %s", way, crew_names[kind], rank,
                     (int)report->result, report->text);
        naming += strstr(report->text, "rank 1 ") != NULL;
    }
    if (naming < (all_know ? NRANKS - 1 : 1))
        fail_msg("%s, %s: 0: %s 2: %s", way, crew_names[kind], board->reports[0].text,
                 board->reports[2].text);
    crew_clear(board);
}

static void who_waits_for_a_rank_that_has_left_is_told(void **state)
{
    const struct crew_way *way = *state;

    for (int kind = 0; kind < CREW_KINDS; kind++) {
        struct crew_call call = {kind, 1000, tuttiInt32, tuttiSum, 0};

        check_lurch(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                   .timeout_ms = 600000, .run = leave_others_in_the_lurch,
                                   .context = &call},
                    way->name, kind, strcmp(way->name, "tcp") != 0);
    }
}

static void threads_that_wait_for_one_that_has_left_are_told(void **state)
{
    (void)state;
    for (int kind = 0; kind < CREW_KINDS; kind++) {
        struct crew_call call = {kind, 1000, tuttiInt32, tuttiSum, 0};

        check_lurch(&(struct crew){.nranks = NRANKS, .is_threads = true, .timeout_ms = 600000,
                                   .run = leave_others_in_the_lurch, .context = &call},
                    "threads", kind, true);
    }
}

/* ---- in good time -------------------------------------------------------------------------- */

/* Data that a rank gave before it left is received, however late its peers ask for it. */
static tuttiResult_t give_and_go(struct crew_seat *seat)
{
    int values[4] = {1, 2, 3, 4}, got[4] = {0}, sent[4] = {0};
    tuttiResult_t result = tuttiSuccess;

    /* There are two calls, so that all ranks are connected at the second. */
    for (int turn = 0; turn < 2 && result == tuttiSuccess; turn++) {
        if (turn == 1 && seat->rank != LEAVER && !crew_await(&seat->board->marks[MARK_GONE], 1))
            return tuttiTimeout;
        result = tuttiBroadcast(values, got, 4, tuttiInt32, LEAVER, seat->comm, NULL);
        if (result == tuttiSuccess && seat->rank == LEAVER)
            result = tuttiSend(values, 4, tuttiInt32, 0, seat->comm, NULL);
        if (result == tuttiSuccess && seat->rank == 0)
            result = tuttiRecv(sent, 4, tuttiInt32, LEAVER, seat->comm, NULL);
        if (result == tuttiSuccess && got[3] != 4)
            return tuttiInternalError;
        if (result == tuttiSuccess && seat->rank == 0 && sent[3] != 4)
            return tuttiInternalError;
    }
    if (seat->rank == LEAVER)
        leave(seat);
    return result;
}

static void what_a_rank_gave_before_it_left_is_received(void **state)
{
    const struct crew_way *way = *state;
    struct crew_board *board =
        crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                .timeout_ms = 600000, .run = give_and_go});

    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("%s: rank %d got %d: %s", way->name, rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

/* ---- aborting -------------------------------------------------------------------------------- */

static void *abort_it(void *argument)
{
    struct crew_seat *seat = argument;

    if (crew_await(&seat->board->marks[MARK_WAITING], NRANKS - 1))
        tuttiCommAbort(seat->comm);
    return NULL;
}

/* All but one rank wait in the collective; a thread of one of those ends it for all. */
static tuttiResult_t abort_while_waiting(struct crew_seat *seat)
{
    const struct crew_call *call = seat->crew->context;
    tuttiResult_t result = crew_call(seat, &small), state = tuttiSuccess;
    pthread_t thread;

    if (result != tuttiSuccess)
        return result;
    if (seat->rank == NRANKS - 1) {
        do
            result = tuttiCommGetAsyncError(seat->comm, &state);
        while (result == tuttiSuccess && state == tuttiSuccess &&
               crew_load(&seat->board->marks[MARK_GONE]) < NRANKS - 1);
        /* By TCP the first of them may still find all it needs. */
        do
            result = crew_call(seat, call);
        while (result == tuttiSuccess);
        return result;
    }
    if (seat->rank == 0)
        pthread_create(&thread, NULL, abort_it, seat);
    crew_add(&seat->board->marks[MARK_WAITING]);
    while (result == tuttiSuccess)
        result = crew_call(seat, call);
    if (seat->rank == 0)
        pthread_join(thread, NULL);
    crew_add(&seat->board->marks[MARK_GONE]);
    return result;
}

static void an_abort_ends_the_wait_of_all(void **state)
{
    const struct crew_way *way = *state;

    for (int kind = 0; kind < CREW_KINDS; kind++) {
        struct crew_call call = {kind, 1000, tuttiInt32, tuttiSum, 0};
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                    .timeout_ms = 600000, .run = abort_while_waiting,
                                    .context = &call});

        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiInvalidUsage &&
                board->reports[rank].result != tuttiRemoteError)
                fail_msg("%s, %s: rank %d got %d: %s", way->name, crew_names[kind], rank,
                         (int)board->reports[rank].result, board->reports[rank].text);
        assert_non_null(strstr(board->reports[0].text, "tuttiCommAbort"));
        crew_clear(board);
    }
}

int main(void)
{
    struct CMUnitTest tests[32];
    size_t count = 0;

    tests[count++] = (struct CMUnitTest)cmocka_unit_test(
        threads_that_wait_for_one_that_has_left_are_told);
    for (int i = 0; i < crew_way_count; i++) {
        void *way = (void *)(uintptr_t)&crew_ways[i];

        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            who_waits_for_a_rank_that_has_left_is_told, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            what_a_rank_gave_before_it_left_is_received, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            an_abort_ends_the_wait_of_all, way);
    }
    return _cmocka_run_group_tests("ranks that leave", tests, count, NULL, NULL);
}
