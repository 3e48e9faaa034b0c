/* SPDX-License-Identifier: Apache-2.0
 * Tests graphs of the simulated driver: captures, calls that a capture forbids, and replays. */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_cu_stream *make_stream(unsigned flags)
{
    struct tutti_cu_stream *stream;

    WORKS(driver()->stream_create(&stream, flags));
    return stream;
}

static struct tutti_cu_event *make_event(void)
{
    struct tutti_cu_event *event;

    WORKS(driver()->event_create(&event, TUTTI_CU_EVENT_DISABLE_TIMING));
    return event;
}

static void begin(struct tutti_cu_stream *stream)
{
    WORKS(graphs()->begin(stream, TUTTI_CU_CAPTURE_GLOBAL));
}

static struct tutti_cu_exec *end(struct tutti_cu_stream *stream)
{
    struct tutti_cu_graph *graph;
    struct tutti_cu_exec *exec;

    WORKS(graphs()->end(stream, &graph));
    WORKS(graphs()->instantiate(&exec, graph, 0));
    WORKS(graphs()->destroy(graph));
    return exec;
}

static void count_up(void *argument)
{
    ++*(int *)argument;
}

/* ---- playing --------------------------------------------------------------------------------- */

static void check_replay(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream;
    struct tutti_cu_exec *exec;
    struct tutti_cu_function *function;
    struct try_add arg;
    void *parameters[1] = {&arg};
    uint64_t *copy;
    unsigned long long id = 0, other;
    int count = 0, status;

    use_device(0);
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    function = kernel("try_add");
    arg = (struct try_add){zeros(8), 1};
    copy = zeros(16);
    WORKS(cuda->stream_capture_id(stream, &status, &id));
    MUST(status == TUTTI_CU_CAPTURE_NONE && id == 0);
    begin(stream);
    WORKS(cuda->launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    WORKS(cuda->copy_async((uintptr_t)copy, (uintptr_t)arg.at, 8, stream));
    WORKS(cuda->set8_async((uintptr_t)(copy + 1), 1, 1, stream));
    WORKS(cuda->host_function(stream, count_up, &count));
    WORKS(cuda->stream_capture_id(stream, &status, &id));
    WORKS(cuda->stream_capture_id(stream, &status, &other));
    MUST(status == TUTTI_CU_CAPTURE_ACTIVE && id != 0 && other == id);
    exec = end(stream);
    WORKS(cuda->stream_is_capturing(stream, &status));
    MUST(status == TUTTI_CU_CAPTURE_NONE && count == 0 && peek(arg.at) == 0);
    for (int i = 0; i < 5; i++)
        WORKS(graphs()->launch(exec, stream));
    WORKS(graphs()->destroy_exec(exec));
    WORKS(cuda->stream_synchronize(stream));
    MUST(count == 5 && peek(arg.at) == 160 && peek(copy) == 160 && peek(copy + 1) == 1);
    GIVES(TUTTI_CU_INVALID_VALUE, graphs()->launch(exec, stream));
}

static void captured_streams_are_played_as_often_as_wanted(void **state)
{
    (void)state;
    passes_apart(check_replay, (struct settings){{NULL}});
}

/* Two branches whose kernels wait for each other, and one that comes before and after. */
static void check_branches(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *streams[2];
    struct tutti_cu_event *events[2] = {0};
    struct tutti_cu_function *function;
    struct tutti_cu_exec *exec;
    struct try_meet meet;
    void *parameters[1] = {&meet};

    for (int i = 0; i < 2; i++) {
        use_device(i);
        streams[i] = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
        events[i] = make_event();
    }
    use_device(0);
    meet = (struct try_meet){zeros(8), 4, 10};
    begin(streams[0]);
    WORKS(cuda->set8_async((uintptr_t)meet.counter, 0, 8, streams[0]));
    WORKS(cuda->event_record(events[0], streams[0]));
    WORKS(cuda->stream_wait(streams[1], events[0], 0));
    for (int i = 0; i < 2; i++) {
        use_device(i);
        WORKS(cuda->event_record(events[i], streams[i]));
        function = NULL;
        {
            int mode = TUTTI_CU_CAPTURE_RELAXED;

            WORKS(cuda->exchange_capture_mode(&mode));
            MUST(mode == TUTTI_CU_CAPTURE_GLOBAL);
            function = kernel("try_meet");
            WORKS(cuda->exchange_capture_mode(&mode));
        }
        WORKS(cuda->launch(function, 2, 1, 1, 32, 1, 1, 0, streams[i], parameters, NULL));
    }
    WORKS(cuda->event_record(events[1], streams[1]));
    WORKS(cuda->stream_wait(streams[0], events[1], 0));
    exec = end(streams[0]);
    use_device(0);
    for (int i = 0; i < 3; i++) {
        WORKS(graphs()->launch(exec, streams[0]));
        WORKS(cuda->stream_synchronize(streams[0]));
        MUST(peek(meet.counter) == 40);
    }
    WORKS(graphs()->destroy_exec(exec));
}

static void branches_run_at_the_same_time(void **state)
{
    (void)state;
    passes_apart(check_branches,
                 (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_WATCHDOG_MS=10000"}});
}

/* ---- what captures forbid -------------------------------------------------------------------- */

/* After a call that must not be, the capture ends with that code. */
static void must_end_with(struct tutti_cu_stream *stream, int code)
{
    struct tutti_cu_graph *graph;
    int status;

    WORKS(driver()->stream_is_capturing(stream, &status));
    MUST(status == (code == TUTTI_CU_STREAM_CAPTURE_INVALIDATED ? TUTTI_CU_CAPTURE_INVALIDATED
                                                               : TUTTI_CU_CAPTURE_ACTIVE));
    GIVES(code, graphs()->end(stream, &graph));
    WORKS(driver()->stream_is_capturing(stream, &status));
    MUST(status == TUTTI_CU_CAPTURE_NONE);
}

static void check_unsafe(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream;
    tutti_cu_address address;
    int mode = TUTTI_CU_CAPTURE_RELAXED;

    use_device(0);
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    begin(stream);
    GIVES(TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED, cuda->memory_alloc(&address, 8));
    GIVES(TUTTI_CU_STREAM_CAPTURE_INVALIDATED, cuda->host_function(stream, count_up, NULL));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    begin(stream);
    GIVES(TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED, cuda->stream_synchronize(stream));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    begin(stream);
    GIVES(TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED, cuda->context_synchronize());
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    WORKS(graphs()->begin(stream, TUTTI_CU_CAPTURE_RELAXED));
    WORKS(cuda->memory_alloc(&address, 8));
    WORKS(graphs()->destroy_exec(end(stream)));
    begin(stream);
    WORKS(cuda->exchange_capture_mode(&mode));
    WORKS(cuda->memory_alloc(&address, 8));
    WORKS(cuda->exchange_capture_mode(&mode));
    WORKS(graphs()->destroy_exec(end(stream)));
}

static void check_events(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream, *other;
    struct tutti_cu_event *event, *outside;

    use_device(0);
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    other = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    event = make_event();
    outside = make_event();
    WORKS(cuda->event_record(outside, other));
    begin(stream);
    GIVES(905, cuda->stream_wait(stream, outside, 0));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    begin(stream);
    WORKS(cuda->event_record(event, stream));
    GIVES(907, cuda->event_query(event));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    begin(stream);
    WORKS(cuda->event_record(event, stream));
    WORKS(cuda->stream_wait(other, event, 0));
    WORKS(cuda->host_function(other, count_up, NULL));
    must_end_with(stream, 904);
    begin(stream);
    begin(other);
    WORKS(cuda->event_record(event, stream));
    GIVES(902, cuda->stream_wait(other, event, 0));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    must_end_with(other, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuda->stream_wait(other, event, 0));
}

static void check_ends(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream, *other;
    struct tutti_cu_event *event;
    struct tutti_cu_graph *graph;

    use_device(0);
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    other = make_stream(0);
    event = make_event();
    GIVES(TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED, graphs()->begin(NULL, TUTTI_CU_CAPTURE_GLOBAL));
    GIVES(TUTTI_CU_INVALID_VALUE, graphs()->end(stream, &graph));
    begin(stream);
    GIVES(TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED, graphs()->begin(stream, TUTTI_CU_CAPTURE_GLOBAL));
    WORKS(cuda->event_record(event, stream));
    WORKS(cuda->stream_wait(other, event, 0));
    GIVES(903, graphs()->end(other, &graph));
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
    begin(other);
    GIVES(906, cuda->host_function(NULL, count_up, NULL));
    must_end_with(other, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
}

static void *end_elsewhere(void *argument)
{
    struct tutti_cu_graph *graph;

    use_device(0);
    GIVES(908, graphs()->end(argument, &graph));
    return NULL;
}

static void check_threads(void)
{
    struct tutti_cu_stream *stream;
    pthread_t thread;

    use_device(0);
    stream = make_stream(0);
    begin(stream);
    MUST(pthread_create(&thread, NULL, end_elsewhere, stream) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    must_end_with(stream, TUTTI_CU_STREAM_CAPTURE_INVALIDATED);
}

static void what_captures_forbid_invalidates_them(void **state)
{
    (void)state;
    passes_apart(check_unsafe, (struct settings){{NULL}});
    passes_apart(check_events, (struct settings){{NULL}});
    passes_apart(check_ends, (struct settings){{NULL}});
    passes_apart(check_threads, (struct settings){{NULL}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_streams_are_played_as_often_as_wanted),
        cmocka_unit_test(branches_run_at_the_same_time),
        cmocka_unit_test(what_captures_forbid_invalidates_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
