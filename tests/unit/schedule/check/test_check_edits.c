/* SPDX-License-Identifier: Apache-2.0
 * Runs the checker on right schedules after a change in them. */
#include "handwritten.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_lost_dependency_is_a_race(void **state)
{
    const struct row row = {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, "race", 1, 3};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    assert_int_equal(schedules[1]->steps[3].dep_count, 1);
    schedules[1]->steps[3].dep_count = 0;
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    assert_int_equal(why.rank, row.rank);
    assert_int_equal(why.step, row.step);
    destroy_all(&row, schedules);
}

static void a_dependency_on_a_later_step_is_refused(void **state)
{
    const struct row row = {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, "not before", 1, 3};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    schedules[1]->deps[schedules[1]->steps[3].dep_first] = 3;
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    assert_int_equal(why.step, row.step);
    destroy_all(&row, schedules);
}

static void ring_reduce_scatter(struct tutti_build *build, uint32_t rank)
{
    uint32_t next = (rank + 1) % 3, before = (rank + 2) % 3;

    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 3);
    MUST(tutti_build_send(build, next, input(before, 1)));
    MUST(tutti_build_recv_reduce(build, before, input(next, 1), scratch(next, 1)));
    MUST(tutti_build_send(build, next, scratch(next, 1)));
    MUST(tutti_build_recv_reduce(build, before, input(rank, 1), output(0, 1)));
}

/* Each would take a slice from the one before only when the next has taken one from it. */
static void a_ring_that_stores_nothing_waits_for_itself(void **state)
{
    const struct row row = {"ring", ring_reduce_scatter, TUTTI_REDUCE_SCATTER, 3, true, "deadlock",
                            0, 0};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;
    uint32_t least = 0;

    (void)state;
    build_all(&row, schedules);
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_OK);
    for (uint32_t rank = 0; rank < row.nranks; rank++) {
        MUST(tutti_schedule_fuse(schedules[rank], false));
        assert_int_equal(schedules[rank]->steps[1].kind, TUTTI_STEP_RECV_REDUCE_COPY_SEND);
    }
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_OK);
    for (uint32_t rank = 0; rank < row.nranks; rank++) {
        schedules[rank]->steps[1].kind = TUTTI_STEP_RECV_REDUCE_SEND;
        schedules[rank]->steps[1].dst = TUTTI_NO_SPAN;
    }
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    /* The slice that each holds back keeps the message before it in its lane. */
    MUST(tutti_check_credits_needed((const struct tutti_schedule *const *)schedules, row.nranks,
                                    &least, &why));
    assert_int_equal(least, 2);
    destroy_all(&row, schedules);
}

/* Schedules may come from files: whatever they name is refused, not followed. */
static void numbers_out_of_range_are_refused(void **state)
{
    const struct row row = {"ring", ring_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0};

    (void)state;
    for (int edit = 0; edit < 13; edit++) {
        struct tutti_schedule *schedules[MOST_RANKS];
        struct tutti_check_report why;
        struct tutti_step *step;

        build_all(&row, schedules);
        step = &schedules[1]->steps[1]; /* a send */
        switch (edit) {
        case 0: step->kind = TUTTI_STEP_KIND_COUNT; break;
        case 1: step->to = 3; break;
        case 2: step->to = TUTTI_ALL_RANKS; break;
        case 3: step->src.buffer = 77; break;
        case 4: step->src.first = UINT32_MAX; break;
        case 5: step->src.count = 0; break;
        case 6: step->channel = 1; break;
        case 7: step->dep_first = UINT32_MAX; step->dep_count = 2; break;
        case 8: schedules[1]->root = 2; break;
        case 9: schedules[1]->scratch_chunks = UINT32_MAX; break;
        default:
            for (uint32_t rank = 0; rank < row.nranks; rank++) {
                if (edit == 10)
                    schedules[rank]->chunks_per_block = UINT32_MAX / 2;
                if (edit == 11)
                    schedules[rank]->nsignals = UINT32_MAX;
                if (edit == 12)
                    schedules[rank]->window_chunks = UINT32_MAX;
                schedules[rank]->needs = TUTTI_NEEDS_WINDOW;
            }
        }
        assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
        assert_int_equal(why.rank, edit <= 8 ? 1 : 0);
        assert_int_equal(why.step, edit >= 8 ? ANY : 1);
        destroy_all(&row, schedules);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_dependency_is_a_race),
        cmocka_unit_test(a_dependency_on_a_later_step_is_refused),
        cmocka_unit_test(a_ring_that_stores_nothing_waits_for_itself),
        cmocka_unit_test(numbers_out_of_range_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
