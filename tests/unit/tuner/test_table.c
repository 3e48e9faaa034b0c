/* SPDX-License-Identifier: Apache-2.0
 * Tests tables of measured choices, and policies as bytes. */
#include "base/param.h"
#include "base/result.h"
#include "tuner/policy.h"
#include "tuner/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tables -------------------------------------------------------------------------------- */

static void replaced(const char *before, uint32_t collectives, const char *lines, const char *after)
{
    struct tutti_rules rules;
    char *table;

    assert_int_equal(tutti_table_replace(before, "here", collectives, lines, &table), TUTTI_OK);
    assert_string_equal(table, after);
    assert_int_equal(tutti_rules_parse("table", table, &rules), TUTTI_OK);
    tutti_rules_fini(&rules);
    free(table);
}

static void new_lines_replace_those_of_one_machine_and_collective(void **state)
{
    uint32_t allreduce = 1u << TUTTI_ALLREDUCE;

    (void)state;
    replaced("", allreduce, "allreduce 0-8 ring\n", "on here\nallreduce 0-8 ring\n");
    replaced("on here\nallreduce 0-8 ring\n", allreduce, "allreduce 0-9 swing\n",
             "on here\nallreduce 0-9 swing\n");
    replaced("on here\nbroadcast chain\nallreduce 0-8 ring\n", allreduce, "allreduce 9 swing\n",
             "on here\nbroadcast chain\nallreduce 9 swing\n");
    replaced("# mine\non there\nallreduce ring\non here\nallreduce ring\non afar\nallreduce ring",
             allreduce, "allreduce swing\n",
             "# mine\non there\nallreduce ring\non afar\nallreduce ring\non here\n"
             "allreduce swing\n");
    replaced("on hereabouts; allreduce ring; on here; allreduce ring; broadcast chain", allreduce,
             "allreduce swing\n",
             "on hereabouts; allreduce ring;\non here\n broadcast chain\nallreduce swing\n");
}

static void a_table_is_written_as_a_whole(void **state)
{
    char path[] = "/tmp/tutti-table-XXXXXX", line[64] = "", where[128];
    int fd = mkstemp(path);
    FILE *file;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(tutti_table_write(path, "allreduce ring\n"), TUTTI_OK);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "allreduce ring\n");
    fclose(file);
    unlink(path);
    snprintf(where, sizeof where, "%s/in/no/directory", path);
    assert_int_equal(tutti_table_write(where, ""), TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), where));
}

static void a_machine_has_a_name_without_blanks(void **state)
{
    struct tutti_tuner_view view = {.nranks = 6};
    char host[TUTTI_HOST_BYTES], name[TUTTI_FINGERPRINT_BYTES], other[TUTTI_FINGERPRINT_BYTES];
    struct tutti_rules rules;
    char text[TUTTI_FINGERPRINT_BYTES + 32];

    (void)state;
    tutti_host_describe(host);
    tutti_fingerprint(host, &view, "tcp", name);
    view.nranks = 7;
    tutti_fingerprint(host, &view, "tcp", other);
    assert_string_not_equal(name, other);
    assert_non_null(strstr(name, "ranks=6,nodes=6,tcp"));
    snprintf(text, sizeof text, "on %s\nallreduce ring", name);
    assert_int_equal(tutti_rules_parse("table", text, &rules), TUTTI_OK);
    assert_string_equal(rules.rules[0].machine, name);
    tutti_rules_fini(&rules);
}

/* ---- policies ------------------------------------------------------------------------------ */

