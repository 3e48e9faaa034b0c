/* SPDX-License-Identifier: Apache-2.0
 * Tests environment variables: values that are accepted, and values that are refused and reported.
 */
#include "base/param.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static int forget(void **state)
{
    (void)state;
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++)
        unsetenv(tutti_param_info(param)->name);
    tutti_param_reset();
    return 0;
}

/* Set the variable, and read it with what is written to stderr caught in `ret_report`. */
static void look_up(enum tutti_param param, const char *text, char *ret_report, size_t size)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    tutti_param_reset();
    setenv(tutti_param_info(param)->name, text, 1);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    tutti_param_int(param);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);

    rewind(file);
    length = fread(ret_report, 1, size - 1, file);
    ret_report[length] = '\0';
    fclose(file);
}

static void integers_are_read_with_their_suffixes(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"8192", 8192},     {"8k", 8192},        {"8K", 8192},
                 {"3M", 3 << 20},    {"3m", 3 << 20},     {"1G", 1 << 30},
                 {"1g", 1 << 30},    {"1048576K", 1 << 30}};
    char report[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        look_up(TUTTI_PARAM_WINDOW_BYTES, cases[i].text, report, sizeof report);
        assert_int_equal(tutti_param_int(TUTTI_PARAM_WINDOW_BYTES), cases[i].value);
        assert_string_equal(report, "");
    }
}

static void bad_integers_are_reported_and_the_default_is_used(void **state)
{
    static const char *const texts[] = {
        "abc", "8192x", "8192KB", "8192 ", "-1", "8191", "1073741825", "2G", "K",
        "99999999999999999999", "9223372036854775807G", "-9223372036854775807G", "0x4000", "1.5M"};
    char report[256];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        look_up(TUTTI_PARAM_WINDOW_BYTES, texts[i], report, sizeof report);
        assert_int_equal(tutti_param_int(TUTTI_PARAM_WINDOW_BYTES), 512 << 10);
        assert_non_null(strstr(report, "TUTTI_WINDOW_BYTES"));
        assert_non_null(strstr(report, texts[i]));
        assert_non_null(strstr(report, "8192 to 1073741824"));
        assert_ptr_equal(strchr(report, '\n'), report + strlen(report) - 1);
    }
}

static void a_choice_is_the_index_of_its_name_in_upper_or_lower_case(void **state)
{
    static const char *const names[][2] = {{"none", "NONE"},   {"version", "Version"},
                                           {"error", "ERROR"}, {"warn", "Warn"},
                                           {"info", "INFO"},   {"debug", "dEBUG"},
                                           {"trace", "TRACE"}};
    char report[256];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < 2; k++) {
            look_up(TUTTI_PARAM_DEBUG, names[i][k], report, sizeof report);
            assert_int_equal(tutti_param_int(TUTTI_PARAM_DEBUG), i);
            assert_string_equal(report, "");
        }
}

static void an_unknown_choice_is_reported_with_those_that_exist(void **state)
{
    static const char *const texts[] = {"warning", "war", "WAR", "warn|info", "|", "2"};
    const int64_t fallback = tutti_param_int(TUTTI_PARAM_DEBUG);
    char report[256];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        look_up(TUTTI_PARAM_DEBUG, texts[i], report, sizeof report);
        assert_non_null(strstr(report, "TUTTI_DEBUG"));
        assert_non_null(strstr(report, "none|version|error|warn"));
        assert_int_equal(tutti_param_int(TUTTI_PARAM_DEBUG), fallback);
    }
}

static void text_is_copied_and_kept(void **state)
{
    const char *text;

    (void)state;
    setenv("TUTTI_SOCKET_IFNAME", "eth,ib0", 1);
    text = tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME);
    assert_string_equal(text, "eth,ib0");
    setenv("TUTTI_SOCKET_IFNAME", "other", 1);
    assert_ptr_equal(tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME), text);
    assert_string_equal(text, "eth,ib0");
}

static void unset_and_empty_are_the_default(void **state)
{
    char report[256];

    (void)state;
    assert_string_equal(tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME), "");
    assert_int_equal(tutti_param_int(TUTTI_PARAM_INIT_TIMEOUT_MS), 120000);
    look_up(TUTTI_PARAM_INIT_TIMEOUT_MS, "", report, sizeof report);
    assert_int_equal(tutti_param_int(TUTTI_PARAM_INIT_TIMEOUT_MS), 120000);
    assert_string_equal(report, "");
}

static void every_declared_default_is_valid(void **state)
{
    char report[256];

    (void)state;
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        const struct tutti_param_info *info = tutti_param_info(param);

        assert_int_equal(strncmp(info->name, "TUTTI_", 6), 0);
        assert_true(strlen(info->help) > 0);
        look_up(param, info->fallback, report, sizeof report);
        assert_string_equal(report, "");
        if (info->kind == TUTTI_PARAM_KIND_INT)
            assert_in_range(tutti_param_int(param) - info->low, 0, info->high - info->low);
    }
}

static void what_is_given_is_read_anew_and_an_empty_text_is_not_given(void **state)
{
    const char *name = tutti_param_info(TUTTI_PARAM_SECRET)->name;

    (void)state;
    assert_null(tutti_param_given(TUTTI_PARAM_SECRET));
    setenv(name, "", 1);
    assert_null(tutti_param_given(TUTTI_PARAM_SECRET));
    setenv(name, "first", 1);
    assert_string_equal(tutti_param_given(TUTTI_PARAM_SECRET), "first");
    assert_string_equal(tutti_variable_given(name), "first");
    setenv(name, "second", 1);
    assert_string_equal(tutti_param_given(TUTTI_PARAM_SECRET), "second");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(integers_are_read_with_their_suffixes, forget, forget),
        cmocka_unit_test_setup_teardown(bad_integers_are_reported_and_the_default_is_used, forget,
                                        forget),
        cmocka_unit_test_setup_teardown(a_choice_is_the_index_of_its_name_in_upper_or_lower_case,
                                        forget, forget),
        cmocka_unit_test_setup_teardown(an_unknown_choice_is_reported_with_those_that_exist, forget,
                                        forget),
        cmocka_unit_test_setup_teardown(text_is_copied_and_kept, forget, forget),
        cmocka_unit_test_setup_teardown(unset_and_empty_are_the_default, forget, forget),
        cmocka_unit_test_setup_teardown(every_declared_default_is_valid, forget, forget),
        cmocka_unit_test_setup_teardown(what_is_given_is_read_anew_and_an_empty_text_is_not_given,
                                        forget, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
