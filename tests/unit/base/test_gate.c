/* SPDX-License-Identifier: Apache-2.0
 * A gate admits one thread at a time: with and without an owner, and while the ownership is
 * revoked. */
#include "base/fence.h"
#include "base/gate.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { THREADS = 3, GATES = 10000, ENTRIES = 100 };

static void a_thread_that_is_inside_is_named(void **state)
{
    struct tutti_gate gate;
    const char **pass;

    (void)state;
    for (int may_own = 0; may_own < 2; may_own++) {
        tutti_gate_init(&gate, may_own);
        assert_null(tutti_gate_occupant(&gate));
        for (int round = 0; round < 3; round++) {
            pass = tutti_gate_enter(&gate, "first");
            assert_non_null(pass);
            /* Nor may the same thread come in twice, from a signal handler say. */
            assert_null(tutti_gate_enter(&gate, "second"));
            assert_string_equal(tutti_gate_occupant(&gate), "first");
            tutti_gate_leave(pass);
            assert_null(tutti_gate_occupant(&gate));
        }
    }
}

static void *enter_once(void *argument)
{
    const char **pass = tutti_gate_enter(argument, "other");

    if (pass != NULL)
        tutti_gate_leave(pass);
    return (void *)(uintptr_t)(pass != NULL);
}

static bool lets_another_thread_in(struct tutti_gate *gate)
{
    pthread_t thread;
    void *has_entered;

    assert_int_equal(pthread_create(&thread, NULL, enter_once, gate), 0);
    pthread_join(thread, &has_entered);
    return has_entered != NULL;
}

static void another_thread_is_refused_while_one_is_inside_and_admitted_afterwards(void **state)
{
    struct tutti_gate gate;
    const char **pass;

    (void)state;
    for (int may_own = 0; may_own < 2; may_own++) {
        tutti_gate_init(&gate, may_own);
        for (int round = 0; round < 3; round++) {
            pass = tutti_gate_enter(&gate, "this");
            assert_non_null(pass);
            assert_false(lets_another_thread_in(&gate));
            tutti_gate_leave(pass);
            assert_true(lets_another_thread_in(&gate));
        }
    }
}

/* All threads go through the same gates, at about the same time, so that ownership is taken from a
 * thread which is just entering. The threads count without atomics what a gate guards. */
struct crowd {
    pthread_barrier_t start;
    struct tutti_gate gates[GATES];
    uint64_t guarded[GATES];
};

static void *push_through(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t entered = 0;

    for (int i = 0; i < GATES; i++) {
        pthread_barrier_wait(&crowd->start);
        for (int n = 0; n < ENTRIES; n++) {
            const char **pass = tutti_gate_enter(&crowd->gates[i], "crowd");

            if (pass == NULL)
                continue;
            crowd->guarded[i]++;
            entered++;
            tutti_gate_leave(pass);
        }
    }
    return (void *)(uintptr_t)entered;
}

static void a_crowd_passes_one_at_a_time(void **state)
{
    static struct crowd crowd;
    bool can_fence = tutti_fence_join();

    (void)state;
    for (int may_own = 0; may_own < (can_fence ? 2 : 1); may_own++) {
        pthread_t threads[THREADS];
        uint64_t entered = 0, counted = 0;

        memset(&crowd, 0, sizeof crowd);
        pthread_barrier_init(&crowd.start, NULL, THREADS);
        for (int i = 0; i < GATES; i++)
            tutti_gate_init(&crowd.gates[i], may_own);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, push_through, &crowd), 0);
        for (int i = 0; i < THREADS; i++) {
            void *result;

            pthread_join(threads[i], &result);
            entered += (uintptr_t)result;
        }
        for (int i = 0; i < GATES; i++)
            counted += crowd.guarded[i];
        pthread_barrier_destroy(&crowd.start);
        assert_true(entered > 0);
        assert_int_equal(counted, entered);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_inside_is_named),
        cmocka_unit_test(another_thread_is_refused_while_one_is_inside_and_admitted_afterwards),
        cmocka_unit_test(a_crowd_passes_one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
