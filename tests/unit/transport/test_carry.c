/* SPDX-License-Identifier: Apache-2.0
 * Puts bytes together and takes them out again, in every split. */
#include "transport/carry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void bytes_come_out_in_order_however_they_are_split(void **state)
{
    (void)state;
    for (size_t have = 0; have <= TUTTI_CARRY_BYTES; have++)
        for (size_t first = 0; first <= TUTTI_CARRY_BYTES + 1; first++)
            for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
                struct tutti_carry carry = {.have = have};
                uint8_t out[2 * TUTTI_CARRY_BYTES];
                size_t expected = first < have ? first : have;

                /* Those behind the first `have` must not come out. */
                for (size_t i = 0; i < TUTTI_CARRY_BYTES; i++)
                    carry.bytes[i] = (uint8_t)(i + 1);
                if (is_dropped)
                    assert_int_equal(tutti_carry_drop(&carry, first), expected);
                else
                    assert_int_equal(tutti_carry_take(&carry, out, first), expected);
                assert_int_equal(carry.have, have - expected);
                assert_int_equal(tutti_carry_take(&carry, out + expected, sizeof out - expected),
                                 have - expected);
                for (size_t i = is_dropped ? expected : 0; i < have; i++)
                    assert_int_equal(out[i], i + 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_in_order_however_they_are_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
