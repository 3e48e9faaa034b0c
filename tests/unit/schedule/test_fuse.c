/* SPDX-License-Identifier: Apache-2.0
 * Tests fusing: the pairs that are joined, the position of the joined step, and the fate of
 * scratch memory. */
#include "schedule/build.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OUTPUT(first) tutti_span(TUTTI_BUF_OUTPUT, first, 1)
#define INPUT(first) tutti_span(TUTTI_BUF_INPUT, first, 1)
#define SCRATCH(first) tutti_span(TUTTI_BUF_SCRATCH, first, 1)
#define MUST(call) assert_int_equal(call, TUTTI_OK)

static void passed_on(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

static void added_and_passed_on(struct tutti_build *build)
{
    MUST(tutti_build_recv_reduce(build, 1, INPUT(0), OUTPUT(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

static void added_in_scratch_and_passed_on(struct tutti_build *build)
{
    for (int round = 0; round < 2; round++) {
        MUST(tutti_build_recv_reduce(build, 1, INPUT(0), SCRATCH(0)));
        MUST(tutti_build_send(build, 2, SCRATCH(0)));
    }
}

/* The store must stay: a ring of such ranks would wait for itself. */
static void ring_in_scratch(struct tutti_build *build)
{
    MUST(tutti_build_send(build, 2, INPUT(1)));
    MUST(tutti_build_recv_reduce(build, 1, INPUT(0), SCRATCH(0)));
    MUST(tutti_build_send(build, 2, SCRATCH(0)));
}

/* The store must stay: what 2 sends us before it takes ours may depend on the second receive. */
static void received_more_before_it_is_sent(struct tutti_build *build)
{
    MUST(tutti_build_recv_reduce(build, 1, INPUT(0), SCRATCH(0)));
    MUST(tutti_build_recv_reduce(build, 1, INPUT(1), OUTPUT(1)));
    MUST(tutti_build_send(build, 2, SCRATCH(0)));
}

static void added_up_and_passed_on(struct tutti_build *build)
{
    MUST(tutti_build_recv_reduce(build, 1, INPUT(0), SCRATCH(0)));
    MUST(tutti_build_recv_reduce(build, 3, SCRATCH(0), SCRATCH(0)));
    MUST(tutti_build_send(build, 2, SCRATCH(0)));
}

/* A step that overwrites the source would have to wait for the send. */
static void source_overwritten_later(struct tutti_build *build)
{
    MUST(tutti_build_recv_reduce(build, 1, OUTPUT(1), SCRATCH(0)));
    MUST(tutti_build_send(build, 2, SCRATCH(0)));
    MUST(tutti_build_recv(build, 2, OUTPUT(1)));
}

/* Somebody else reads what was received: it would have to wait for the send. */
static void read_twice(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
    MUST(tutti_build_send(build, 3, OUTPUT(0)));
}

static void overwritten_before_it_is_sent(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_copy(build, INPUT(1), OUTPUT(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

static void overwritten_after_it_is_sent(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, SCRATCH(0)));
    MUST(tutti_build_send(build, 2, SCRATCH(0)));
    MUST(tutti_build_recv(build, 3, SCRATCH(0)));
    MUST(tutti_build_copy(build, SCRATCH(0), OUTPUT(0)));
}

static void other_spans(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, tutti_span(TUTTI_BUF_OUTPUT, 0, 2)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
    MUST(tutti_build_recv(build, 1, OUTPUT(2)));
    MUST(tutti_build_send(build, 2, tutti_span(TUTTI_BUF_OUTPUT, 2, 2)));
}

static void other_channel(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    build->channel = 1;
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

static void in_a_queue(struct tutti_build *build)
{
    build->queue = 1;
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

/* Another send to 2 is between: the joined step goes to the send's place. */
static void placed_at_the_send(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_send(build, 2, INPUT(1)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

/* Another send and another receive are between: no place keeps both lanes in order. */
static void placed_nowhere(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_send(build, 2, INPUT(1)));
    MUST(tutti_build_recv(build, 1, OUTPUT(2)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

/* And at the send's place the receive would combine with what was written since. */
static void source_written_between(struct tutti_build *build)
{
    MUST(tutti_build_recv_reduce(build, 1, SCRATCH(0), OUTPUT(0)));
    MUST(tutti_build_send(build, 2, INPUT(1)));
    MUST(tutti_build_recv(build, 3, SCRATCH(0)));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

static void signal_between(struct tutti_build *build)
{
    MUST(tutti_build_recv(build, 1, OUTPUT(0)));
    MUST(tutti_build_signal(build));
    MUST(tutti_build_send(build, 2, OUTPUT(0)));
}

struct example {
    const char *name;
    void (*emit)(struct tutti_build *build);
    uint32_t scratch_chunks;
    int kinds[6];
};

static const struct example examples[] = {
    {"passed on", passed_on, 0, {TUTTI_STEP_RECV_COPY_SEND, -1}},
    {"added and passed on", added_and_passed_on, 0, {TUTTI_STEP_RECV_REDUCE_COPY_SEND, -1}},
    {"added in scratch and passed on", added_in_scratch_and_passed_on, 2,
     {TUTTI_STEP_RECV_REDUCE_COPY_SEND, TUTTI_STEP_RECV_REDUCE_COPY_SEND, -1}},
    {"added up and passed on", added_up_and_passed_on, 2,
     {TUTTI_STEP_RECV_REDUCE, TUTTI_STEP_RECV_REDUCE_COPY_SEND, -1}},
    {"source overwritten later", source_overwritten_later, 2,
     {TUTTI_STEP_RECV_REDUCE, TUTTI_STEP_SEND, TUTTI_STEP_RECV, -1}},
    {"read twice", read_twice, 0, {TUTTI_STEP_RECV, TUTTI_STEP_SEND, TUTTI_STEP_SEND, -1}},
    {"overwritten before it is sent", overwritten_before_it_is_sent, 0,
     {TUTTI_STEP_RECV, TUTTI_STEP_COPY, TUTTI_STEP_SEND, -1}},
    {"overwritten after it is sent", overwritten_after_it_is_sent, 2,
     {TUTTI_STEP_RECV_COPY_SEND, TUTTI_STEP_RECV, TUTTI_STEP_COPY, -1}},
    {"other spans", other_spans, 0,
     {TUTTI_STEP_RECV, TUTTI_STEP_SEND, TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"other channel", other_channel, 0, {TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"in a queue", in_a_queue, 0, {TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"placed at the send", placed_at_the_send, 0,
     {TUTTI_STEP_SEND, TUTTI_STEP_RECV_COPY_SEND, -1}},
    {"placed nowhere", placed_nowhere, 0,
     {TUTTI_STEP_RECV, TUTTI_STEP_SEND, TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"source written between", source_written_between, 2,
     {TUTTI_STEP_RECV_REDUCE, TUTTI_STEP_SEND, TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"signal between", signal_between, 0,
     {TUTTI_STEP_RECV, TUTTI_STEP_SIGNAL, TUTTI_STEP_SEND, -1}},
};

/* The result for a bold caller. */
static const struct example bold_examples[] = {
    {"passed on", passed_on, 0, {TUTTI_STEP_RECV_COPY_SEND, -1}},
    {"added and passed on", added_and_passed_on, 0, {TUTTI_STEP_RECV_REDUCE_COPY_SEND, -1}},
    {"added in scratch and passed on", added_in_scratch_and_passed_on, 0,
     {TUTTI_STEP_RECV_REDUCE_SEND, TUTTI_STEP_RECV_REDUCE_SEND, -1}},
    {"added up and passed on", added_up_and_passed_on, 2,
     {TUTTI_STEP_RECV_REDUCE, TUTTI_STEP_RECV_REDUCE_SEND, -1}},
    {"ring in scratch", ring_in_scratch, 2,
     {TUTTI_STEP_SEND, TUTTI_STEP_RECV_REDUCE_COPY_SEND, -1}},
    {"source overwritten later", source_overwritten_later, 0,
     {TUTTI_STEP_RECV_REDUCE_SEND, TUTTI_STEP_RECV, -1}},
    {"source written between", source_written_between, 2,
     {TUTTI_STEP_RECV_REDUCE, TUTTI_STEP_SEND, TUTTI_STEP_RECV, TUTTI_STEP_SEND, -1}},
    {"received more before it is sent", received_more_before_it_is_sent, 2,
     {TUTTI_STEP_RECV_REDUCE_COPY_SEND, TUTTI_STEP_RECV_REDUCE, -1}},
};

static struct tutti_schedule *build_fused(void (*emit)(struct tutti_build *build),
                                          bool is_bold)
{
    struct tutti_shape shape = {.nranks = 4, .rank = 0, .root = 0};
    struct tutti_schedule *schedule = NULL;
    struct tutti_build build;

    MUST(tutti_build_init(&build, TUTTI_ALLREDUCE, &shape));
    tutti_build_chunks(&build, 4);
    tutti_build_scratch(&build, TUTTI_SCRATCH_VECTOR, 2);
    tutti_build_needs(&build, TUTTI_NEEDS_WINDOW);
    emit(&build);
    MUST(tutti_build_finish(&build, &schedule));
    MUST(tutti_schedule_fuse(schedule, is_bold));
    return schedule;
}

static void expect(const struct example *example, bool is_bold)
{
    struct tutti_schedule *schedule = build_fused(example->emit, is_bold);
    uint32_t nsteps = 0;

    for (; example->kinds[nsteps] >= 0; nsteps++)
        if (nsteps >= schedule->nsteps || schedule->steps[nsteps].kind != example->kinds[nsteps])
            fail_msg("%s: step %u is no %s", example->name, nsteps,
                     tutti_step_name((enum tutti_step_kind)example->kinds[nsteps]));
    if (schedule->nsteps != nsteps || schedule->scratch_chunks != example->scratch_chunks ||
        (schedule->scratch_like == TUTTI_SCRATCH_NONE) != (example->scratch_chunks == 0))
        fail_msg("%s: %u steps, %u scratch chunks", example->name, schedule->nsteps,
                 schedule->scratch_chunks);
    tutti_schedule_destroy(schedule);
}

static void joins_what_nobody_else_waits_for_and_nothing_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
        expect(&examples[i], false);
}

static void drops_the_store_for_who_is_bold(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bold_examples) / sizeof(bold_examples[0]); i++)
        expect(&bold_examples[i], true);
}

static void a_joined_step_has_both_peers_and_the_spans_of_the_receive(void **state)
{
    struct tutti_schedule *schedule = build_fused(added_and_passed_on, false);
    const struct tutti_step *step = schedule->steps;

    (void)state;
    assert_int_equal(step->from, 1);
    assert_int_equal(step->to, 2);
    assert_int_equal(step->src.buffer, TUTTI_BUF_INPUT);
    assert_int_equal(step->dst.buffer, TUTTI_BUF_OUTPUT);
    tutti_schedule_destroy(schedule);

    schedule = build_fused(added_in_scratch_and_passed_on, true);
    assert_int_equal(schedule->steps[0].dst.buffer, TUTTI_BUF_NONE);
    tutti_schedule_destroy(schedule);
}

static void dependencies_are_derived_anew(void **state)
{
    struct tutti_schedule *schedule = build_fused(overwritten_after_it_is_sent, false);

    (void)state;
    assert_int_equal(schedule->steps[0].dep_count, 0);
    assert_int_equal(schedule->steps[1].dep_count, 1);
    assert_int_equal(schedule->deps[schedule->steps[1].dep_first], 0);
    assert_int_equal(schedule->steps[2].dep_count, 1);
    assert_int_equal(schedule->deps[schedule->steps[2].dep_first], 1);
    tutti_schedule_destroy(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_what_nobody_else_waits_for_and_nothing_more),
        cmocka_unit_test(drops_the_store_for_who_is_bold),
        cmocka_unit_test(a_joined_step_has_both_peers_and_the_spans_of_the_receive),
        cmocka_unit_test(dependencies_are_derived_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
