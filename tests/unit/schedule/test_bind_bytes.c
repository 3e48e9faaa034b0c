/* SPDX-License-Identifier: Apache-2.0
 * Counts the bytes of a step without a list of segments. The count equals that of bind, for every
 * step of every algorithm. */
#include "algorithms/algorithm.h"
#include "schedule/bind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const struct tutti_schedule *schedule, size_t element_bytes, size_t count)
{
    struct tutti_extent extent = {.element_bytes = element_bytes, .block_count = count};
    struct tutti_bound bound;

    assert_int_equal(tutti_bind(schedule, &extent, &bound), 0);
    for (uint32_t at = 0; at < schedule->nsteps; at++)
        assert_int_equal(
            tutti_bind_step_bytes(schedule, &schedule->steps[at], element_bytes, count),
            bound.steps[at].bytes);
    tutti_bound_fini(&bound);
}

static void steps_have_as_many_bytes_as_bind_finds(void **state)
{
    static const size_t counts[] = {0, 1, 7, 100, 4099};
    static const uint32_t nranks[] = {1, 2, 5, 8, 13};

    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        for (size_t n = 0; n < sizeof(nranks) / sizeof(nranks[0]); n++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                struct tutti_shape shape = {.nranks = nranks[n], .rank = nranks[n] / 2};
                struct tutti_schedule *schedule;

                assert_int_equal(
                    tutti_algorithm_schedule(tutti_algorithm(i), &shape, &schedule), 0);
                check(schedule, 1, counts[c]);
                check(schedule, 4, counts[c]);
                tutti_schedule_destroy(schedule);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_as_many_bytes_as_bind_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
