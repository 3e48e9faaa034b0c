/* SPDX-License-Identifier: Apache-2.0
 * Tests schedule files in the library's own form. They are read and proved. Files in other forms
 * are refused with the command that translates them. */
#include "base/result.h"
#include "schedule/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "tutti-schedule 1\ncollective allgather\nranks 2\n"
#define RIGHT \
    HEAD "rank 0\nsend to 1 src input[0]\nrecv from 1 dst output[1]\n" \
         "copy src input[0] dst output[0]\n" \
         "rank 1\nsend to 0 src input[0]\nrecv from 0 dst output[0]\n" \
         "copy src input[0] dst output[1]\n"

static void a_right_file_is_accepted(void **state)
{
    static const char *const texts[] = {RIGHT, "\xef\xbb\xbf" RIGHT};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_ensemble ensemble;

        if (tutti_ensemble_load("f", texts[i], strlen(texts[i]), &ensemble) != TUTTI_OK)
            fail_msg("text %zu: %s", i, tutti_message_last());
        assert_int_equal(ensemble.nranks, 2);
        tutti_ensemble_fini(&ensemble);
    }
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "f:1:1: the file does not begin"},
        {HEAD "rank 0\nrank 1\n", "f: not a right allgather: rank 0"},
        {"<algo/>", "f is XML, and calls run schedules in Tutti's own form; translate it with "
                    "`tutti-sched import f -o FILE` and use FILE"},
        {"\xef\xbb\xbf\r\n <algo/>", "f is XML, "},
        {"\t{}", "f is JSON, "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_ensemble ensemble;

        assert_int_equal(tutti_ensemble_load("f", cases[i].text, strlen(cases[i].text), &ensemble),
                         TUTTI_ERR_ARGUMENT);
        if (strncmp(tutti_message_last(), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s\nsaid: %s", cases[i].text, tutti_message_last());
    }
}

static void a_zero_byte_is_refused(void **state)
{
    static const char text[] = "<a\0>";
    struct tutti_ensemble ensemble;

    (void)state;
    assert_int_equal(tutti_ensemble_load("f", text, sizeof text - 1, &ensemble),
                     TUTTI_ERR_ARGUMENT);
    assert_string_equal(tutti_message_last(), "f: byte 2 is zero; this is no schedule");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_is_accepted),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_zero_byte_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
