/* SPDX-License-Identifier: Apache-2.0
 * Tests the keys of calls. Each argument tells calls apart, addresses do not, and hashes spread. */
#include "queue/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3 };

static struct tutti_calls_key key_of(const struct tutti_call *call)
{
    return tutti_calls_key_of(call, RANKS, false);
}

static bool equal(struct tutti_calls_key a, struct tutti_calls_key b)
{
    return tutti_calls_key_equal(&a, &b);
}

static const struct tutti_call plain = {.kind = TUTTI_CALL_COLLECTIVE,
                                        .collective = TUTTI_ALLREDUCE, .count = 8};

static void each_argument_tells_calls_apart(void **state)
{
    struct tutti_call others[] = {plain, plain, plain, plain, plain, plain, plain, plain};

    (void)state;
    others[0].kind = TUTTI_CALL_SEND;
    others[1].collective = TUTTI_REDUCE;
    others[2].type = (enum tutti_type)1;
    others[3].op = (enum tutti_op)1;
    others[4].is_average = true;
    others[5].is_premultiplied = true;
    others[6].root = 1;
    others[7].count = 9;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t j = 0; j < i; j++) {
            assert_false(equal(key_of(&others[i]), key_of(&plain)));
            assert_false(equal(key_of(&others[i]), key_of(&others[j])));
        }
    assert_false(equal(tutti_calls_key_of(&plain, RANKS, true), key_of(&plain)));
}

static void addresses_do_not(void **state)
{
    struct tutti_call other = plain;
    char byte;

    (void)state;
    other.input = other.output = &byte;
    assert_true(equal(key_of(&other), key_of(&plain)));
    assert_false(equal(key_of(&plain), (struct tutti_calls_key){.what = 0}));
}

static void a_key_from_arguments_is_that_of_the_checked_call(void **state)
{
    (void)state;
    assert_true(equal(tutti_calls_key(plain.kind, TUTTI_ALLREDUCE, 0, 0, 0, 8, false),
                      key_of(&plain)));
}

static void the_arrays_of_a_v_form_tell_it_apart(void **state)
{
    const size_t counts[RANKS] = {1, 2, 3}, same[RANKS] = {1, 2, 3}, others[RANKS] = {1, 3, 2};
    struct tutti_call call = {.kind = TUTTI_CALL_VECTOR, .collective = TUTTI_ALLGATHER,
                              .output_counts = counts};
    struct tutti_calls_key key = key_of(&call);

    (void)state;
    call.output_counts = same;
    assert_true(equal(key_of(&call), key));
    call.output_counts = others;
    assert_false(equal(key_of(&call), key));
    call.output_counts = NULL;
    call.input_counts = counts;
    assert_false(equal(key_of(&call), key));
}

/* Programs repeat a handful of sizes, often powers of two. */
static void hashes_of_common_sizes_spread(void **state)
{
    uint32_t used = 0;
    int count = 0;

    (void)state;
    for (int shift = 0; shift < 8; shift++) {
        struct tutti_calls_key key = tutti_calls_key(0, 0, 0, 0, 0, (size_t)2 << shift, false);

        used |= 1u << tutti_calls_key_hash(&key, TUTTI_KNOWN_BITS);
    }
    for (; used != 0; used &= used - 1)
        count++;
    assert_true(count >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_argument_tells_calls_apart),
        cmocka_unit_test(addresses_do_not),
        cmocka_unit_test(a_key_from_arguments_is_that_of_the_checked_call),
        cmocka_unit_test(the_arrays_of_a_v_form_tell_it_apart),
        cmocka_unit_test(hashes_of_common_sizes_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
