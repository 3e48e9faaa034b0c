/* SPDX-License-Identifier: Apache-2.0
 * Over TCP as within a host, all ranks learn the reason of the first rank that gives up, with its
 * code. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 400 };

static const char *const tcp[] = {"TUTTI_TRANSPORTS", "tcp", NULL};
/* The last rank of 4 and more does as its neighbor does not. */
static const int sizes[] = {2, 4, 8};

static void expect_all(const struct crew_board *board, int nranks, int except,
                       tuttiResult_t result, const char *word)
{
    for (int rank = 0; rank < nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (rank != except &&
            (report->result != result || strstr(report->text, word) == NULL))
            fail_msg("rank %d of %d got %d: %s", rank, nranks, (int)report->result, report->text);
    }
}

/* ---- calls that do not fit together ----------------------------------------------------- */

static tuttiResult_t call_with_another_count(struct crew_seat *seat)
{
    struct crew_call call = {CREW_ALLREDUCE, 1000, tuttiFloat32, tuttiSum, 0};
    tuttiResult_t result = crew_call(seat, &call);

    if (result != tuttiSuccess)
        return result;
    call.count += seat->rank == seat->nranks - 1;
    do
        result = crew_call(seat, &call);
    while (result == tuttiSuccess);
    return result;
}

static void a_mismatch_is_a_usage_error_on_all_ranks_with_both_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = sizes[i], .environment = tcp, .timeout_ms = 60000,
                                    .run = call_with_another_count});

        expect_all(board, sizes[i], -1, tuttiInvalidUsage, "count 1001");
        expect_all(board, sizes[i], -1, tuttiInvalidUsage, "count 1000");
        crew_clear(board);
    }
}

/* ---- abort ------------------------------------------------------------------------------- */

static tuttiResult_t abort_or_call(struct crew_seat *seat)
{
    struct crew_call call = {CREW_ALLREDUCE, 1000, tuttiFloat32, tuttiSum, 0};
    tuttiResult_t result = crew_call(seat, &call);

    if (result == tuttiSuccess && seat->rank == seat->nranks - 1)
        tuttiCommAbort(seat->comm);
    while (result == tuttiSuccess)
        result = crew_call(seat, &call);
    return result;
}

static void an_abort_is_a_usage_error_on_all_ranks_that_names_its_rank(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = sizes[i], .environment = tcp, .timeout_ms = 60000,
                                    .run = abort_or_call});
        char word[64];

        snprintf(word, sizeof word, "rank %d called tuttiCommAbort", sizes[i] - 1);
        expect_all(board, sizes[i], -1, tuttiInvalidUsage, word);
        crew_clear(board);
    }
}

/* ---- deadlines ---------------------------------------------------------------------------- */

static tuttiResult_t call_for_ever(struct crew_seat *seat)
{
    struct crew_call call = {CREW_ALLREDUCE, 1000, tuttiFloat32, tuttiSum, 0};
    tuttiResult_t result;

    do {
        result = crew_call(seat, &call);
        crew_add(&seat->board->steps[seat->rank]);
    } while (result == tuttiSuccess);
    if (seat->rank != 0)
        crew_add(&seat->board->marks[0]);
    return result;
}

static void stop_rank_0(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    assert_true(crew_await(&board->steps[0], 3));
    kill(pids[0], SIGSTOP);
    crew_await(&board->marks[0], (uint32_t)crew->nranks - 1);
    kill(pids[0], SIGCONT);
}

static void at_the_deadline_all_time_out_and_say_who_was_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = sizes[i], .environment = tcp,
                                    .timeout_ms = TIMEOUT_MS, .run = call_for_ever,
                                    .meddle = stop_rank_0});

        expect_all(board, sizes[i], 0, tuttiTimeout, "waited");
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mismatch_is_a_usage_error_on_all_ranks_with_both_calls),
        cmocka_unit_test(an_abort_is_a_usage_error_on_all_ranks_that_names_its_rank),
        cmocka_unit_test(at_the_deadline_all_time_out_and_say_who_was_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
