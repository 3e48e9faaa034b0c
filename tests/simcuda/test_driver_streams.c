/* SPDX-License-Identifier: Apache-2.0
 * Tests contexts, streams and events of the simulated driver. */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* A kernel of the stream waits until the host lets it go on. */
static void hold(struct tutti_cu_stream *stream, const uint64_t *gate)
{
    struct try_wait arg = {gate, 1};

    WORKS(launch("try_wait", 1, 32, stream, &arg));
}

static uint64_t *make_gate(void)
{
    void *gate;

    WORKS(driver()->host_alloc(&gate, 64, TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED));
    return gate;
}

static void open_gate(uint64_t *gate)
{
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

static struct tutti_cu_stream *make_stream(unsigned flags)
{
    struct tutti_cu_stream *stream;

    WORKS(driver()->stream_create(&stream, flags));
    return stream;
}

static struct tutti_cu_event *make_event(unsigned flags)
{
    struct tutti_cu_event *event;

    WORKS(driver()->event_create(&event, flags));
    return event;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void check_contexts(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_context *first, *second, *current;
    struct tutti_cu_stream *stream, *found;
    tutti_cu_address address;
    int device;

    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->memory_alloc(&address, 64));
    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->stream_create(&stream, 0));
    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->context_device(&device));
    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->context_pop(NULL));
    GIVES(TUTTI_CU_INVALID_DEVICE, cuda->device(&device, 2));
    GIVES(TUTTI_CU_INVALID_DEVICE, cuda->primary_retain(&first, 2));
    WORKS(cuda->primary_retain(&first, 0));
    WORKS(cuda->primary_retain(&second, 1));
    WORKS(cuda->context_current(&current));
    MUST(current == NULL);
    WORKS(cuda->context_set(first));
    WORKS(cuda->context_push(second));
    WORKS(cuda->context_device(&device));
    MUST(device == 1);
    stream = make_stream(0);
    WORKS(cuda->stream_context(stream, &current));
    MUST(current == second);
    WORKS(cuda->context_pop(&current));
    MUST(current == second);
    WORKS(cuda->context_device(&device));
    MUST(device == 0);
    WORKS(cuda->stream_context(stream, &current));
    MUST(current == second);
    WORKS(cuda->primary_release(1));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->stream_context(stream, &current));
    GIVES(TUTTI_CU_CONTEXT_IS_DESTROYED, cuda->context_set(second));
    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->primary_release(1));
    WORKS(cuda->primary_release(0));
    GIVES(TUTTI_CU_CONTEXT_IS_DESTROYED, cuda->stream_create(&found, 0));
}

static void contexts_are_of_devices_and_current_in_threads(void **state)
{
    (void)state;
    passes_apart(check_contexts, (struct settings){{"SIMCUDA_DEVICES=2"}});
}

static void check_wrong_context(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream;
    struct tutti_cu_event *event;
    struct try_add arg = {NULL, 0};

    use_device(0);
    stream = make_stream(0);
    event = make_event(0);
    use_device(1);
    GIVES(TUTTI_CU_INVALID_HANDLE, launch("try_add", 1, 32, stream, &arg));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->event_record(event, make_stream(0)));
    WORKS(cuda->event_record(event, stream));
    WORKS(cuda->stream_wait(make_stream(0), event, 0));
    WORKS(cuda->stream_destroy(stream));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->stream_synchronize(stream));
    WORKS(cuda->event_destroy(event));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->event_query(event));
}

static void what_belongs_to_another_context_is_refused(void **state)
{
    (void)state;
    passes_apart(check_wrong_context, (struct settings){{"SIMCUDA_DEVICES=2"}});
}

static void check_no_device(void)
{
    MUST(tutti_cu_get(true) == NULL);
}

