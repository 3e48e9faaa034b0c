/* SPDX-License-Identifier: Apache-2.0
 * The commands of docs/first-program.md compile its code, and the program prints the output of the
 * page. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char page[1 << 16];

/* Extracts the page's only block of that language. */
static void extract(const char *language, char *ret_text, size_t size)
{
    char fence[32];
    const char *begin, *end;

    snprintf(fence, sizeof fence, "```%s\n", language);
    begin = strstr(page, fence);
    assert_non_null(begin);
    begin += strlen(fence);
    assert_null(strstr(begin, fence));
    end = strstr(begin, "```");
    assert_non_null(end);
    assert_true((size_t)(end - begin) < size);
    snprintf(ret_text, size, "%.*s", (int)(end - begin), begin);
}

/* As if the library were installed: its header, the library and tutti-run are found without being
 * named. Warnings are errors. */
static void install(void)
{
    char path[8192];

    snprintf(path, sizeof path, "%s:%s", TOOLS, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("CPATH", INCLUDE, 1);
    setenv("LIBRARY_PATH", LIBRARY, 1);
    setenv("LD_LIBRARY_PATH", LIBRARY, 1);
}

/* Each line of `wanted` is a line of `text`, which has no others. */
static void has_the_lines(const char *wanted, const char *text)
{
    size_t wanted_lines = running_count(wanted, "\n");

    assert_int_equal(running_count(text, "\n"), wanted_lines);
    for (const char *line = wanted; *line != '\0'; line = strchr(line, '\n') + 1) {
        char copy[256];

        snprintf(copy, sizeof copy, "%.*s", (int)(strchr(line, '\n') + 1 - line), line);
        if (running_count(text, copy) != 1)
            fail_msg("the page shows %swhich is not in\n%s", copy, text);
    }
}

static void its_commands_compile_and_run_its_code(void **state)
{
    char code[4096], commands[1024], output[1024];
    char *rest = commands, *command;

    (void)state;
    running_read(SOURCE "/docs/first-program.md", page, sizeof page);
    extract("c", code, sizeof code);
    extract("sh", commands, sizeof commands);
    extract("text", output, sizeof output);
    running_write("first.c", code);
    install();
    while ((command = strsep(&rest, "\n")) != NULL && *command != '\0') {
        int status = running_run("env", "%s", command);

        if (status != 0)
            fail_msg("%s: status %d\n%s%s", command, status, running.out, running.err);
        assert_string_equal(running.err, "");
    }
    has_the_lines(output, running.out);
}

static void its_code_is_short_and_without_warnings(void **state)
{
    char code[4096];

    (void)state;
    extract("c", code, sizeof code);
    assert_in_range(running_count(code, "\n"), 10, 25);
    assert_int_equal(running_run("env", "cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only "
                                        "first.c"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_commands_compile_and_run_its_code),
        cmocka_unit_test(its_code_is_short_and_without_warnings),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