static void a_policy_is_the_same_after_its_journey(void **state)
{
    const char *text[TUTTI_POLICY_TEXTS] = {"allreduce:ring", "broadcast 0-8 chain",
                                            "on x; reduce chain", NULL, "/a/table", NULL, "host"};
    struct tutti_policy *policy, *copy;

    (void)state;
    assert_int_equal(tutti_policy_create(text, &policy), TUTTI_OK);
    assert_int_equal(tutti_policy_unpack(policy->bytes, policy->size, &copy), TUTTI_OK);
    for (int i = 0; i < TUTTI_POLICY_TEXTS; i++)
        assert_string_equal(copy->text[i], text[i] ? text[i] : "");
    for (int i = 0; i < TUTTI_POLICY_RULES; i++) {
        assert_int_equal(copy->rules[i].count, 1);
        assert_int_equal(copy->rules[i].rules[0].collective,
                         policy->rules[i].rules[0].collective);
    }
    assert_string_equal(copy->rules[TUTTI_POLICY_TABLE].rules[0].machine, "x");

    /* Cut short anywhere, it is none. */
    for (size_t size = 0; size < policy->size; size++) {
        struct tutti_policy *none = NULL;

        assert_int_equal(tutti_policy_unpack(policy->bytes, size, &none), TUTTI_ERR_USAGE);
        assert_null(none);
    }
    assert_ptr_equal(tutti_policy_retain(policy), policy);
    tutti_policy_release(policy);
    assert_string_equal(policy->text[0], "allreduce:ring");
    tutti_policy_release(policy);
    tutti_policy_release(copy);
}

struct reading {
    const char *name, *value, *word;
};

static void set(const char *name, const char *value)
{
    unsetenv("TUTTI_ALGORITHM");
    unsetenv("TUTTI_TUNE");
    unsetenv("TUTTI_TUNE_TABLE");
    unsetenv("TUTTI_MACHINE");
    if (name != NULL)
        setenv(name, value, 1);
    tutti_param_reset();
}

static void what_the_environment_gets_wrong_is_said(void **state)
{
    static const struct reading wrong[] = {
        {"TUTTI_ALGORITHM", "allreduce:nonesuch", "TUTTI_ALGORITHM:1:11"},
        {"TUTTI_TUNE", "allreduce 8-0 ring", "TUTTI_TUNE:1:11"},
        {"TUTTI_TUNE", "/no/such/file", "/no/such/file"},
        {"TUTTI_TUNE", "/", "/"},
        {"TUTTI_TUNE_TABLE", "/no/such/table", "TUTTI_TUNE_TABLE"},
        {"TUTTI_TUNE_TABLE", "/dev/zero", "no text"},
        {"TUTTI_MACHINE", "level top overhead 5 bandwidth 50GB/s", "TUTTI_MACHINE"},
        {"TUTTI_MACHINE", "nonesuch", "nonesuch"},
    };
    struct tutti_policy *policy;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set(wrong[i].name, wrong[i].value);
        if (tutti_policy_read(4, &policy) != TUTTI_ERR_USAGE)
            fail_msg("%s=%s is taken", wrong[i].name, wrong[i].value);
        if (strstr(tutti_message_last(), wrong[i].word) == NULL)
            fail_msg("%s=%s: %s", wrong[i].name, wrong[i].value, tutti_message_last());
    }
    set(NULL, NULL);
    assert_int_equal(tutti_policy_read(4, &policy), TUTTI_OK);
    assert_null(policy);
}

static void rules_come_from_files_or_stand_for_themselves(void **state)
{
    char path[] = "/tmp/tutti-rules-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "allreduce ring\nbroadcast ring\n";
    struct tutti_policy *policy;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, 15), 15);
    set("TUTTI_TUNE", path);
    assert_int_equal(tutti_policy_read(4, &policy), TUTTI_OK);
    assert_int_equal(policy->rules[TUTTI_POLICY_RULE].count, 1);
    tutti_policy_release(policy);

    /* The message names the file and its line. */
    assert_int_equal(write(fd, text + 15, 15), 15);
    close(fd);
    assert_int_equal(tutti_policy_read(4, &policy), TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), path));
    assert_non_null(strstr(tutti_message_last(), ":2:11: "));
    unlink(path);

    set("TUTTI_TUNE", "allreduce ring; broadcast chain");
    assert_int_equal(tutti_policy_read(4, &policy), TUTTI_OK);
    assert_int_equal(policy->rules[TUTTI_POLICY_RULE].count, 2);
    tutti_policy_release(policy);
    set(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_lines_replace_those_of_one_machine_and_collective),
        cmocka_unit_test(a_table_is_written_as_a_whole),
        cmocka_unit_test(a_machine_has_a_name_without_blanks),
        cmocka_unit_test(a_policy_is_the_same_after_its_journey),
        cmocka_unit_test(what_the_environment_gets_wrong_is_said),
        cmocka_unit_test(rules_come_from_files_or_stand_for_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
