/* SPDX-License-Identifier: Apache-2.0
 * Makes spot checks with thousands of ranks, as fused, exact and hashed.
 *
 *     test_many_ranks nranks [algorithm] */
#include "schedule/support.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint32_t nranks;
static const char *only;

/* Those that a cluster of that size would use, whose steps per rank grow with its logarithm; and
 * some whose steps grow with the ranks. */
static const struct {
    enum tutti_collective collective;
    const char *name;
    uint32_t most; /* ranks, beyond which it takes too long */
} rows[] = {
    {TUTTI_ALLREDUCE, "recursive_doubling", UINT32_MAX},
    {TUTTI_ALLREDUCE, "circulant", UINT32_MAX},
    {TUTTI_ALLREDUCE, "rabenseifner", UINT32_MAX},
    {TUTTI_ALLREDUCE, "double_tree", UINT32_MAX},
    {TUTTI_REDUCE_SCATTER, "circulant", UINT32_MAX},
    {TUTTI_REDUCE_SCATTER, "recursive_halving", UINT32_MAX},
    {TUTTI_ALLGATHER, "circulant", UINT32_MAX},
    {TUTTI_ALLGATHER, "recursive_doubling", UINT32_MAX},
    {TUTTI_ALLREDUCE, "hybrid", UINT32_MAX},
    {TUTTI_ALLREDUCE, "swing", 1024},
    {TUTTI_ALLREDUCE, "bucket", 1024},
    {TUTTI_REDUCE, "knomial", UINT32_MAX},
    {TUTTI_BROADCAST, "knomial", UINT32_MAX},
    {TUTTI_GATHER, "knomial", UINT32_MAX},
    {TUTTI_SCATTER, "knomial", UINT32_MAX},
    {TUTTI_BROADCAST, "scatter_allgather", UINT32_MAX},
    {TUTTI_BARRIER, "dissemination", UINT32_MAX},
    {TUTTI_SCAN, "doubling", UINT32_MAX},
    {TUTTI_EXCLUSIVE_SCAN, "doubling", UINT32_MAX},
    {TUTTI_ALLREDUCE, "mapped", 1024},
    {TUTTI_ALLREDUCE, "ring", 1024},
};

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check_form(const struct tutti_algorithm *algorithm, const struct team *team,
                       bool is_hashed, struct tutti_check_report *ret_report)
{
    double begin = seconds();
    int rc = team_check(team, algorithm->serves_vector, is_hashed, ret_report);

    print_message("%-14s %-20s %5u ranks, %-6s %6.2f s of processor time\n",
                  tutti_collective_name(algorithm->collective), algorithm->name, nranks,
                  is_hashed ? "hashed" : "exact", seconds() - begin);
    if (rc != TUTTI_OK)
        fail_msg("rank %u step %d: %s", ret_report->rank, (int)ret_report->step, ret_report->what);
}

static void algorithms_are_right_on_many_ranks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tutti_algorithm *algorithm =
            tutti_algorithm_find(rows[i].collective, rows[i].name);
        struct tutti_check_report exact, hashed;
        struct team team;

        if (algorithm == NULL)
            fail_msg("no %s %s", tutti_collective_name(rows[i].collective), rows[i].name);
        if (nranks > rows[i].most || (only != NULL && strcmp(only, rows[i].name) != 0))
            continue;
        team = team_create(algorithm, nranks, nranks / 3, true);
        check_form(algorithm, &team, false, &exact);
        check_form(algorithm, &team, true, &hashed);
        assert_int_equal(exact.credits, 0);
        assert_int_equal(exact.orders, hashed.orders);
        assert_int_equal(exact.order_hash, hashed.order_hash);
        assert_int_equal(exact.depth, hashed.depth);
        team_destroy(&team);
    }
}

/* A contribution that is lost, and one that comes twice, among so many. */
static void one_wrong_step_among_many_ranks_is_found(void **state)
{
    const struct tutti_algorithm *algorithm =
        tutti_algorithm_find(TUTTI_ALLREDUCE, "recursive_doubling");
    struct team team = team_create(algorithm, nranks, 0, true);
    struct tutti_schedule *schedule = team.schedules[nranks / 2 + 1];
    struct tutti_check_report why;
    struct tutti_step *step = schedule->steps;

    (void)state;
    while (step->kind != TUTTI_STEP_REDUCE && step->kind != TUTTI_STEP_RECV_REDUCE &&
           step + 1 < schedule->steps + schedule->nsteps)
        step++;
    assert_true(step->kind == TUTTI_STEP_REDUCE || step->kind == TUTTI_STEP_RECV_REDUCE);
    step->kind = step->kind == TUTTI_STEP_REDUCE ? TUTTI_STEP_COPY : TUTTI_STEP_RECV;
    for (int is_hashed = 0; is_hashed <= 1; is_hashed++)
        assert_int_equal(team_check(&team, true, is_hashed == 1, &why), TUTTI_ERR_ARGUMENT);
    team_destroy(&team);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_are_right_on_many_ranks),
        cmocka_unit_test(one_wrong_step_among_many_ranks_is_found),
    };

    nranks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1024;
    only = argc > 2 ? argv[2] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
