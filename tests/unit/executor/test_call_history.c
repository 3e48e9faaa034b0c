/* SPDX-License-Identifier: Apache-2.0
 * Tests the chain of calls. A difference remains visible forever, and the first call that differed
 * is named. */
#include "executor/call.h"
#include "executor/call_history.h"

#include "base/result.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* Broadcasts that differ only in their roots. */
static struct tutti_signature broadcast(uint16_t root)
{
    return (struct tutti_signature){.magic = TUTTI_SIGNATURE_MAGIC,
                                    .call = tutti_collective_call(TUTTI_BROADCAST, false),
                                    .type = TUTTI_INT32, .op = TUTTI_OP_NONE, .root = root,
                                    .count = 300};
}

static const struct tutti_header *call(struct tutti_call_history *history, uint16_t root)
{
    struct tutti_signature signature = broadcast(root);

    return tutti_call_history_add(history, &signature);
}

/* Calls 1 to `last` with root 0 but for number `odd`, which has root 1 with the other. */
static void run(struct tutti_call_history *mine, struct tutti_call_history *theirs, uint64_t odd,
                uint64_t last)
{
    *mine = *theirs = (struct tutti_call_history){.sequence = 0};
    for (uint64_t number = 1; number <= last; number++) {
        call(mine, 0);
        call(theirs, number == odd);
    }
}

static const struct tutti_header *last_of(const struct tutti_call_history *history)
{
    return tutti_call_history_find(history, history->sequence);
}

static void equal_calls_make_equal_chains(void **state)
{
    struct tutti_call_history mine, theirs;

    (void)state;
    run(&mine, &theirs, 0, 100);
    assert_true(tutti_header_equal(last_of(&mine), last_of(&theirs)));
    assert_int_equal(last_of(&mine)->sequence, 100);
}

static void each_part_of_a_signature_counts(void **state)
{
    struct tutti_header usual = {.sequence = 1, .signature = broadcast(0)}, odd[8];
    uint64_t chain = tutti_chain_after(&usual);
    size_t count = 0;

    (void)state;
    for (; count < 6; count++)
        odd[count] = usual;
    odd[0].signature.call = tutti_collective_call(TUTTI_SCATTER, false);
    odd[1].signature.type = TUTTI_UINT32;
    odd[2].signature.op = TUTTI_SUM;
    odd[3].signature.root = 255;
    odd[4].signature.root = 256;
    odd[5].signature.count++;
    for (size_t i = 0; i < count; i++) {
        uint64_t differs = chain ^ tutti_chain_after(&odd[i]);

        assert_true(differs >> 32 != 0);
        assert_true((differs & 255) != 0); /* so that the call can be named */
    }
}

static void a_difference_is_never_forgotten(void **state)
{
    struct tutti_call_history mine, theirs;

    (void)state;
    for (uint64_t last = 2; last < 2000; last++) {
        run(&mine, &theirs, 1, last);
        assert_true(last_of(&mine)->chain >> 32 != last_of(&theirs)->chain >> 32);
    }
}

static void calls_in_another_order_differ(void **state)
{
    struct tutti_call_history mine = {.sequence = 0}, theirs = mine;

    (void)state;
    call(&mine, 0);
    call(&mine, 1);
    call(&theirs, 1);
    call(&theirs, 0);
    assert_true(call(&mine, 0)->chain >> 32 != call(&theirs, 0)->chain >> 32);
}

static void the_first_call_that_differed_is_named(void **state)
{
    struct tutti_call_history mine, theirs;
    char name[96];

    (void)state;
    for (uint64_t back = 1; back <= TUTTI_CHAIN_CALLS; back++) {
        run(&mine, &theirs, 20 - back, 20);
        assert_int_equal(tutti_call_history_mismatch(&mine, last_of(&mine), 7, last_of(&theirs)),
                         TUTTI_ERR_USAGE);
        snprintf(name, sizeof name, "on rank 7: number %d, broadcast(count 300, int32, root 0)",
                 20 - (int)back);
        assert_non_null(strstr(tutti_message_last(), name));
        assert_true((strstr(tutti_message_last(), "or one before it") != NULL) ==
                    (back == TUTTI_CHAIN_CALLS));
    }
}

