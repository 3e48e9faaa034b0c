/* SPDX-License-Identifier: Apache-2.0
 * Runs the suites of collectives on device memory: test_gpu_collectives SUITE LAUNCH GPUS RANKS
 * [THIRD]. There is one test per number of ranks, as in "2-4". The suite "acts" is one small trial
 * of everything. With a last argument that third of the ranks, 0 to 2, is on the CPU. */
#include "api/suites.h"
#include "support/gpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_TESTS = 16, NAME_BYTES = 120 };

struct run {
    const struct suite *suite;
    enum launch launch;
    int nranks;
    char name[NAME_BYTES];
};

static const int any_number[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 0};
static const struct suite acts = {"acts", any_number, suite_every_act};

static void play(struct member *member)
{
    const struct suite *suite = member->context;

    suite->run(member);
}

static void every_trial_gives_what_the_header_promises(void **state)
{
    const struct run *one = *state;

    world_run(one->launch, one->nranks, play, (void *)(uintptr_t)one->suite);
}

int main(int count, char **arguments)
{
    static struct CMUnitTest tests[MOST_TESTS];
    static struct run runs[MOST_TESTS];
    const struct suite *suite = count < 5                            ? NULL
                                : strcmp(arguments[1], acts.name) == 0 ? &acts
                                                                       : suite_find(arguments[1]);
    int least, most;
    size_t total = 0;

    if (suite == NULL || launch_find(arguments[2]) < 0 ||
        sscanf(arguments[4], "%d-%d", &least, &most) != 2) {
        fprintf(stderr, "usage: %s SUITE LAUNCH GPUS LEAST-MOST [THIRD]\n", arguments[0]);
        return 2;
    }
    gpus_use(atoi(arguments[3]), count > 5 ? atoi(arguments[5]) : -1, GPU_MEMORY_EITHER);
    for (const int *ranks = suite->ranks; *ranks != 0; ranks++) {
        struct run *one = &runs[total];

        if (*ranks < least || *ranks > most)
            continue;
        *one = (struct run){.suite = suite, .nranks = *ranks,
                            .launch = (enum launch)launch_find(arguments[2])};
        snprintf(one->name, NAME_BYTES, "%s: %s on %s GPUs, %d ranks", arguments[1], arguments[2],
                 arguments[3], *ranks);
        tests[total++] = (struct CMUnitTest){
            one->name, every_trial_gives_what_the_header_promises, NULL, NULL, one};
    }
    return _cmocka_run_group_tests("gpu collectives", tests, total, NULL, NULL);
}
