/* SPDX-License-Identifier: Apache-2.0
 * Tests calls that the library itself makes. */
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_reduces_by_the_operation_in_its_signature),
        cmocka_unit_test(a_call_that_does_not_reduce_has_no_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
