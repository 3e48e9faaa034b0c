/* SPDX-License-Identifier: Apache-2.0
 * Counts the messages that form one write, both for messages that should be one and for messages
 * that should be separate. */
#include "base/result.h"
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FLAT "ranks 4; level top overhead 5us bandwidth 50GB/s"

static uint64_t messages_of(enum tutti_collective collective, const char *algorithm,
                            uint32_t nranks, uint32_t segments)
{
    struct tutti_sim_report report;
    struct stage stage;
    uint64_t nmessages;

    stage_open(&stage, FLAT, nranks);
    stage.options.value[TUTTI_SEGMENTS] = segments;
    stage_play(&stage, collective, algorithm, 4096, &report);
    nmessages = report.nmessages;
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return nmessages;
}

static void runs_of_blocks_that_wrap_around_are_one(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 80; p++) {
        uint32_t q = 0;

        while (1u << q < p)
            q++;
        assert_int_equal(messages_of(TUTTI_ALLREDUCE, "circulant", p, 0), 2 * q * p);
        assert_int_equal(messages_of(TUTTI_ALLGATHER, "circulant", p, 0), q * p);
        assert_int_equal(messages_of(TUTTI_REDUCE_SCATTER, "circulant", p, 0), q * p);
    }
}

static void scattered_blocks_of_a_round_are_one(void **state)
{
    (void)state;
    for (uint32_t q = 1; q <= 4; q++)
        assert_int_equal(messages_of(TUTTI_ALLGATHER, "pat", 1u << q, 0), q << q);
    for (uint32_t q = 1; q <= 5; q++)
        assert_int_equal(messages_of(TUTTI_ALLTOALL, "bruck", 1u << q, 0), q << q);
    /* At most 8 blocks each: of 1, 2, 4, and three of 8. */
    assert_int_equal(messages_of(TUTTI_ALLGATHER, "pat", 32, 0), 6 * 32);
}

static void rounds_of_a_ring_and_segments_of_a_pipeline_are_apart(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 9; p++) {
        assert_int_equal(messages_of(TUTTI_ALLREDUCE, "ring", p, 0), 2 * p * (p - 1));
        assert_int_equal(messages_of(TUTTI_ALLGATHER, "ring", p, 0), p * (p - 1));
    }
    for (uint32_t p = 3; p <= 9; p++)
        assert_int_equal(messages_of(TUTTI_BROADCAST, "chain", p, 7), 7 * (p - 1));
    /* Nobody passes them on: then there is no reason to wait for the second. */
    assert_int_equal(messages_of(TUTTI_BROADCAST, "chain", 2, 7), 1);
}

/* Rank 1 needs the first of rank 0's two messages to give what rank 0 sends second. That stands
 * first in rank 0's program, against the rule, but lanes and dependencies let it through. */
static int emit_echo(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span first = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span second = tutti_span(TUTTI_BUF_OUTPUT, 1, 1);
    struct tutti_span kept = tutti_span(TUTTI_BUF_SCRATCH, 0, 1);

    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    if (shape->rank == 0) {
        TUTTI_TRY(tutti_build_recv(build, 1, second));
        TUTTI_TRY(tutti_build_send(build, 1, tutti_span(TUTTI_BUF_INPUT, 0, 1)));
        return tutti_build_send(build, 1, second);
    }
    TUTTI_TRY(tutti_build_recv(build, 0, first));
    TUTTI_TRY(tutti_build_recv(build, 0, second));
    TUTTI_TRY(tutti_build_copy(build, first, kept));
    return tutti_build_send(build, 0, kept);
}

static void what_cannot_be_one_is_played_apart(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, FLAT, 2);
    stage.emit = emit_echo;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, 5000, &report);
    assert_int_equal(report.nmessages, 3);
    assert_close(report.seconds, 3 * (5e-6 + 5000 / 50e9));
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_blocks_that_wrap_around_are_one),
        cmocka_unit_test(scattered_blocks_of_a_round_are_one),
        cmocka_unit_test(rounds_of_a_ring_and_segments_of_a_pipeline_are_apart),
        cmocka_unit_test(what_cannot_be_one_is_played_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