static void call_in_child_of_fork(void)
{
    int status, count;
    pid_t child;

    use_device(0);
    child = fork();
    if (child == 0) {
        GIVES(TUTTI_CU_NOT_INITIALIZED, driver()->device_count(&count));
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void without_devices_or_after_a_fork_it_does_not_start(void **state)
{
    (void)state;
    passes_apart(check_no_device, (struct settings){{"SIMCUDA_DEVICES=0"}});
    passes_apart(call_in_child_of_fork, (struct settings){{NULL}});
}

/* ---- streams --------------------------------------------------------------------------------- */

static void check_order(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *stream;
    struct try_fill fill;
    uint64_t *words, *gate, seen[2];

    use_device(0);
    gate = make_gate();
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    words = zeros(1024);
    fill = (struct try_fill){words, 128, 7};
    hold(stream, gate);
    WORKS(launch("try_fill", 2, 32, stream, &fill));
    fill.value = 1000; /* the launch has its own copy */
    WORKS(cuda->set8_async((uintptr_t)words, 0x11, 8, stream));
    GIVES(TUTTI_CU_NOT_READY, cuda->stream_query(stream));
    open_gate(gate);
    WORKS(cuda->copy_async((uintptr_t)seen, (uintptr_t)words, sizeof seen, stream));
    MUST(seen[0] == 0x1111111111111111u && seen[1] == 8);
    WORKS(cuda->stream_synchronize(stream));
    WORKS(cuda->stream_query(stream));
    MUST(peek(&words[127]) == 134);
}

static void a_stream_works_in_order_while_the_caller_goes_on(void **state)
{
    (void)state;
    passes_apart(check_order, (struct settings){{NULL}});
}

static void check_legacy(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *blocking, *free_one;
    uint64_t *gate;

    use_device(0);
    gate = make_gate();
    blocking = make_stream(0);
    free_one = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    hold(blocking, gate);
    WORKS(cuda->set8_async((uintptr_t)gate + 8, 1, 8, NULL));
    WORKS(cuda->set8_async((uintptr_t)gate + 16, 1, 8, free_one));
    WORKS(cuda->stream_synchronize(free_one));
    MUST(gate[2] != 0);
    /* The legacy stream waits for the blocking one, and so does its like of this thread for it. */
    GIVES(TUTTI_CU_NOT_READY, cuda->stream_query(NULL));
    WORKS(cuda->set8_async((uintptr_t)gate + 24, 1, 8, TUTTI_CU_STREAM_PER_THREAD));
    GIVES(TUTTI_CU_NOT_READY, cuda->stream_query(TUTTI_CU_STREAM_PER_THREAD));
    open_gate(gate);
    WORKS(cuda->context_synchronize());
    MUST(gate[1] == 0x0101010101010101u && gate[3] == gate[1]);
}

static void the_legacy_stream_and_blocking_ones_wait_for_each_other(void **state)
{
    (void)state;
    passes_apart(check_legacy, (struct settings){{NULL}});
}

static void count_up(void *argument)
{
    ++*(int *)argument;
}

static void check_events(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_stream *first, *second;
    struct tutti_cu_event *event, *later, *untimed;
    uint64_t *gate;
    int count = 0;
    float ms;

    use_device(0);
    gate = make_gate();
    first = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    second = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    event = make_event(0);
    later = make_event(0);
    untimed = make_event(TUTTI_CU_EVENT_DISABLE_TIMING);
    WORKS(cuda->event_query(event));
    hold(first, gate);
    WORKS(cuda->event_record(event, first));
    WORKS(cuda->event_record(untimed, first));
    WORKS(cuda->stream_wait(second, event, 0));
    WORKS(cuda->host_function(second, count_up, &count));
    WORKS(cuda->event_record(later, second));
    GIVES(TUTTI_CU_NOT_READY, cuda->event_query(event));
    GIVES(TUTTI_CU_NOT_READY, cuda->stream_query(second));
    GIVES(TUTTI_CU_NOT_READY, cuda->event_elapsed(&ms, event, later));
    open_gate(gate);
    WORKS(cuda->event_synchronize(later));
    MUST(count == 1);
    WORKS(cuda->event_query(event));
    WORKS(cuda->event_elapsed(&ms, event, later));
    MUST(ms >= 0);
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->event_elapsed(&ms, event, untimed));
    /* A stream waits for the last recording before the wait. */
    WORKS(cuda->event_record(event, first));
    WORKS(cuda->stream_wait(second, event, 0));
    WORKS(cuda->event_destroy(event));
    WORKS(cuda->stream_destroy(first));
    WORKS(cuda->stream_synchronize(second));
}

static void events_order_streams(void **state)
{
    (void)state;
    passes_apart(check_events, (struct settings){{NULL}});
}

static void call_back(void *argument)
{
    (void)argument;
    driver()->context_synchronize();
}

static void call_from_host_function(void)
{
    use_device(0);
    WORKS(driver()->host_function(NULL, call_back, NULL));
    driver()->context_synchronize();
}

static void host_functions_must_not_call_the_driver(void **state)
{
    (void)state;
    dies_apart(call_from_host_function, "cuCtxSynchronize is called from a host function",
               (struct settings){{NULL}});
}

static void check_injected(void)
{
    struct tutti_cu_stream *stream;

    use_device(0);
    GIVES(2, driver()->stream_create(&stream, 0));
    use_device(1);
    WORKS(driver()->stream_create(&stream, 0));
}

static void any_call_can_be_made_to_fail(void **state)
{
    (void)state;
    passes_apart(check_injected, (struct settings){{"SIMCUDA_DEVICES=2",
                                                    "TUTTI_SIM_CUDA_FAULT=cuStreamCreate:2@0"}});
}

/* The second command of `first` waits for its kernel, and so does the command of `third` if that is
 * behind it in their hardware queue. */
static void check_queues(bool are_shared)
{
    tutti_cu_address numbers;
    struct tutti_cu_stream *first, *second, *third;
    uint64_t *gate;

    use_device(0);
    numbers = (tutti_cu_address)(uintptr_t)zeros(64);
    gate = make_gate();
    first = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    second = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    third = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    hold(first, gate);
    WORKS(driver()->set8_async(numbers, 1, 8, first));
    WORKS(driver()->set8_async(numbers + 8, 1, 8, third));
    WORKS(driver()->set8_async(numbers + 16, 1, 8, second));
    WORKS(driver()->stream_synchronize(second));
    if (!are_shared)
        WORKS(driver()->stream_synchronize(third));
    usleep(20000);
    GIVES(are_shared ? TUTTI_CU_NOT_READY : TUTTI_CU_SUCCESS, driver()->stream_query(third));
    open_gate(gate);
    WORKS(driver()->stream_synchronize(third));
    WORKS(driver()->stream_synchronize(first));
}

static void check_shared_queues(void)
{
    check_queues(true);
}

static void check_own_queues(void)
{
    check_queues(false);
}

static void streams_can_share_hardware_queues(void **state)
{
    (void)state;
    passes_apart(check_shared_queues, (struct settings){{"SIMCUDA_QUEUES=1",
                                                         "CUDA_DEVICE_MAX_CONNECTIONS=2"}});
    passes_apart(check_own_queues, (struct settings){{"SIMCUDA_QUEUES=1",
                                                      "CUDA_DEVICE_MAX_CONNECTIONS=4"}});
    passes_apart(check_own_queues, (struct settings){{NULL}});
}

static void *open_later(void *gate)
{
    usleep(20000);
    open_gate(gate);
    return NULL;
}

/* The kernel has ended when the allocation returns. */
static void check_waiting_allocation(void)
{
    struct tutti_cu_stream *stream;
    pthread_t thread;
    uint64_t *gate;
    void *memory;

    use_device(0);
    gate = make_gate();
    stream = make_stream(TUTTI_CU_STREAM_NON_BLOCKING);
    hold(stream, gate);
    MUST(pthread_create(&thread, NULL, open_later, gate) == 0);
    WORKS(driver()->host_alloc(&memory, 64, TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED));
    WORKS(driver()->stream_query(stream));
    pthread_join(thread, NULL);
}

static void allocations_can_wait_for_kernels(void **state)
{
    (void)state;
    passes_apart(check_waiting_allocation, (struct settings){{"SIMCUDA_WAITS=1"}});
}

static void check_texts(void)
{
    const char *text;

    MUST(strcmp(tutti_cu_error(driver(), TUTTI_CU_LAUNCH_FAILED), "unspecified launch failure") ==
         0);
    GIVES(TUTTI_CU_INVALID_VALUE, driver()->error_name(-5, &text));
    WORKS(driver()->error_name(TUTTI_CU_NOT_READY, &text));
    MUST(strcmp(text, "CUDA_ERROR_NOT_READY") == 0);
}

static void codes_have_names_and_texts(void **state)
{
    (void)state;
    passes_apart(check_texts, (struct settings){{NULL}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_of_devices_and_current_in_threads),
        cmocka_unit_test(what_belongs_to_another_context_is_refused),
        cmocka_unit_test(without_devices_or_after_a_fork_it_does_not_start),
        cmocka_unit_test(a_stream_works_in_order_while_the_caller_goes_on),
        cmocka_unit_test(the_legacy_stream_and_blocking_ones_wait_for_each_other),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(host_functions_must_not_call_the_driver),
        cmocka_unit_test(any_call_can_be_made_to_fail),
        cmocka_unit_test(streams_can_share_hardware_queues),
        cmocka_unit_test(allocations_can_wait_for_kernels),
        cmocka_unit_test(codes_have_names_and_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
