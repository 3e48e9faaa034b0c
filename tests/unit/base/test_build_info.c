/* SPDX-License-Identifier: Apache-2.0
 * Tests the description of the build. */
#include "base/build_info.h"
#include "tutti.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void the_version_is_that_of_the_header(void **state)
{
    char version[32];

    (void)state;
    snprintf(version, sizeof version, "%d.%d.%d", TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH);
    assert_string_equal(tutti_version_info.version, version);
    assert_memory_equal(tutti_version_text(), version, strlen(version));
}

static void the_revision_is_in_parentheses_where_it_is_known(void **state)
{
    char text[128];

    (void)state;
    snprintf(text, sizeof text, "%s (%s)", tutti_version_info.version, tutti_version_info.revision);
    if (tutti_version_info.revision[0] == '\0')
        text[strlen(tutti_version_info.version)] = '\0';
    assert_string_equal(tutti_version_text(), text);
}

static void compiler_and_system_are_known(void **state)
{
    (void)state;
    assert_true(strlen(tutti_version_info.compiler) > strlen("GNU "));
    assert_true(strlen(tutti_version_info.system) > strlen("Linux "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(the_revision_is_in_parentheses_where_it_is_known),
        cmocka_unit_test(compiler_and_system_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
