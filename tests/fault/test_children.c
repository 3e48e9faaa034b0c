/* SPDX-License-Identifier: Apache-2.0
 * A rank makes a child, such as a loader of data, and dies. The child lives on, and the death is
 * noticed nevertheless. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NRANKS = 3, VICTIM = 1, CHILD_MARK = 0 };

static tuttiResult_t call_for_ever(struct crew_seat *seat)
{
    const struct crew_call *call = seat->crew->context;
    tuttiResult_t result;

    do {
        result = crew_call(seat, call);
        if (seat->rank == VICTIM && seat->board->steps[VICTIM] == 0) {
            pid_t child = fork();

            if (child == 0) {
                alarm(120); /* should the test not end it */
                for (;;)
                    pause();
            }
            __atomic_store_n(&seat->board->marks[CHILD_MARK], (uint32_t)child, __ATOMIC_RELEASE);
        }
        crew_add(&seat->board->steps[seat->rank]);
    } while (result == tuttiSuccess);
    return result;
}

static void kill_the_parent(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew;
    assert_true(crew_await(&board->steps[VICTIM], 5));
    kill(pids[VICTIM], SIGKILL);
}

static void the_death_of_a_rank_with_a_child_is_noticed(void **state)
{
    const struct crew_way *way = *state;
    struct crew_call call = {CREW_ALLREDUCE, 1000, tuttiFloat32, tuttiSum, 0};
    struct crew_board *board =
        crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                .timeout_ms = 600000, .run = call_for_ever,
                                .meddle = kill_the_parent, .context = &call});
    pid_t child = (pid_t)board->marks[CHILD_MARK];

    assert_true(child > 0);
    assert_int_equal(kill(child, SIGKILL), 0); /* it has lived until now */
    for (int rank = 0; rank < NRANKS; rank++)
        if (rank != VICTIM && (board->reports[rank].result != tuttiRemoteError ||
                               strstr(board->reports[rank].text, "rank 1") == NULL))
            fail_msg("%s: rank %d got %d: %s", way->name, rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

int main(void)
{
    struct CMUnitTest tests[16];

    for (int i = 0; i < crew_way_count; i++)
        tests[i] = (struct CMUnitTest){.name = crew_ways[i].name,
                                       .test_func = the_death_of_a_rank_with_a_child_is_noticed,
                                       .initial_state = (void *)(uintptr_t)&crew_ways[i]};
    return _cmocka_run_group_tests("ranks with children", tests, (size_t)crew_way_count, NULL,
                                   NULL);
}
