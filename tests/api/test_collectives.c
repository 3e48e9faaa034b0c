/* SPDX-License-Identifier: Apache-2.0
 * Runs one cell of the matrix: test_collectives SUITE LAUNCH TRANSPORTS FAMILY. There is one test
 * per number of ranks, which runs all trials of the suite over one communicator. With TRANSPORTS
 * "all" the library chooses the transport. */
#include "suites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_TESTS = 16, NAME_BYTES = 120 };

struct cell {
    const struct suite *suite;
    enum launch launch;
    bool is_tcp;
};

struct run {
    const struct cell *cell;
    int nranks;
    char name[NAME_BYTES];
};

/* The transports that were asked for are those that were used. */
static void check_connections(struct member *member, const struct cell *cell)
{
    tuttiMemStats_t stats = {.size = sizeof stats};

    if (!EXPECT_OK(member, tuttiCommMemStats(member->comm, &stats)))
        return;
    if (cell->is_tcp && member->nranks > 1)
        EXPECT(member, stats.sockets > 0);
    else
        EXPECT(member, stats.sockets == 0);
}

static void play(struct member *member)
{
    const struct cell *cell = member->context;

    cell->suite->run(member);
    if (!member_is_unhappy(member))
        check_connections(member, cell);
}

static void every_trial_gives_what_the_header_promises(void **state)
{
    const struct run *one = *state;

    world_run(one->cell->launch, one->nranks, play, (void *)(uintptr_t)one->cell);
}

int main(int count, char **arguments)
{
    static struct CMUnitTest tests[MOST_TESTS];
    static struct run runs[MOST_TESTS];
    static struct cell cell;
    size_t total = 0;

    if (count == 5)
        cell.suite = suite_find(arguments[1]);
    if (cell.suite == NULL || launch_find(arguments[2]) < 0) {
        fprintf(stderr, "usage: %s SUITE LAUNCH TRANSPORTS FAMILY\n", arguments[0]);
        return 2;
    }
    cell.launch = (enum launch)launch_find(arguments[2]);
    cell.is_tcp = strcmp(arguments[3], "self,tcp") == 0;
    if (strcmp(arguments[3], "all") != 0)
        setenv("TUTTI_TRANSPORTS", arguments[3], 1);
    setenv("TUTTI_SOCKET_FAMILY", arguments[4], 1);

    for (const int *ranks = cell.suite->ranks; *ranks != 0; ranks++) {
        struct run *one = &runs[total];

        one->cell = &cell;
        one->nranks = *ranks;
        snprintf(one->name, NAME_BYTES, "%s: %s over %s %s, %d ranks", arguments[1], arguments[2],
                 arguments[3], arguments[4], *ranks);
        tests[total++] = (struct CMUnitTest){
            one->name, every_trial_gives_what_the_header_promises, NULL, NULL, one};
    }
    return _cmocka_run_group_tests("collectives", tests, total, NULL, NULL);
}