static void what_lies_too_far_back_is_known_to_be_early(void **state)
{
    struct tutti_call_history mine, theirs;

    (void)state;
    run(&mine, &theirs, 15, 20);
    assert_int_equal(tutti_call_history_mismatch(&mine, last_of(&mine), 7, last_of(&theirs)),
                     TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), "before number 20"));
    assert_non_null(strstr(tutti_message_last(), "rank 7"));
}

static void the_last_calls_are_remembered(void **state)
{
    struct tutti_call_history mine, theirs;

    (void)state;
    run(&mine, &theirs, 0, 20);
    for (uint64_t number = 0; number < 25; number++) {
        const struct tutti_header *found = tutti_call_history_find(&mine, number);

        assert_true((found != NULL) == (number > 20 - TUTTI_HISTORY_CALLS && number <= 20));
        assert_true(found == NULL || found->sequence == number);
    }
}

static void a_call_that_both_remember_is_named_on_both_sides(void **state)
{
    struct tutti_call_history mine, theirs;

    (void)state;
    run(&mine, &theirs, 18, 20);
    assert_true(tutti_call_history_has_diverged(&mine, tutti_call_history_find(&mine, 18),
                                                tutti_call_history_find(&theirs, 18)));
    assert_false(tutti_call_history_has_diverged(&mine, last_of(&mine),
                                                 tutti_call_history_find(&theirs, 18)));
    assert_int_equal(tutti_call_history_mismatch(&mine, tutti_call_history_find(&mine, 18), 2,
                                                 tutti_call_history_find(&theirs, 18)),
                     TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), "root 0) here, broadcast(count 300, int32, root "
                                                 "1) there"));
}

/* `theirs` has made `theirs_last` calls, mine `mine_last`; call `odd` differs (0: none). */
static int compare(uint64_t odd, uint64_t mine_last, uint64_t theirs_last)
{
    struct tutti_call_history mine, theirs, unused;

    run(&mine, &unused, odd, mine_last);
    run(&unused, &theirs, odd, theirs_last);
    return tutti_call_history_compare(&mine, 7, theirs_last, tutti_chain_after(last_of(&theirs)));
}

static void who_is_told_of_a_chain_finds_the_call(void **state)
{
    (void)state;
    for (uint64_t last = 17; last <= 23; last++) {
        assert_int_equal(compare(0, 20, last), TUTTI_OK);
        if (last <= 20)
            assert_int_equal(compare(17, 20, last), TUTTI_ERR_USAGE);
        if (last < 20)
            continue;
        assert_int_equal(compare(20, 20, last), TUTTI_ERR_USAGE);
        assert_non_null(strstr(tutti_message_last(), "on rank 7: number 20, broadcast(count 300, "
                                                     "int32, root 0) here"));
    }
}

static void who_is_too_far_ahead_or_behind_cannot_be_compared(void **state)
{
    (void)state;
    assert_int_equal(compare(20, 20, 20 + TUTTI_CHAIN_CALLS), TUTTI_OK);
    assert_int_equal(compare(1, 20, 20 - TUTTI_HISTORY_CALLS), TUTTI_OK);
    assert_int_equal(compare(1, 20, 21 - TUTTI_HISTORY_CALLS), TUTTI_ERR_USAGE);
    /* Calls that I have not made yet. */
    assert_int_equal(compare(21, 20, 22), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_calls_make_equal_chains),
        cmocka_unit_test(each_part_of_a_signature_counts),
        cmocka_unit_test(a_difference_is_never_forgotten),
        cmocka_unit_test(calls_in_another_order_differ),
        cmocka_unit_test(the_first_call_that_differed_is_named),
        cmocka_unit_test(what_lies_too_far_back_is_known_to_be_early),
        cmocka_unit_test(the_last_calls_are_remembered),
        cmocka_unit_test(a_call_that_both_remember_is_named_on_both_sides),
        cmocka_unit_test(who_is_told_of_a_chain_finds_the_call),
        cmocka_unit_test(who_is_too_far_ahead_or_behind_cannot_be_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
