/* SPDX-License-Identifier: Apache-2.0
 * Tests credits: the number that a schedule needs, its proof with that number, and the circle of
 * waits if no number is enough. */
#include "handwritten.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Both send first and receive into what they send. */
static void exchange_in_place(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_send(build, 1 - rank, output(0, 1)));
    MUST(tutti_build_recv_reduce(build, 1 - rank, output(0, 1), output(0, 1)));
}

/* The first receive overwrites what the third send sends. */
static void three_ahead(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 3);
    MUST(tutti_build_copy(build, input(0, 1), scratch(2, 1)));
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_send(build, 1 - rank, scratch(2, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(2, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(1, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_reduce(build, scratch(1, 1), output(0, 1)));
}

/* As many as there are: nothing is received before all is sent. */
static void nine_ahead(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    for (uint32_t i = 0; i < 9; i++) {
        if (i == 8)
            MUST(tutti_build_copy(build, input(0, 1), scratch(0, 1)));
        MUST(tutti_build_send(build, 1 - rank, i == 8 ? scratch(0, 1) : input(0, 1)));
    }
    for (uint32_t i = 0; i < 9; i++)
        MUST(tutti_build_recv(build, 1 - rank, scratch(0, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_reduce(build, scratch(0, 1), output(0, 1)));
}

/* Each sends on what it is still to receive. */
static void after_you(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_recv(build, (rank + 2) % 3, output(0, 1)));
    MUST(tutti_build_send(build, (rank + 1) % 3, output(0, 1)));
}

/* Each waits for the other's signal before the send that the other waits for. */
static void signal_and_message(struct tutti_build *build, uint32_t rank)
{
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 2);
    if (rank == 0) {
        MUST(tutti_build_wait(build, 1, 1));
        MUST(tutti_build_send(build, 1, scratch(0, 1)));
        MUST(tutti_build_signal(build));
    } else {
        MUST(tutti_build_recv(build, 0, scratch(1, 1)));
        MUST(tutti_build_signal(build));
    }
}

struct need {
    struct row row;
    uint32_t credits;
};

static const struct need needs[] = {
    {{"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0}, 0},
    {{"ring", ring_allgather, TUTTI_ALLGATHER, 4, true, NULL, 0, 0}, 0},
    {{"windows", window_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0}, 0},
    {{"exchange in place", exchange_in_place, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0}, 1},
    {{"three ahead", three_ahead, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0}, 3},
    {{"nine ahead", nine_ahead, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0}, 9},
};

static int prove_with(const struct row *row, struct tutti_schedule *const *schedules,
                      uint32_t credits, struct tutti_check_report *ret_report)
{
    const struct tutti_check_options options = {.credits = credits, .is_vector = row->is_vector};

    return tutti_check_prove((const struct tutti_schedule *const *)schedules, row->nranks, &options,
                             ret_report);
}

static void the_least_number_of_credits_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        const struct need *need = &needs[i];
        struct tutti_schedule *schedules[MOST_RANKS];
        struct tutti_check_report why;
        uint32_t least = 77;

        build_all(&need->row, schedules);
        MUST(tutti_check_credits_needed((const struct tutti_schedule *const *)schedules,
                                        need->row.nranks, &least, &why));
        if (least != need->credits)
            fail_msg("%s: %u credits, not %u", need->row.name, least, need->credits);
        destroy_all(&need->row, schedules);
    }
}

static void a_schedule_is_right_with_its_credits_and_more_and_stuck_with_fewer(void **state)
{
    static const uint32_t more[] = {0, 1, 5, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        const struct need *need = &needs[i];
        struct tutti_schedule *schedules[MOST_RANKS];
        struct tutti_check_report why;

        build_all(&need->row, schedules);
        for (size_t m = 0; m < sizeof(more) / sizeof(more[0]); m++) {
            uint32_t credits = more[m] == UINT32_MAX ? UINT32_MAX : need->credits + more[m];
            int rc = prove_with(&need->row, schedules, credits, &why);

            if (rc != TUTTI_OK)
                fail_msg("%s with %u credits: rank %u step %d: %s", need->row.name, credits,
                         why.rank, (int)why.step, why.what);
            assert_int_equal(why.credits, need->credits);
        }
        for (uint32_t credits = 0; credits < need->credits; credits++) {
            assert_int_equal(prove_with(&need->row, schedules, credits, &why),
                             TUTTI_ERR_ARGUMENT);
            assert_non_null(strstr(why.what, "deadlock"));
        }
        destroy_all(&need->row, schedules);
    }
}

/* A proof with credits also holds with more credits, because a full lane orders nothing. The
 * receive of the first message overwrites data that is sent on, and only a full lane would hold the
 * second message back. */
static void credits_order_nothing(void **state)
{
    const struct row row = {"three ahead", three_ahead, TUTTI_ALLREDUCE, 2, true, "race", 1, 4};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    assert_int_equal(schedules[1]->steps[4].dep_count, 1);
    schedules[1]->steps[4].dep_count = 0;
    assert_int_equal(prove_with(&row, schedules, 3, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    assert_int_equal(why.rank, row.rank);
    assert_int_equal(why.step, row.step);
    destroy_all(&row, schedules);
}

static void told(const struct row *row, const char *what)
{
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;
    uint32_t least = 77;

    build_all(row, schedules);
    assert_int_equal(tutti_check_credits_needed((const struct tutti_schedule *const *)schedules,
                                                row->nranks, &least, &why), TUTTI_ERR_ARGUMENT);
    assert_int_equal(least, 77);
    assert_string_equal(why.what, what);
    assert_int_equal(why.rank, row->rank);
    assert_int_equal(why.step, row->step);
    destroy_all(row, schedules);
}

static void where_none_is_enough_the_circle_is_told(void **state)
{
    const struct row ring = {"after you", after_you, TUTTI_BROADCAST, 3, true, NULL, 0, 0};
    const struct row mixed = {"signal and message", signal_and_message, TUTTI_BARRIER, 2, true,
                              NULL, 0, 0};

    (void)state;
    told(&ring, "deadlock in run 0 with unlimited credits: rank 0 step 0 (recv from 2) waits for "
                "rank 2 step 1 (send to 0), which waits for rank 2 step 0 (recv from 1), which "
                "waits for rank 1 step 1 (send to 2), which waits for rank 1 step 0 (recv from 0), "
                "which waits for rank 0 step 1 (send to 1), which waits for rank 0 step 0 (recv "
                "from 2)");
    told(&mixed, "deadlock in run 0 with unlimited credits: rank 0 step 0 (wait from 1) waits for "
                 "rank 1 step 1 (signal), which waits for rank 1 step 0 (recv from 0), which "
                 "waits for rank 0 step 1 (send to 1), which waits for rank 0 step 0 (wait from "
                 "1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_number_of_credits_is_found),
        cmocka_unit_test(a_schedule_is_right_with_its_credits_and_more_and_stuck_with_fewer),
        cmocka_unit_test(credits_order_nothing),
        cmocka_unit_test(where_none_is_enough_the_circle_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
