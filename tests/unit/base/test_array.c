/* SPDX-License-Identifier: Apache-2.0
 * Tests that arrays that grow keep their elements, and a failure leaves them as they were. */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void elements_stay_while_an_array_grows(void **state)
{
    uint64_t *numbers = NULL;
    uint32_t count = 0, capacity = 0;

    (void)state;
    while (count < 10000) {
        assert_int_equal(TUTTI_ARRAY_ROOM(numbers, count, capacity, "numbers"), TUTTI_OK);
        assert_true(capacity > count);
        numbers[count] = count * UINT64_C(3);
        count++;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], i * UINT64_C(3));
    free(numbers);
}

static void an_array_with_room_is_left_alone(void **state)
{
    int *numbers = NULL, *before;
    uint32_t capacity = 0, first;

    (void)state;
    assert_int_equal(TUTTI_ARRAY_RESERVE(numbers, 100, capacity, "numbers"), TUTTI_OK);
    before = numbers;
    first = capacity;
    assert_true(first >= 100);
    for (size_t needed = 0; needed <= first; needed++)
        assert_int_equal(TUTTI_ARRAY_RESERVE(numbers, needed, capacity, "numbers"), TUTTI_OK);
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, first);
    free(numbers);
}

static void a_failure_names_the_elements_and_changes_nothing(void **state)
{
    int *numbers = NULL, *before;
    uint32_t capacity = 0, first;

    (void)state;
    assert_int_equal(TUTTI_ARRAY_RESERVE(numbers, 1, capacity, "numbers"), TUTTI_OK);
    before = numbers;
    first = capacity;
    numbers[0] = 7;
    assert_int_equal(TUTTI_ARRAY_RESERVE(numbers, (size_t)UINT32_MAX + 1, capacity, "numbers"),
                     TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), " numbers"));
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, first);
    assert_int_equal(numbers[0], 7);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stay_while_an_array_grows),
        cmocka_unit_test(an_array_with_room_is_left_alone),
        cmocka_unit_test(a_failure_names_the_elements_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
