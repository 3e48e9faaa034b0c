/* SPDX-License-Identifier: Apache-2.0
 * Processes killed in the middle of every collective: those left are told who died. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NRANKS = 3 };

struct death {
    struct crew_call call;
    int victim;
    uint32_t after_steps;
    long after_us;
};

static tuttiResult_t call_for_ever(struct crew_seat *seat)
{
    const struct death *death = seat->crew->context;
    tuttiResult_t result;

    do {
        result = crew_call(seat, &death->call);
        crew_add(&seat->board->steps[seat->rank]);
    } while (result == tuttiSuccess);
    return result;
}

static void kill_victim(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    const struct death *death = crew->context;

    assert_true(crew_await(&board->steps[death->victim], death->after_steps));
    nanosleep(&(struct timespec){.tv_nsec = death->after_us * 1000}, NULL);
    kill(pids[death->victim], SIGKILL);
}

static void the_others_are_told_who_died(void **state)
{
    const struct crew_way *way = *state;
    unsigned seed = 20240607;

    for (int kind = 0; kind < CREW_KINDS; kind++) {
        struct death death = {.call = {.kind = kind, .count = rand_r(&seed) % 2 ? 50000 : 500,
                                       .type = tuttiFloat32, .root = rand_r(&seed) % NRANKS},
                              .victim = rand_r(&seed) % NRANKS,
                              .after_steps = 1 + (uint32_t)rand_r(&seed) % 20,
                              .after_us = rand_r(&seed) % 5000};
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                    .timeout_ms = 600000, .run = call_for_ever,
                                    .meddle = kill_victim, .context = &death});
        char named[16];
        int naming = 0;

        snprintf(named, sizeof named, "rank %d", death.victim);
        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *report = &board->reports[rank];

            if (rank == death.victim)
                continue;
            if (report->result != tuttiRemoteError)
                fail_msg("%s, %s, rank %d killed: rank %d got %d: %s", way->name, crew_names[kind],
                         death.victim, rank, (int)report->result, report->text);
            naming += strstr(report->text, named) != NULL;
        }
        /* By TCP a rank sees only that its neighbour hung up, who knows more. */
        if (naming < (strcmp(way->name, "tcp") == 0 ? 1 : NRANKS - 1))
            fail_msg("%s, %s, rank %d killed: %s / %s / %s", way->name, crew_names[kind],
                     death.victim, board->reports[0].text, board->reports[1].text,
                     board->reports[2].text);
        crew_clear(board);
    }
}

int main(void)
{
    struct CMUnitTest tests[16];

    for (int i = 0; i < crew_way_count; i++)
        tests[i] = (struct CMUnitTest){.name = crew_ways[i].name,
                                       .test_func = the_others_are_told_who_died,
                                       .initial_state = (void *)(uintptr_t)&crew_ways[i]};
    return _cmocka_run_group_tests("ranks that die", tests, (size_t)crew_way_count, NULL, NULL);
}
