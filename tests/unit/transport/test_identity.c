/* SPDX-License-Identifier: Apache-2.0
 * Tests names of hosts: those of this host, and those that other ranks have sent. */
#include "transport/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_name_from_elsewhere_is_made_fit_for_display(void **state)
{
    static const char *const cases[][2] = {
        {"node-1_a", "node-1_a"},
        {"a.b c\n\033[31m", "a?b?c???31m"},
        {"\"; rm", "???rm"},
        {"\xc3\xa9", "??"},
        {"", "unknown"},
    };
    char name[TUTTI_HOST_NAME_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(name, 0, sizeof name);
        memcpy(name, cases[i][0], strlen(cases[i][0]));
        tutti_identity_clean_name(name);
        assert_string_equal(name, cases[i][1]);
    }
}

static void a_name_without_an_end_gets_one(void **state)
{
    char name[TUTTI_HOST_NAME_BYTES];

    (void)state;
    memset(name, 'x', sizeof name);
    tutti_identity_clean_name(name);
    assert_int_equal(strlen(name), sizeof name - 1);
}

static void this_host_has_a_short_name(void **state)
{
    char name[TUTTI_HOST_NAME_BYTES], cleaned[TUTTI_HOST_NAME_BYTES];

    (void)state;
    memset(name, 'x', sizeof name);
    tutti_identity_host_name(name);
    assert_in_range(strlen(name), 1, sizeof name - 1);
    assert_null(strchr(name, '.'));
    memcpy(cleaned, name, sizeof name);
    tutti_identity_clean_name(cleaned);
    assert_string_equal(cleaned, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_from_elsewhere_is_made_fit_for_display),
        cmocka_unit_test(a_name_without_an_end_gets_one),
        cmocka_unit_test(this_host_has_a_short_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
