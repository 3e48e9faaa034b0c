/* SPDX-License-Identifier: Apache-2.0
 * Text files are read whole, or refused with a message that names the cure. */
#include "base/file.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CURE "give a list"

/* A temporary file that disappears when its descriptor is closed. Its name is in /proc. */
static FILE *file_of(const char *bytes, size_t length, char *ret_name, size_t name_bytes)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fflush(file), 0);
    snprintf(ret_name, name_bytes, "/proc/self/fd/%d", fileno(file));
    return file;
}

static void a_file_of_any_length_up_to_the_limit_is_read(void **state)
{
    static const size_t lengths[] = {0, 1, 4094, 4095, 4096, 4097, 8191, 8192, 50000, 65536};
    char *bytes = malloc(65536);

    (void)state;
    memset(bytes, 'x', 65536);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char name[64], *text;
        size_t length;
        FILE *file = file_of(bytes, lengths[i], name, sizeof name);

        assert_int_equal(tutti_file_read(name, lengths[i], CURE, &text, &length), TUTTI_OK);
        assert_int_equal(length, lengths[i]);
        assert_memory_equal(text, bytes, length);
        assert_int_equal(text[length], '\0');
        free(text);
        if (lengths[i] > 0) {
            assert_int_equal(tutti_file_read(name, lengths[i] - 1, CURE, &text, &length),
                             TUTTI_ERR_ARGUMENT);
            assert_non_null(strstr(tutti_message_last(), " bytes; " CURE));
        }
        fclose(file);
    }
    free(bytes);
}

static void what_is_no_text_is_refused(void **state)
{
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"no-such-file", "open no-such-file: No such file or directory; " CURE},
        {"/proc/self/cmdline", "/proc/self/cmdline has a zero byte, so it is no text; " CURE},
        {"/dev/zero", "/dev/zero has more than 1048576 bytes; " CURE},
        {"/", "read /: Is a directory; give a regular file"},
    };
    char *text = (char *)&state;
    size_t length = 7;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tutti_file_read(cases[i].name, 1 << 20, CURE, &text, &length),
                         TUTTI_ERR_ARGUMENT);
        assert_string_equal(tutti_message_last(), cases[i].says);
        /* Outputs change only on success. */
        assert_ptr_equal(text, &state);
        assert_int_equal(length, 7);
    }
}

static void a_dash_is_standard_input(void **state)
{
    char name[64], *text;
    size_t length;
    FILE *file = file_of("from a pipe", 11, name, sizeof name);

    (void)state;
    assert_non_null(freopen(name, "r", stdin));
    assert_int_equal(tutti_file_read("-", 100, CURE, &text, &length), TUTTI_OK);
    assert_string_equal(text, "from a pipe");
    free(text);
    fclose(file);
}

static void a_file_of_any_bytes_is_loaded(void **state)
{
    char name[64], *bytes = (char *)&state;
    size_t length = 9;
    FILE *file = file_of("a\0b", 3, name, sizeof name);

    (void)state;
    assert_int_equal(tutti_file_load("no-such-file", 3, &bytes, &length), TUTTI_FILE_NOT_OPENED);
    assert_int_equal(tutti_file_load("/", 3, &bytes, &length), TUTTI_FILE_NOT_READ);
    assert_int_equal(tutti_file_load(name, 2, &bytes, &length), TUTTI_FILE_TOO_LONG);
    /* Outputs change only on success. */
    assert_ptr_equal(bytes, &state);
    assert_int_equal(length, 9);
    assert_int_equal(tutti_file_load(name, 3, &bytes, &length), TUTTI_FILE_DONE);
    assert_int_equal(length, 3);
    assert_memory_equal(bytes, "a\0b", 4);
    free(bytes);
    fclose(file);
}

static void the_first_line_of_a_file_has_no_newline(void **state)
{
    static const struct {
        const char *bytes, *line;
    } cases[] = {{"one\ntwo\n", "one"}, {"one", "one"}, {"\ntwo", ""}, {"", ""},
                 {"longer than fits", "longer "}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[64], line[8] = "before";
        FILE *file = file_of(cases[i].bytes, strlen(cases[i].bytes), name, sizeof name);

        assert_int_equal(tutti_file_line(name, line, sizeof line), cases[i].line[0] != '\0');
        assert_string_equal(line, cases[i].line);
        fclose(file);
        assert_false(tutti_file_line("no-such-file", line, sizeof line));
        assert_string_equal(line, "");
    }
}

static void a_field_is_the_rest_of_the_first_line_that_begins_with_its_name(void **state)
{
    static const char bytes[] = "model\t: 85\nmodel name\t: A CPU: fast\nempty :\nempty : full\n";
    static const struct {
        const char *field, *text;
    } cases[] = {{"model name", "A CPU: fast"},
                 {"model", "85"},
                 {"empty", "full"},
                 {"mod", ""},
                 {"name", ""}};
    char name[64], text[12];
    FILE *file = file_of(bytes, sizeof bytes - 1, name, sizeof name);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tutti_file_field(name, cases[i].field, text, sizeof text),
                         cases[i].text[0] != '\0');
        assert_string_equal(text, cases[i].text);
    }
    fclose(file);
    assert_false(tutti_file_field("no-such-file", "model", text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_any_length_up_to_the_limit_is_read),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(a_dash_is_standard_input),
        cmocka_unit_test(a_file_of_any_bytes_is_loaded),
        cmocka_unit_test(the_first_line_of_a_file_has_no_newline),
        cmocka_unit_test(a_field_is_the_rest_of_the_first_line_that_begins_with_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
