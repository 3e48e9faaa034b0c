/* SPDX-License-Identifier: Apache-2.0
 * Tests the table of algorithms: names, and the declarations of every schedule. */
#include "algorithms/algorithm.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names_are_unique_within_a_collective(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);

        assert_ptr_equal(tutti_algorithm_find(algorithm->collective, algorithm->name), algorithm);
    }
    assert_null(tutti_algorithm_find(TUTTI_ALLREDUCE, "no such"));
    assert_null(tutti_algorithm_find(TUTTI_BARRIER, "ring"));
    assert_null(tutti_algorithm(tutti_algorithm_count()));
}

static void every_algorithm_says_in_one_way_what_it_emits(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        int ways = (algorithm->emit != NULL) + (algorithm->moves != NULL) +
                   (algorithm->in_cells != NULL);

        if (ways != 1 || (algorithm->cost != NULL) == (algorithm->in_cells != NULL))
            fail_msg("%s %s", tutti_collective_name(algorithm->collective), algorithm->name);
    }
}

static void every_collective_runs_on_any_transport_and_vectors_do_too(void **state)
{
    (void)state;
    for (int collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++) {
        bool has_vector_form = tutti_collective_call((enum tutti_collective)collective, true) !=
                               TUTTI_NO_CALL;
        bool found = false, found_vector = false;

        for (size_t i = 0; i < tutti_algorithm_count(); i++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(i);

            if ((int)algorithm->collective != collective || algorithm->needs != 0)
                continue;
            found = true;
            found_vector = found_vector || algorithm->serves_vector;
        }
        if (!found || found_vector != has_vector_form)
            fail_msg("%s", tutti_collective_name((enum tutti_collective)collective));
    }
}

static void alone_a_rank_only_copies(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        uint32_t blocks = tutti_collective_has_output(algorithm->collective, 0, 0)
                              ? tutti_output_blocks(algorithm->collective, 1) : 0;
        struct tutti_shape shape = {.nranks = 1};
        struct tutti_schedule *schedule;

        assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
        assert_int_equal(schedule->needs, 0);
        assert_int_equal(schedule->nsteps, blocks);
        if (blocks > 0) {
            assert_int_equal(schedule->steps[0].kind, TUTTI_STEP_COPY);
            assert_int_equal(schedule->steps[0].src.buffer, TUTTI_BUF_INPUT);
            assert_int_equal(schedule->steps[0].dst.buffer, TUTTI_BUF_OUTPUT);
        }
        tutti_schedule_destroy(schedule);
    }
}

static void count_one_sided(const struct tutti_algorithm *algorithm, struct tutti_shape shape)
{
    struct tutti_schedule *schedule;
    uint32_t given = 0;

    assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
    assert_int_equal(schedule->needs, algorithm->needs);
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        if (schedule->steps[i].kind == TUTTI_STEP_SIGNAL)
            given++;
    if (given != schedule->nsignals || schedule->is_one_sided != (algorithm->needs != 0))
        fail_msg("%s %s, rank %u of %u: gives %u signals of %u",
                 tutti_collective_name(algorithm->collective), algorithm->name, shape.rank,
                 shape.nranks, given, schedule->nsignals);
    tutti_schedule_destroy(schedule);
}

/* Then no rank need wait for a rank that has no data, because all ranks leave rounds by the same
 * count. */
static void every_rank_gives_every_signal(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        for (uint32_t nranks = 2; nranks <= 9; nranks++)
            for (uint32_t rank = 0; rank < nranks; rank++)
                for (uint32_t root = 0; root < nranks; root++)
                    count_one_sided(tutti_algorithm(i),
                                    (struct tutti_shape){
                                        .nranks = nranks, .rank = rank, .root = root});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_within_a_collective),
        cmocka_unit_test(every_algorithm_says_in_one_way_what_it_emits),
        cmocka_unit_test(every_collective_runs_on_any_transport_and_vectors_do_too),
        cmocka_unit_test(alone_a_rank_only_copies),
        cmocka_unit_test(every_rank_gives_every_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
