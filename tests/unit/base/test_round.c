/* SPDX-License-Identifier: Apache-2.0
 * Sizes are rounded up to units and to powers of two. */
#include "base/round.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_size_is_rounded_up_to_the_next_multiple(void **state)
{
    (void)state;
    for (size_t unit = 1; unit < 100; unit++)
        for (size_t value = 0; value < 1000; value++) {
            size_t rounded = tutti_round_up(value, unit);

            assert_int_equal(rounded % unit, 0);
            assert_true(rounded >= value && rounded - value < unit);
            assert_int_equal(tutti_divide_up(value, unit), rounded / unit);
        }
}

static void a_size_is_rounded_up_to_the_next_power_of_two(void **state)
{
    (void)state;
    assert_int_equal(tutti_power_of_two_from(0), 1);
    for (size_t value = 1; value < 5000; value++) {
        size_t power = tutti_power_of_two_from(value);

        assert_int_equal(power & (power - 1), 0);
        assert_true(power >= value && power / 2 < value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_rounded_up_to_the_next_multiple),
        cmocka_unit_test(a_size_is_rounded_up_to_the_next_power_of_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
