/* SPDX-License-Identifier: Apache-2.0
 * Kills processes in the middle of every collective. The survivors learn which rank died. */
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
        if (naming < NRANKS - 1)
            fail_msg("%s, %s, rank %d killed: %s / %s / %s", way->name, crew_names[kind],
                     death.victim, board->reports[0].text, board->reports[1].text,
                     board->reports[2].text);
        crew_clear(board);
    }
}

/* Few of them have a connection to the one that dies; those tell the others. */
static void all_of_many_ranks_name_the_one_that_died(void **state)
{
    static const char *const tcp[] = {"TUTTI_TRANSPORTS", "tcp", NULL};
    static const int sizes[] = {2, 4, 8};
    unsigned seed = 20240608;

    (void)state;
    for (int i = 0; i < 12; i++) {
        int nranks = sizes[i % 3];
        struct death death = {.call = {.kind = rand_r(&seed) % CREW_KINDS,
                                       .count = rand_r(&seed) % 2 ? 50000 : 500,
                                       .type = tuttiFloat32, .root = rand_r(&seed) % nranks},
                              .victim = rand_r(&seed) % nranks,
                              .after_steps = 1 + (uint32_t)rand_r(&seed) % 20,
                              .after_us = rand_r(&seed) % 5000};
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = nranks, .environment = tcp, .timeout_ms = 600000,
                                    .run = call_for_ever, .meddle = kill_victim,
                                    .context = &death});
        char named[64];

        snprintf(named, sizeof named, "rank %d ", death.victim);
        for (int rank = 0; rank < nranks; rank++) {
            const struct crew_report *report = &board->reports[rank];

            if (rank != death.victim && (report->result != tuttiRemoteError ||
                                         strstr(report->text, named) == NULL))
                fail_msg("%s, rank %d of %d killed: rank %d got %d: %s",
                         crew_names[death.call.kind], death.victim, nranks, rank,
                         (int)report->result, report->text);
        }
        crew_clear(board);
    }
}

int main(void)
{
    struct CMUnitTest tests[16];
    size_t count = (size_t)crew_way_count;

    for (int i = 0; i < crew_way_count; i++)
        tests[i] = (struct CMUnitTest){.name = crew_ways[i].name,
                                       .test_func = the_others_are_told_who_died,
                                       .initial_state = (void *)(uintptr_t)&crew_ways[i]};
    tests[count++] =
        (struct CMUnitTest)cmocka_unit_test(all_of_many_ranks_name_the_one_that_died);
    return _cmocka_run_group_tests("ranks that die", tests, count, NULL, NULL);
}
