/* SPDX-License-Identifier: Apache-2.0
 * Tests writing of schedules: wrong steps are refused, and dependencies are derived. */
#include "schedule/access.h"
#include "schedule/build.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_span input(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_INPUT, first, count);
}

static struct tutti_span output(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_OUTPUT, first, count);
}

static struct tutti_span scratch(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_SCRATCH, first, count);
}

static struct tutti_span window(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_WINDOW, first, count);
}

static struct tutti_build begin(enum tutti_collective collective, uint32_t nranks, uint32_t rank,
                                uint32_t chunks)
{
    struct tutti_shape shape = {.nranks = nranks, .rank = rank, .root = 0};
    struct tutti_build build;

    assert_int_equal(tutti_build_init(&build, collective, &shape), TUTTI_OK);
    tutti_build_chunks(&build, chunks);
    tutti_build_scratch(&build, TUTTI_SCRATCH_VECTOR, 4);
    tutti_build_window(&build, 4);
    tutti_build_needs(&build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(&build, 4);
    return build;
}

static struct tutti_schedule *finish(struct tutti_build *build)
{
    struct tutti_schedule *schedule = NULL;

    assert_int_equal(tutti_build_finish(build, &schedule), TUTTI_OK);
    assert_null(build->schedule);
    return schedule;
}

/* ---- layouts -------------------------------------------------------------------- */

static void every_collective_overlays_its_buffers_as_documented(void **state)
{
    static const struct {
        enum tutti_collective collective;
        uint32_t rank, input_blocks, output_blocks;
        bool has_input, has_output, is_overlaid;
        int64_t shift;
    } rows[] = {
        /* 5 ranks, root 1, 3 chunks per block */
        {TUTTI_ALLREDUCE, 2, 1, 1, true, true, true, 0},
        {TUTTI_REDUCE, 1, 1, 1, true, true, true, 0},
        {TUTTI_REDUCE, 2, 1, 1, true, false, false, 0},
        {TUTTI_BROADCAST, 1, 1, 1, true, true, true, 0},
        {TUTTI_BROADCAST, 2, 1, 1, false, true, false, 0},
        {TUTTI_ALLGATHER, 2, 1, 5, true, true, true, 6},
        {TUTTI_REDUCE_SCATTER, 2, 5, 1, true, true, true, -6},
        {TUTTI_GATHER, 1, 1, 5, true, true, true, 3},
        {TUTTI_GATHER, 2, 1, 5, true, false, false, 0},
        {TUTTI_SCATTER, 1, 5, 1, true, true, true, -3},
        {TUTTI_SCATTER, 2, 5, 1, false, true, false, 0},
        {TUTTI_ALLTOALL, 2, 5, 5, true, true, false, 0},
        {TUTTI_BARRIER, 1, 0, 0, false, false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t shift = 0;

        assert_int_equal(tutti_input_blocks(rows[i].collective, 5), rows[i].input_blocks);
        assert_int_equal(tutti_output_blocks(rows[i].collective, 5), rows[i].output_blocks);
        assert_int_equal(tutti_collective_has_input(rows[i].collective, rows[i].rank, 1),
                         rows[i].has_input);
        assert_int_equal(tutti_collective_has_output(rows[i].collective, rows[i].rank, 1),
                         rows[i].has_output);
        assert_int_equal(
            tutti_collective_in_place_shift(rows[i].collective, rows[i].rank, 1, 3, &shift),
            rows[i].is_overlaid);
        assert_int_equal(shift, rows[i].shift);
    }
}

static void names_are_those_of_the_steps(void **state)
{
    (void)state;
    assert_string_equal(tutti_collective_name(TUTTI_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(tutti_step_name(TUTTI_STEP_RECV_REDUCE_COPY_SEND), "recv_reduce_copy_send");
    assert_string_equal(tutti_collective_name(TUTTI_COLLECTIVE_COUNT), "unknown");
    assert_string_equal(tutti_step_name(TUTTI_STEP_KIND_COUNT), "unknown");
    for (int kind = 0; kind < TUTTI_STEP_KIND_COUNT; kind++)
        assert_non_null(tutti_step_name((enum tutti_step_kind)kind));
}

/* ---- dependencies ----------------------------------------------------------------- */

/* Emits steps; `ret_deps` has for each step the steps it must name, ended by -1. */
struct case_of_deps {
    const char *name;
    enum tutti_collective collective;
    uint32_t nranks, rank, chunks;
    void (*emit)(struct tutti_build *build);
    int deps[6][4];
};

static void emit_write_then_reads(struct tutti_build *build)
{
    assert_int_equal(tutti_build_recv(build, 1, output(0, 2)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 2, output(1, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 2, output(0, 2)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, output(0, 2)), TUTTI_OK);
}

static void emit_in_place(struct tutti_build *build)
{
    assert_int_equal(tutti_build_send(build, 1, input(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 1, output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 2, output(1, 1)), TUTTI_OK);
}

static void emit_all_gather_overlay(struct tutti_build *build)
{
    assert_int_equal(tutti_build_send(build, 2, input(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 2, output(0, 1)), TUTTI_OK); /* not our block */
    /* Onto itself. */
    assert_int_equal(tutti_build_copy(build, input(0, 1), output(1, 1)), TUTTI_OK);
}

static void emit_same_lane(struct tutti_build *build)
{
    assert_int_equal(tutti_build_recv(build, 1, scratch(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv_reduce(build, 1, scratch(0, 1), output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 1, scratch(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, scratch(0, 1)), TUTTI_OK);
}

static void emit_last_of_lane(struct tutti_build *build)
{
    assert_int_equal(tutti_build_recv(build, 1, output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 1, output(1, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 2, output(0, 2)), TUTTI_OK);
}

static void emit_local(struct tutti_build *build)
{
    assert_int_equal(tutti_build_copy(build, input(0, 1), output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_reduce(build, input(1, 1), output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_copy(build, input(1, 1), output(0, 1)), TUTTI_OK);
}

static void emit_signals(struct tutti_build *build)
{
    assert_int_equal(tutti_build_recv(build, 1, window(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 2, window(1, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_signal(build), TUTTI_OK);
    assert_int_equal(tutti_build_wait(build, TUTTI_ALL_RANKS, 1), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, scratch(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_signal(build), TUTTI_OK);
}

static void emit_remote(struct tutti_build *build)
{
    /* The peer's window is not ours. */
    assert_int_equal(tutti_build_recv(build, 1, window(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_put(build, 2, input(0, 1), window(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_get(build, 2, window(1, 1), window(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_gather_reduce(build, window(0, 1), window(2, 1), output(0, 1),
                                               window(3, 1), TUTTI_NO_SPAN), TUTTI_OK);
    assert_int_equal(tutti_build_send(build, 1, window(3, 1)), TUTTI_OK);
}

/* Two exchanges in one queue, one in another; a send waits for no receive. */
static void emit_queues(struct tutti_build *build)
{
    build->queue = 1;
    assert_int_equal(tutti_build_send(build, 1, input(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 2, output(1, 1)), TUTTI_OK);
    build->queue = 2;
    assert_int_equal(tutti_build_send(build, 2, input(0, 1)), TUTTI_OK);
    build->queue = 1;
    assert_int_equal(tutti_build_send(build, 2, input(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(build, 1, scratch(0, 1)), TUTTI_OK);
    build->queue = 0;
    assert_int_equal(tutti_build_recv(build, 1, scratch(1, 1)), TUTTI_OK);
}

static const struct case_of_deps cases_of_deps[] = {
    {"readers wait for the writer, the next writer for the readers", TUTTI_ALLREDUCE, 3, 0, 2,
     emit_write_then_reads, {{-1}, {0, -1}, {0, -1}, {1, 2, -1}, {3, -1}}},
    {"input and output are one memory where a call may be in place", TUTTI_ALLREDUCE, 3, 0, 2,
     emit_in_place, {{-1}, {0, -1}, {-1}}},
    {"only the own block of an all-gather is overlaid", TUTTI_ALLGATHER, 3, 1, 1,
     emit_all_gather_overlay, {{-1}, {-1}, {0, -1}}},
    {"a lane is in order by itself", TUTTI_ALLREDUCE, 3, 0, 2, emit_same_lane,
     {{-1}, {-1}, {-1}, {2, -1}}},
    {"the last step of a lane stands for those before it", TUTTI_ALLREDUCE, 3, 0, 2,
     emit_last_of_lane, {{-1}, {-1}, {1, -1}}},
    {"local steps are in order by themselves", TUTTI_ALLREDUCE, 3, 0, 2, emit_local,
     {{-1}, {-1}, {1, -1}, {2, -1}}},
    {"a signal waits for what it publishes, a message for the last wait", TUTTI_ALLREDUCE, 3, 0, 2,
     emit_signals, {{-1}, {-1}, {0, 1, -1}, {-1}, {3, -1}, {4, -1}}},
    {"steps of a queue are in order in each direction", TUTTI_ALLREDUCE, 3, 0, 2, emit_queues,
     {{-1}, {-1}, {-1}, {0, -1}, {1, -1}, {-1}}},
    {"memory of peers is not our memory", TUTTI_ALLREDUCE, 3, 0, 2, emit_remote,
     {{-1}, {-1}, {0, -1}, {-1}, {3, -1}}},
};

static bool depends(const struct tutti_schedule *schedule, uint32_t step, uint32_t on)
{
    const struct tutti_step *own = &schedule->steps[step];

    for (uint32_t d = 0; d < own->dep_count; d++)
        if (schedule->deps[own->dep_first + d] == on)
            return true;
    return false;
}

static void dependencies_are_those_that_memory_and_signals_demand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases_of_deps) / sizeof(cases_of_deps[0]); i++) {
        const struct case_of_deps *row = &cases_of_deps[i];
        struct tutti_build build = begin(row->collective, row->nranks, row->rank, row->chunks);
        struct tutti_schedule *schedule;

        row->emit(&build);
        schedule = finish(&build);
        for (uint32_t step = 0; step < schedule->nsteps; step++) {
            uint32_t count = 0;

            for (; row->deps[step][count] >= 0; count++)
                if (!depends(schedule, step, (uint32_t)row->deps[step][count]))
                    fail_msg("%s: step %u does not wait for step %d", row->name, step,
                             row->deps[step][count]);
            if (schedule->steps[step].dep_count != count)
                fail_msg("%s: step %u has %u dependencies, not %u", row->name, step,
                         schedule->steps[step].dep_count, count);
        }
        tutti_schedule_destroy(schedule);
    }
}

/* ---- what is refused, what is dropped ---------------------------------------------- */

static int emit_beyond_the_buffer(struct tutti_build *build)
{
    return tutti_build_recv(build, 1, output(1, 2));
}

static int emit_far_beyond(struct tutti_build *build)
{
    return tutti_build_recv(build, 1, output(UINT32_MAX, 2));
}

static int emit_to_itself(struct tutti_build *build)
{
    return tutti_build_send(build, 0, input(0, 1));
}

static int emit_to_nobody(struct tutti_build *build)
{
    return tutti_build_send(build, 3, input(0, 1));
}

static int emit_unequal_counts(struct tutti_build *build)
{
    return tutti_build_copy(build, input(0, 1), output(0, 2));
}

static int emit_output_that_is_not_given(struct tutti_build *build)
{
    struct tutti_schedule *schedule = build->schedule;

    schedule->collective = TUTTI_REDUCE;
    schedule->root = 1;
    return tutti_build_copy(build, input(0, 1), output(0, 1));
}

static int emit_output_that_the_peer_does_not_give(struct tutti_build *build)
{
    build->schedule->collective = TUTTI_REDUCE;
    return tutti_build_put(build, 2, input(0, 1), output(0, 1));
}

static void what_does_not_fit_the_buffers_or_ranks_is_refused(void **state)
{
    int (*const emits[])(struct tutti_build *build) = {
        emit_beyond_the_buffer,        emit_far_beyond,
        emit_to_itself,                emit_to_nobody,
        emit_unequal_counts,           emit_output_that_is_not_given,
        emit_output_that_the_peer_does_not_give,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(emits) / sizeof(emits[0]); i++) {
        struct tutti_build build = begin(TUTTI_ALLREDUCE, 3, 0, 2);

        assert_int_equal(emits[i](&build), TUTTI_ERR_INTERNAL);
        assert_int_equal(build.schedule->nsteps, 0);
        tutti_build_fini(&build);
    }
}

static void a_shape_that_cannot_be_is_refused(void **state)
{
    static const struct tutti_shape shapes[] = {
        {.nranks = 0}, {.nranks = 2, .rank = 2}, {.nranks = 2, .root = 2}};
    struct tutti_build build = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        assert_int_equal(tutti_build_init(&build, TUTTI_ALLREDUCE, &shapes[i]), TUTTI_ERR_INTERNAL);
}

static void empty_spans_and_waits_for_oneself_emit_nothing(void **state)
{
    struct tutti_build build = begin(TUTTI_ALLREDUCE, 3, 0, 2), alone;
    struct tutti_schedule *schedule;

    (void)state;
    assert_int_equal(tutti_build_send(&build, 1, input(0, 0)), TUTTI_OK);
    assert_int_equal(tutti_build_recv(&build, 1, output(2, 0)), TUTTI_OK);
    assert_int_equal(tutti_build_copy(&build, input(0, 0), output(0, 0)), TUTTI_OK);
    assert_int_equal(tutti_build_wait(&build, 0, 1), TUTTI_OK);
    schedule = finish(&build);
    assert_int_equal(schedule->nsteps, 0);
    tutti_schedule_destroy(schedule);

    alone = begin(TUTTI_ALLREDUCE, 1, 0, 2);
    assert_int_equal(tutti_build_wait(&alone, TUTTI_ALL_RANKS, 1), TUTTI_OK);
    schedule = finish(&alone);
    assert_int_equal(schedule->nsteps, 0);
    tutti_schedule_destroy(schedule);
}

static void steps_go_by_the_ranks_that_were_named_before(void **state)
{
    static const uint32_t few[] = {0, 2, 3}, all[] = {0, 1, 2, 3, 4};
    struct tutti_build build = begin(TUTTI_ALLREDUCE, 5, 2, 1);
    struct tutti_schedule *schedule;
    struct tutti_step_ranks among;

    (void)state;
    tutti_build_needs(&build, TUTTI_NEEDS_PEER_STORE);
    assert_int_equal(tutti_build_among(&build, few, 3), TUTTI_OK);
    assert_int_equal(tutti_build_gather_reduce(&build, input(0, 1), input(0, 1), output(0, 1),
                                               TUTTI_NO_SPAN, TUTTI_NO_SPAN), TUTTI_OK);
    assert_int_equal(tutti_build_put(&build, 4, input(0, 1), output(0, 1)), TUTTI_OK);
    assert_int_equal(tutti_build_wait(&build, TUTTI_ALL_RANKS, 1), TUTTI_OK);
    assert_int_equal(tutti_build_among(&build, all, 5), TUTTI_OK);
    assert_int_equal(tutti_build_put_all(&build, input(0, 1), output(0, 1), output(0, 1)),
                     TUTTI_OK);
    assert_int_equal(tutti_build_among(&build, few + 1, 1), TUTTI_OK);
    assert_int_equal(tutti_build_among(&build, NULL, 0), TUTTI_OK);
    assert_int_equal(tutti_build_put_all(&build, input(0, 1), output(0, 1), output(0, 1)),
                     TUTTI_OK);
    schedule = finish(&build);
    among = tutti_step_ranks(schedule, &schedule->steps[0]);
    assert_int_equal(among.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tutti_step_ranks_at(among, i), few[i]);
    assert_int_equal(tutti_step_count_peers(schedule, &schedule->steps[0], TUTTI_ALL_RANKS), 2);
    for (uint32_t at = 1; at < schedule->nsteps; at++) {
        among = tutti_step_ranks(schedule, &schedule->steps[at]);
        assert_int_equal(schedule->steps[at].among_count, 0);
        assert_int_equal(among.count, 5);
        assert_int_equal(tutti_step_ranks_at(among, 4), 4);
    }
    tutti_schedule_destroy(schedule);
}

static void ranks_to_go_by_ascend_and_hold_the_own_one(void **state)
{
    static const struct {
        uint32_t ranks[3], count;
    } cases[] = {{{0, 3}, 2}, {{3, 2}, 2}, {{2, 2}, 2}, {{1, 2, 5}, 3}, {{0}, 1}};
    struct tutti_build build = begin(TUTTI_ALLREDUCE, 5, 2, 1);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tutti_build_among(&build, cases[i].ranks, cases[i].count),
                         TUTTI_ERR_INTERNAL);
    tutti_build_fini(&build);
}

static void a_finished_schedule_says_what_it_is(void **state)
{
    struct tutti_build build = begin(TUTTI_ALLREDUCE, 3, 1, 2);
    struct tutti_schedule *schedule;

    (void)state;
    assert_int_equal(tutti_build_copy(&build, input(0, 2), output(0, 2)), TUTTI_OK);
    schedule = finish(&build);
    assert_true(schedule->is_one_sided);
    assert_int_equal(schedule->nchannels, 1);
    assert_int_equal(schedule->nsignals, 4);
    tutti_schedule_destroy(schedule);

    build = begin(TUTTI_ALLREDUCE, 3, 1, 2);
    tutti_build_signals(&build, 0);
    build.channel = 2;
    assert_int_equal(tutti_build_send(&build, 2, input(0, 2)), TUTTI_OK);
    schedule = finish(&build);
    assert_false(schedule->is_one_sided);
    assert_int_equal(schedule->nchannels, 3);
    assert_int_equal(schedule->nsignals, 1); /* it shares memory */
    assert_int_equal(schedule->rank, 1);
    tutti_schedule_destroy(schedule);
}

static void more_signals_than_declared_are_refused(void **state)
{
    struct tutti_build build = begin(TUTTI_BARRIER, 2, 0, 1);
    struct tutti_schedule *schedule = NULL;

    (void)state;
    tutti_build_signals(&build, 1);
    assert_int_equal(tutti_build_signal(&build), TUTTI_OK);
    assert_int_equal(tutti_build_signal(&build), TUTTI_OK);
    assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_ERR_INTERNAL);
    assert_null(schedule);
    tutti_build_fini(&build);
    tutti_build_fini(&build); /* nothing left to free */
}

static void channels_beyond_those_there_are_share_them(void **state)
{
    static const uint8_t expected[][5] = {{0, 1, 2, 3, 255}, {0, 0, 0, 0, 0}, {0, 1, 0, 1, 1}};

    (void)state;
    for (uint32_t channels = 0; channels <= 2; channels++) {
        struct tutti_shape shape = {.nranks = 2, .channels = channels};
        struct tutti_schedule *schedule = NULL;
        struct tutti_build build;

        assert_int_equal(tutti_build_init(&build, TUTTI_ALLREDUCE, &shape), TUTTI_OK);
        for (int i = 0; i < 5; i++) {
            build.channel = expected[0][i];
            assert_int_equal(tutti_build_send(&build, 1, tutti_span(TUTTI_BUF_INPUT, 0, 1)),
                             TUTTI_OK);
        }
        assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(schedule->steps[i].channel, expected[channels][i]);
        assert_int_equal(schedule->nchannels, channels == 0 ? 256 : channels);
        tutti_schedule_destroy(schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_overlays_its_buffers_as_documented),
        cmocka_unit_test(names_are_those_of_the_steps),
        cmocka_unit_test(dependencies_are_those_that_memory_and_signals_demand),
        cmocka_unit_test(what_does_not_fit_the_buffers_or_ranks_is_refused),
        cmocka_unit_test(a_shape_that_cannot_be_is_refused),
        cmocka_unit_test(empty_spans_and_waits_for_oneself_emit_nothing),
        cmocka_unit_test(steps_go_by_the_ranks_that_were_named_before),
        cmocka_unit_test(ranks_to_go_by_ascend_and_hold_the_own_one),
        cmocka_unit_test(a_finished_schedule_says_what_it_is),
        cmocka_unit_test(more_signals_than_declared_are_refused),
        cmocka_unit_test(channels_beyond_those_there_are_share_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
