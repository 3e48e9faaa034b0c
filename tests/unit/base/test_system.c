/* SPDX-License-Identifier: Apache-2.0
 * The system, and what takes its place. */
#include "base/system.h"

#include "base/clock.h"
#include "support/simulated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void time_stands_still_until_it_is_said_to_pass(void **state)
{
    struct simulated simulated;
    uint64_t begun_ns, deadline_ns;

    (void)state;
    simulated_begin(&simulated, 1);
    begun_ns = tutti_now_ns();
    deadline_ns = tutti_deadline_ns(3600 * 1000);
    assert_int_equal(tutti_now_ns(), begun_ns);
    assert_int_equal(deadline_ns, begun_ns + 3600 * TUTTI_NS_PER_S);
    simulated_pass(&simulated, 3600 * TUTTI_NS_PER_S);
    assert_int_equal(tutti_now_ns(), deadline_ns);
    simulated_end();
}

static void a_pause_takes_simulated_time_alone(void **state)
{
    struct simulated simulated;
    uint64_t real_ns = tutti_now_ns(), begun_ns;

    (void)state;
    simulated_begin(&simulated, 1);
    begun_ns = tutti_now_ns();
    tutti_pause_ns(24 * 3600 * TUTTI_NS_PER_S);
    assert_int_equal(tutti_now_ns(), begun_ns + 24 * 3600 * TUTTI_NS_PER_S);
    simulated_end();
    assert_true(tutti_now_ns() - real_ns < 3600 * TUTTI_NS_PER_S);
}

static void the_systems_own_time_goes_on_and_its_pauses_take_time(void **state)
{
    uint64_t begun_ns = tutti_now_ns();

    (void)state;
    tutti_pause_ns(2 * TUTTI_NS_PER_MS);
    assert_true(tutti_now_ns() >= begun_ns + 2 * TUTTI_NS_PER_MS);
}

static void random_bytes_follow_from_the_seed(void **state)
{
    struct simulated simulated;
    uint8_t first[40], again[40], other[40];

    (void)state;
    simulated_begin(&simulated, 7);
    tutti_random_bytes(first, sizeof first);
    simulated_begin(&simulated, 7);
    tutti_random_bytes(again, sizeof again);
    simulated_begin(&simulated, 8);
    tutti_random_bytes(other, sizeof other);
    simulated_end();
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    tutti_random_bytes(other, sizeof other);
    tutti_random_bytes(again, sizeof again);
    assert_memory_not_equal(other, again, sizeof other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_stands_still_until_it_is_said_to_pass),
        cmocka_unit_test(a_pause_takes_simulated_time_alone),
        cmocka_unit_test(the_systems_own_time_goes_on_and_its_pauses_take_time),
        cmocka_unit_test(random_bytes_follow_from_the_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
