/* SPDX-License-Identifier: Apache-2.0
 * Tests results and their messages. */
#include "base/result.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static int again(void)
{
    return TUTTI_AGAIN;
}

static int try_passes_on(int rc)
{
    TUTTI_TRY(rc);
    return 100;
}

static int try_or_jumps(int rc, bool *ret_jumped)
{
    int seen;

    TUTTI_TRY_OR(undo, seen, rc);
    return 100;

undo:
    *ret_jumped = true;
    return seen;
}

static void fail_returns_its_code_and_keeps_the_message(void **state)
{
    (void)state;
    assert_int_equal(tutti_fail(TUTTI_ERR_REMOTE, "rank %d of %s", 3, "world"), TUTTI_ERR_REMOTE);
    assert_string_equal(tutti_message_last(), "rank 3 of world");
    assert_int_equal(tutti_note(TUTTI_ERR_SYSTEM, "port %d", 7), TUTTI_ERR_SYSTEM);
    assert_string_equal(tutti_message_last(), "port 7");
}

static void a_message_too_long_is_cut_not_overrun(void **state)
{
    char text[2 * TUTTI_MESSAGE_BYTES];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    tutti_fail(TUTTI_ERR_SYSTEM, "%s", text);
    assert_int_equal(strlen(tutti_message_last()), TUTTI_MESSAGE_BYTES - 1);
    tutti_message_set_last("short");
    tutti_message_set_last(text);
    assert_int_equal(strlen(tutti_message_last()), TUTTI_MESSAGE_BYTES - 1);
}

static void a_message_that_does_not_fit_ends_where_a_clause_or_a_word_does(void **state)
{
    char text[32];

    (void)state;
    tutti_message_copy(text, sizeof text, "rank 3 died; look at its output");
    assert_string_equal(text, "rank 3 died; look at its output");
    tutti_message_copy(text, sizeof text, "here is one call; there is another; call the same");
    assert_string_equal(text, "here is one call...");
    tutti_message_copy(text, sizeof text, "no; this clause would take everything else away");
    assert_string_equal(text, "no; this clause would take...");
    tutti_message_copy(text, 3, "rank 3 died");
    assert_string_equal(text, "..");
    tutti_message_copy(text, sizeof text, "");
    assert_string_equal(text, "");
}

static void a_message_may_be_set_from_itself(void **state)
{
    (void)state;
    tutti_message_set_last("rank 1 left");
    tutti_message_set_last(tutti_message_last());
    assert_string_equal(tutti_message_last(), "rank 1 left");
    tutti_message_set_last(tutti_message_last() + 5);
    assert_string_equal(tutti_message_last(), "1 left");
}

static void *fail_on_thread(void *argument)
{
    (void)argument;
    tutti_fail(TUTTI_ERR_SYSTEM, "of the other thread");
    return NULL;
}

static void messages_belong_to_their_thread(void **state)
{
    pthread_t thread;

    (void)state;
    tutti_message_set_last("of this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_on_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(tutti_message_last(), "of this thread");
}

static void try_leaves_on_everything_but_success(void **state)
{
    bool jumped = false;

    (void)state;
    assert_int_equal(try_passes_on(TUTTI_OK), 100);
    assert_int_equal(try_passes_on(again()), TUTTI_AGAIN);
    assert_int_equal(try_passes_on(TUTTI_ERR_TIMEOUT), TUTTI_ERR_TIMEOUT);
    assert_int_equal(try_or_jumps(TUTTI_OK, &jumped), 100);
    assert_false(jumped);
    assert_int_equal(try_or_jumps(TUTTI_ERR_USAGE, &jumped), TUTTI_ERR_USAGE);
    assert_true(jumped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_returns_its_code_and_keeps_the_message),
        cmocka_unit_test(a_message_too_long_is_cut_not_overrun),
        cmocka_unit_test(a_message_that_does_not_fit_ends_where_a_clause_or_a_word_does),
        cmocka_unit_test(a_message_may_be_set_from_itself),
        cmocka_unit_test(messages_belong_to_their_thread),
        cmocka_unit_test(try_leaves_on_everything_but_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
