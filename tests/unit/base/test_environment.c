/* SPDX-License-Identifier: Apache-2.0
 * Tests TUTTI_* variables: the known ones, names that are similar to a known one, and the values
 * that are shown. */
#include "base/environment.h"

#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void misspelled_names_are_near_those_that_are_meant(void **state)
{
    static const char *const cases[][2] = {
        {"TUTTI_ALGORITM", "TUTTI_ALGORITHM"},
        {"TUTTI_ALGO", NULL},
        {"TUTTI_TRANSPORT", "TUTTI_TRANSPORTS"},
        {"TUTTI_TIMEOUT", "TUTTI_TIMEOUT_MS"},
        {"TUTTI_INIT_TIMEOUT", "TUTTI_INIT_TIMEOUT_MS"},
        {"TUTTI_SOCKET_IF_NAME", "TUTTI_SOCKET_IFNAME"},
        {"TUTTI_DEBUGFILE", "TUTTI_DEBUG_FILE"},
        {"TUTTI_LOG_LEVEL_OF_ALL", NULL},
        {"TUTTI_", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *nearest = tutti_environment_nearest(cases[i][0]);

        if (cases[i][1] == NULL ? nearest != NULL
                                : nearest == NULL || strcmp(nearest, cases[i][1]) != 0)
            fail_msg("%s is near %s", cases[i][0], nearest != NULL ? nearest : "none");
    }
}

static void every_parameter_is_nearest_to_itself(void **state)
{
    (void)state;
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        const char *name = tutti_param_info((enum tutti_param)param)->name;

        assert_string_equal(tutti_environment_nearest(name), name);
    }
}

/* In a process of its own, with these variables alone: "NAME", "value", ..., NULL. */
static const char *run(void (*fn)(void), const char *const *variables)
{
    int status;
    pid_t pid;

    stderr_text_begin();
    pid = fork();
    if (pid == 0) {
        clearenv();
        for (; *variables != NULL; variables += 2)
            setenv(variables[0], variables[1], 1);
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return stderr_text_end();
}

static void show_all(void)
{
    char text[200];

    tutti_environment_format(text, sizeof text);
    fputs(text, stderr);
}

static void show_in_a_short_text(void)
{
    char text[24];

    tutti_environment_format(text, sizeof text);
    fputs(text, stderr);
}

static void report_twice(void)
{
    tutti_environment_report_unknown(TUTTI_LOG_WARN);
    tutti_environment_report_unknown(TUTTI_LOG_WARN);
}

static void variables_are_shown_but_secrets_are_not(void **state)
{
    static const char *const some[] = {"TUTTI_RANK", "3", "PATH", "/bin", "TUTTI_SECRET", "hush",
                                       "TUTTI_SECRETS", "hush", "TUTTI_TUNE", "", NULL};
    static const char *const none[] = {"PATH", "/bin", "XTUTTI_RANK", "1", NULL};

    (void)state;
    assert_string_equal(run(show_all, some), "TUTTI_RANK=3 TUTTI_SECRET=(set, not shown) "
                                             "TUTTI_SECRETS=(set, not shown)");
    assert_string_equal(run(show_all, none), "none");
    assert_string_equal(run(show_in_a_short_text, some), "TUTTI_RANK=3 TUTTI_S...");
}

static void an_unknown_variable_is_told_once_with_the_one_that_it_is_like(void **state)
{
    static const char *const variables[] = {
        "TUTTI_DEBUG", "warn", "TUTTI_ALGORITM", "ring", "TUTTI_MY_OWN_THING", "1",
        "TUTTI_LOCAL_RANK", "0", "TUTTI_SIM_TOPOLOGY", "x", "TUTTI_TRANSPORTS", "", NULL};
    const char *said = run(report_twice, variables);

    (void)state;
    assert_int_equal(count_lines_with(said, "tutti"), 2);
    assert_int_equal(count_lines_with(said, "WARN TUTTI_ALGORITM is not a variable of this library "
                                            "and has no effect; did you mean TUTTI_ALGORITHM?"), 1);
    assert_int_equal(count_lines_with(said, "WARN TUTTI_MY_OWN_THING is not a variable"), 1);
}

static void values_are_checked_as_the_library_reads_them(void **state)
{
    static const struct {
        enum tutti_param param;
        const char *text;
        bool is_right;
    } cases[] = {
        {TUTTI_PARAM_DEBUG, "INFO", true},     {TUTTI_PARAM_DEBUG, "loud", false},
        {TUTTI_PARAM_DEBUG, "", true},         {TUTTI_PARAM_TIMEOUT_MS, "5000", true},
        {TUTTI_PARAM_TIMEOUT_MS, "-1", false}, {TUTTI_PARAM_FIFO_BYTES, "64K", true},
        {TUTTI_PARAM_FIFO_BYTES, "64X", false}, {TUTTI_PARAM_TUNE, "anything", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tutti_param_accepts(tutti_param_info(cases[i].param), cases[i].text) !=
            cases[i].is_right)
            fail_msg("%s=%s", tutti_param_info(cases[i].param)->name, cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelled_names_are_near_those_that_are_meant),
        cmocka_unit_test(every_parameter_is_nearest_to_itself),
        cmocka_unit_test(variables_are_shown_but_secrets_are_not),
        cmocka_unit_test(an_unknown_variable_is_told_once_with_the_one_that_it_is_like),
        cmocka_unit_test(values_are_checked_as_the_library_reads_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
