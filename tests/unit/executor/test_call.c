/* SPDX-License-Identifier: Apache-2.0
 * Tests calls that the library itself makes, and copies of calls. */
#include "base/result.h"
#include "executor/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The executor combines by call->op, while peers compare signature.op. */
static void a_call_reduces_by_the_operation_in_its_signature(void **state)
{
    double values[3] = {0};
    struct tutti_call call;

    (void)state;
    tutti_call_of_bytes(TUTTI_ALLREDUCE, TUTTI_FOR_TUNE, values, values, 3, &call);
    tutti_call_of_elements(&call, TUTTI_FLOAT64, TUTTI_MAX);
    assert_int_equal(call.type, TUTTI_FLOAT64);
    assert_int_equal(call.signature.type, TUTTI_FLOAT64);
    assert_int_equal(call.op, TUTTI_MAX);
    assert_int_equal(call.signature.op, TUTTI_MAX);
    assert_int_equal(call.signature.count, 3);
}

static void a_call_that_does_not_reduce_has_no_operation(void **state)
{
    float value = 0;
    struct tutti_call call;

    (void)state;
    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_TUNE, &value, &value, 1, &call);
    tutti_call_of_elements(&call, TUTTI_FLOAT32, TUTTI_SUM);
    assert_int_equal(call.signature.type, TUTTI_FLOAT32);
    assert_int_equal(call.signature.op, TUTTI_OP_NONE);
}

static void a_copy_has_arrays_of_its_own(void **state)
{
    size_t sent[3] = {1, 2, 3}, received[3] = {4, 5, 6}, at[3] = {0, 10, 20};
    struct tutti_call call = {.kind = TUTTI_CALL_VECTOR, .collective = TUTTI_ALLTOALL,
                              .input_counts = sent, .output_counts = received,
                              .output_displs = at};
    struct tutti_call copy, again;

    (void)state;
    assert_int_equal(tutti_call_copy(&call, 3, &copy), TUTTI_OK);
    assert_null(copy.input_displs);
    assert_true(copy.input_counts != sent && copy.output_counts != received);
    assert_true(tutti_call_same_counts(&copy, &call, 3));
    for (int i = 0; i < TUTTI_CALL_ARRAYS; i++)
        for (int j = 0; j < i; j++)
            assert_true(tutti_call_array(&copy, i) != tutti_call_array(&copy, j));
    at[2]++;
    assert_false(tutti_call_same_counts(&copy, &call, 3));
    assert_true(tutti_call_same_counts(&copy, &call, 2));
    assert_int_equal(copy.output_displs[2], 20);

    /* A copy of a copy does not depend on the first copy. */
    assert_int_equal(tutti_call_copy(&copy, 3, &again), TUTTI_OK);
    tutti_call_fini(&copy);
    assert_int_equal(again.output_displs[2], 20);
    call.output_displs = NULL;
    assert_false(tutti_call_same_counts(&again, &call, 3));
    tutti_call_fini(&again);
}

static void a_call_without_arrays_has_one_count(void **state)
{
    struct tutti_call call = {.kind = TUTTI_CALL_VECTOR, .collective = TUTTI_GATHER, .root = 2,
                              .count = 5};
    struct tutti_call copy;
    const size_t counts[3] = {4, 0, 6};

    (void)state;
    assert_int_equal(tutti_call_copy(&call, 3, &copy), TUTTI_OK);
    assert_true(tutti_call_same_counts(&copy, &call, 3));
    assert_int_equal(tutti_call_gives(&call, 1, 2), 5);
    assert_int_equal(tutti_call_gives(&call, 1, 0), 0);
    assert_int_equal(tutti_call_takes(&call, 1, 2), 0);
    call.count = 6;
    assert_false(tutti_call_same_counts(&copy, &call, 3));

    /* The same call at the root, which has the counts of all ranks. */
    call.output_counts = counts;
    assert_int_equal(tutti_call_gives(&call, 2, 2), 6);
    assert_int_equal(tutti_call_gives(&call, 2, 0), 0);
    assert_int_equal(tutti_call_takes(&call, 2, 0), 4);
    assert_int_equal(tutti_call_takes(&call, 2, 1), 0);
    tutti_call_fini(&copy);
}

static void a_call_without_arrays_has_nothing_to_free(void **state)
{
    struct tutti_call call = {.kind = TUTTI_CALL_COLLECTIVE}, copy;

    (void)state;
    tutti_call_fini(&call);
    assert_int_equal(tutti_call_copy(&call, 3, &copy), TUTTI_OK);
    assert_null(copy.own_arrays);
    tutti_call_fini(&copy);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_reduces_by_the_operation_in_its_signature),
        cmocka_unit_test(a_call_that_does_not_reduce_has_no_operation),
        cmocka_unit_test(a_copy_has_arrays_of_its_own),
        cmocka_unit_test(a_call_without_arrays_has_one_count),
        cmocka_unit_test(a_call_without_arrays_has_nothing_to_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
