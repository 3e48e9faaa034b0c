/* SPDX-License-Identifier: Apache-2.0
 * Sizes are read with and without units, up to the last one that fits. */
#include "base/sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_size_is_digits_and_perhaps_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t size;
        size_t length; /* of what is read */
    } cases[] = {
        {"0", 0, 1},
        {"17", 17, 2},
        {"64K", 65536, 3},
        {"64k-1M", 65536, 3},
        {"1M]", 1 << 20, 2},
        {"3g", UINT64_C(3) << 30, 2},
        {"2T", UINT64_C(2) << 40, 2},
        {"5x", 5, 1},
        {"7KiB", 7168, 2},
        {"18446744073709551615", UINT64_MAX, 20},
        {"16777215T", UINT64_C(16777215) << 40, 9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        uint64_t size = 1;

        assert_true(tutti_size_read(&at, at + strlen(at), &size));
        assert_true(size == cases[i].size);
        assert_int_equal(at - cases[i].text, cases[i].length);
    }
}

static void other_texts_and_larger_sizes_change_nothing(void **state)
{
    static const char *const texts[] = {
        "", "K", "-1", " 1", "18446744073709551616", "16777216T", "99999999999999999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *at = texts[i];
        uint64_t size = 7;

        assert_false(tutti_size_read(&at, at + strlen(at), &size));
        assert_ptr_equal(at, texts[i]);
        assert_int_equal(size, 7);
    }
}

static void nothing_is_read_past_the_end(void **state)
{
    const char text[] = "12K", *at = text;
    uint64_t size;

    (void)state;
    assert_true(tutti_size_read(&at, text + 1, &size));
    assert_int_equal(size, 1);
    at = text;
    assert_true(tutti_size_read(&at, text + 2, &size));
    assert_int_equal(size, 12);
    at = text;
    assert_true(tutti_digits_read(&at, text + 3, &size));
    assert_int_equal(size, 12);
    assert_ptr_equal(at, text + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_digits_and_perhaps_a_unit),
        cmocka_unit_test(other_texts_and_larger_sizes_change_nothing),
        cmocka_unit_test(nothing_is_read_past_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
