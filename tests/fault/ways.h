/* SPDX-License-Identifier: Apache-2.0
 * Runs the tests of v-forms in every way in which ranks can be connected. */
#ifndef TUTTI_TESTS_WAYS_H
#define TUTTI_TESTS_WAYS_H

#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

/* Every way of crew_ways as processes; threads by what they choose themselves, and by sockets. */
struct way {
    const char *name;
    const char *const *environment;
    bool is_threads;
};

/* Runs a crew in that way. */
struct crew_board *ways_play(struct way way, int nranks, tuttiResult_t (*run)(struct crew_seat *),
                             const void *context);

/* The same for calls that succeed: the test fails if the run of any rank does not. */
void ways_play_well(struct way way, int nranks, tuttiResult_t (*run)(struct crew_seat *));

/* Runs each test once in each way. The test's *state is its struct way. Returns the number of tests
 * that failed. */
int ways_run(const char *name, const struct CMUnitTest *tests, size_t count);

#endif
