/* SPDX-License-Identifier: Apache-2.0
 * Sixty-four ranks run on one machine. Every call is right, and each rank reports its memory. */
#include "suites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

enum { RANKS = 64 };

static void play(struct member *member)
{
    tuttiMemStats_t stats = {.size = sizeof stats};

    suite_every_act(member);
    for (int act = 0; act < ACT_COUNT; act++) {
        struct trial trial = {.act = act, .type = tuttiInt32, .op = tuttiSum, .count = 2003,
                              .counts = COUNTS_ONE_BIG, .root = act_has_root(act) ? 63 : 0};

        if (member_is_unhappy(member)) {
            tuttiCommAbort(member->comm);
            return;
        }
        trial.in_place = act_can_be_in_place(act);
        trial_run(member, &trial);
    }
    EXPECT_OK(member, tuttiCommMemStats(member->comm, &stats));
    if (member->rank == 0 || member->rank == RANKS - 1)
        printf("rank %d of %d: %zu KiB private, %zu KiB shared of %zu KiB reserved, %d "
               "connections, %d sockets\n",
               member->rank, RANKS, stats.privateBytes >> 10, stats.sharedBytes >> 10,
               stats.sharedReservedBytes >> 10, stats.connections, stats.sockets);
}

static void sixty_four_processes_agree(void **state)
{
    (void)state;
    world_run(LAUNCH_PROCESSES, RANKS, play, NULL);
}

static void sixty_four_threads_agree(void **state)
{
    (void)state;
    world_run(LAUNCH_THREADS, RANKS, play, NULL);
}

static void sixty_four_ranks_of_two_processes_agree(void **state)
{
    (void)state;
    world_run(LAUNCH_MIXED, RANKS, play, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixty_four_processes_agree),
        cmocka_unit_test(sixty_four_threads_agree),
        cmocka_unit_test(sixty_four_ranks_of_two_processes_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
