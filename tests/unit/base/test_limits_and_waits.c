/* SPDX-License-Identifier: Apache-2.0
 * Tests when a long wait is reported, and how the limit of open files is raised. */
#include "base/clock.h"
#include "base/limits.h"
#include "base/long_wait.h"
#include "base/param.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_and_reset(const char *name, const char *value)
{
    setenv(name, value, 1);
    tutti_param_reset();
}

static void a_wait_is_told_when_its_length_has_doubled(void **state)
{
    static const struct { uint64_t after_ms; bool is_told; } looks[] = {
        {0, false}, {99, false}, {100, true}, {101, false}, {199, false}, {200, true},
        {399, false}, {400, true}, {401, false}, {900, true}, {1599, false}, {1600, true},
    };
    struct tutti_long_wait wait = {.lines = 0};
    uint64_t begin_ns = 12345 * TUTTI_NS_PER_S;

    (void)state;
    set_and_reset("TUTTI_WAIT_WARN_MS", "100");
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        double seconds = 0;
        uint64_t now_ns = begin_ns + looks[i].after_ms * TUTTI_NS_PER_MS;
        bool is_told = tutti_long_wait_is_due(&wait, now_ns, &seconds);

        if (is_told != looks[i].is_told)
            fail_msg("after %d ms: told %d", (int)looks[i].after_ms, is_told);
        if (is_told)
            assert_true((uint64_t)(seconds * 1000 + 0.5) == looks[i].after_ms);
    }
}

static void a_very_long_wait_is_still_told_only_at_each_doubling(void **state)
{
    struct tutti_long_wait wait = {.lines = 0};
    double seconds;

    (void)state;
    set_and_reset("TUTTI_WAIT_WARN_MS", "1");
    assert_false(tutti_long_wait_is_due(&wait, 1, &seconds));
    for (uint64_t after_ms = 1; after_ms < UINT64_C(1) << 40; after_ms *= 2) {
        uint64_t now_ns = 1 + after_ms * TUTTI_NS_PER_MS;

        assert_true(tutti_long_wait_is_due(&wait, now_ns, &seconds));
        assert_false(tutti_long_wait_is_due(&wait, now_ns + 1, &seconds));
    }
}

static void a_wait_is_never_told_when_that_is_switched_off(void **state)
{
    struct tutti_long_wait wait = {.lines = 0};
    double seconds;

    (void)state;
    set_and_reset("TUTTI_WAIT_WARN_MS", "0");
    for (uint64_t hour = 0; hour < 100; hour++)
        assert_false(tutti_long_wait_is_due(&wait, 1 + hour * 3600 * TUTTI_NS_PER_S, &seconds));
}

/* In a child, for a process raises its limit once. Returns the soft limit afterwards. */
static int soft_limit_after(const char *parameter, int soft, int hard, int calls)
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};

        set_and_reset("TUTTI_RAISE_LIMITS", parameter);
        for (int i = 0; i < calls; i++) {
            setrlimit(RLIMIT_NOFILE, &limit);
            tutti_limits_raise();
        }
        getrlimit(RLIMIT_NOFILE, &limit);
        _exit((int)limit.rlim_cur);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_soft_limit_is_raised_to_the_hard_one_once(void **state)
{
    (void)state;
    assert_int_equal(soft_limit_after("on", 40, 70, 1), 70);
    assert_int_equal(soft_limit_after("on", 70, 70, 1), 70);
    /* The limit that the program sets afterwards stays. */
    assert_int_equal(soft_limit_after("on", 40, 70, 2), 40);
    assert_int_equal(soft_limit_after("off", 40, 70, 1), 40);
}

static void a_reached_limit_is_told_with_its_value_and_the_cure(void **state)
{
    char text[TUTTI_LIMITS_TEXT_BYTES];

    (void)state;
    assert_true(tutti_limits_are_reached(EMFILE));
    assert_true(tutti_limits_are_reached(ENFILE));
    assert_false(tutti_limits_are_reached(ECONNREFUSED));
    assert_false(tutti_limits_are_reached(EAFNOSUPPORT));
    tutti_limits_describe(EMFILE, text);
    assert_non_null(strstr(text, strerror(EMFILE)));
    assert_non_null(strstr(text, "ulimit -n"));
    assert_string_equal(tutti_limits_describe(ENOMEM, text), strerror(ENOMEM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_told_when_its_length_has_doubled),
        cmocka_unit_test(a_very_long_wait_is_still_told_only_at_each_doubling),
        cmocka_unit_test(a_wait_is_never_told_when_that_is_switched_off),
        cmocka_unit_test(the_soft_limit_is_raised_to_the_hard_one_once),
        cmocka_unit_test(a_reached_limit_is_told_with_its_value_and_the_cure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
