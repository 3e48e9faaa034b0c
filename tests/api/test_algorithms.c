/* SPDX-License-Identifier: Apache-2.0
 * Runs every algorithm by name, through the API: test_algorithms LAUNCH TRANSPORTS WINDOW. Counts
 * are near the limits at which a call is divided: slots, window halves, staging. */
#include "algorithms/algorithm.h"
#include "support/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_TESTS = 256, NAME_BYTES = 100, STAGE_BYTES = 16 << 20 };

static struct {
    enum launch launch;
    const char *transports;
    size_t window_bytes;
} setting;

struct subject {
    const struct tutti_algorithm *algorithm;
    char name[NAME_BYTES];
    char variable[NAME_BYTES];
};

static void run(struct member *member, struct trial trial)
{
    for (int way = 0; way < 2; way++) {
        if (member_is_unhappy(member)) {
            tuttiCommAbort(member->comm);
            return;
        }
        trial.in_place = way == 1 && act_can_be_in_place(trial.act);
        trial_run(member, &trial);
    }
}

static void run_act(struct member *member, enum act act)
{
    size_t p = (size_t)member->nranks, half = setting.window_bytes / 2 / sizeof(int32_t);
    size_t slot = half / p;
    const size_t counts[] = {1, p + 1, slot - 1, slot, slot + 1, half - 1, half, half + 1,
                             2 * half + slot + 3};
    struct trial trial = {.act = act, .counts = COUNTS_ONE_BIG, .places = PLACES_GAPS};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        /* The default window's borders cost too much where every rank has a block per rank. */
        if (counts[i] > half && half > 4096 && p > 3)
            continue;
        trial.count = counts[i];
        trial.root = act_has_root(act) ? (int)((i + 1) % p) : 0;
        trial.type = tuttiInt32;
        trial.op = tuttiSum;
        run(member, trial);
        trial.type = i % 2 ? tuttiBfloat16 : tuttiFloat64;
        trial.op = act_op(act, trial.type, i);
        if (act_reduces(act))
            run(member, trial);
    }
}

/* Narrow types are staged as float32 if messages carry them, so one more element fits. Calls that
 * are not staged run whole, with algorithms that need no memory of the library. */
static void run_past_the_stage(struct member *member, enum act act)
{
    size_t blocks = act == REDUCE_SCATTER ? (size_t)member->nranks : 1;

    run(member, (struct trial){.act = act, .type = tuttiFloat32, .op = tuttiSum,
                               .count = STAGE_BYTES / sizeof(float) / blocks + 1});
    run(member, (struct trial){.act = act, .type = tuttiFloat16,
                               .op = act_has_op(act, tuttiAvg) ? tuttiAvg : tuttiMax,
                               .count = STAGE_BYTES / sizeof(float) / blocks + 1});
}

static void play(struct member *member)
{
    const struct tutti_algorithm *algorithm = ((const struct subject *)member->context)->algorithm;
    const char *collective = tutti_collective_name(algorithm->collective);
    enum act act = act_find(collective, false), vector_act = act_find(collective, true);

    EXPECT(member, act != ACT_COUNT);
    run_act(member, act);
    if (algorithm->serves_vector && vector_act != ACT_COUNT)
        run_act(member, vector_act);
    if (member->nranks == 2 && algorithm->needs == 0 && setting.window_bytes > 8192)
        if (act_reduces(act))
            run_past_the_stage(member, act);
}

static void an_algorithm_called_by_name_is_right_around_every_border(void **state)
{
    static const int ranks[] = {2, 3, 4, 5, 8};
    struct subject *subject = *state;

    setenv("TUTTI_ALGORITHM", subject->variable, 1);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        world_run(setting.launch, ranks[i], play, subject);
}

/* Cells of one rank and of several, of neighbors and not. */
static void by_cells_an_algorithm_is_right_around_every_border(void **state)
{
    static const struct {
        int nranks;
        const char *cells;
    } cases[] = {{3, "0,0,1"}, {4, "0,1"}, {4, "0,0,1,1"}, {5, "1,1,1,0,0"}, {8, "0,1,2,0,1"}};
    struct subject *subject = *state;

    setenv("TUTTI_ALGORITHM", subject->variable, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("TUTTI_CELLS", cases[i].cells, 1);
        world_run(setting.launch, cases[i].nranks, play, subject);
    }
    unsetenv("TUTTI_CELLS");
}

/* If the launch and the transports can never serve the algorithm, another one would silently
 * run. */
static bool can_run(const struct tutti_algorithm *algorithm)
{
    bool is_one_host = strstr(setting.transports, "tcp") == NULL;
    bool can_read = is_one_host && (strcmp(setting.transports, "all") == 0 ||
                                    strstr(setting.transports, "cma") != NULL);

    if (algorithm->needs & TUTTI_NEEDS_PEER_STORE)
        return can_read && setting.launch == LAUNCH_THREADS;
    if (algorithm->needs & TUTTI_NEEDS_PEER_READ)
        return can_read;
    return is_one_host || algorithm->needs == 0;
}

int main(int count, char **arguments)
{
    static struct CMUnitTest tests[MOST_TESTS];
    static struct subject subjects[MOST_TESTS];
    size_t total = 0;

    if (count != 4 || launch_find(arguments[1]) < 0) {
        fprintf(stderr, "usage: %s LAUNCH TRANSPORTS WINDOW\n", arguments[0]);
        return 2;
    }
    setting.launch = (enum launch)launch_find(arguments[1]);
    setting.transports = arguments[2];
    setting.window_bytes = strtoul(arguments[3], NULL, 10);
    if (strcmp(setting.transports, "all") != 0)
        setenv("TUTTI_TRANSPORTS", setting.transports, 1);
    setenv("TUTTI_WINDOW_BYTES", arguments[3], 1);

    if (tutti_algorithm_count() > MOST_TESTS) {
        fprintf(stderr, "%zu algorithms: MOST_TESTS is too small\n", tutti_algorithm_count());
        return 2;
    }
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        struct subject *subject = &subjects[total];

        subject->algorithm = tutti_algorithm(i);
        if (!can_run(subject->algorithm))
            continue;
        snprintf(subject->variable, NAME_BYTES, "%s:%s",
                 tutti_collective_name(subject->algorithm->collective), subject->algorithm->name);
        snprintf(subject->name, NAME_BYTES, "%s:%s over %s %s, window %s",
                 tutti_collective_name(subject->algorithm->collective), subject->algorithm->name,
                 arguments[1], arguments[2], arguments[3]);
        tests[total++] =
            (struct CMUnitTest){subject->name,
                                an_algorithm_called_by_name_is_right_around_every_border, NULL,
                                NULL, subject};
        if (subject->algorithm->uses & TUTTI_USES_CELLS)
            tests[total - 1].test_func = by_cells_an_algorithm_is_right_around_every_border;
    }
    return _cmocka_run_group_tests("algorithms", tests, total, NULL, NULL);
}
