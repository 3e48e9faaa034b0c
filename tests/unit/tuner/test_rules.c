/* SPDX-License-Identifier: Apache-2.0
 * Tests rules as text: which rule matches a call, and the messages for wrong text. */
#include "base/result.h"
#include "tuner/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

/* ---- text that is no rule ------------------------------------------------------------------ */

struct mistake {
    const char *text;
    const char *where; /* how the message begins */
    const char *word;  /* what it has in it */
};

static void check(const struct mistake *mistake,
                  int (*parse)(const char *name, const char *text, struct tutti_rules *ret_rules))
{
    struct tutti_rules rules = {.count = 77};
    int rc = parse("rules", mistake->text, &rules);

    if (rc != TUTTI_ERR_USAGE)
        fail_msg("\"%s\" gives %d", mistake->text, rc);
    if (strncmp(tutti_message_last(), mistake->where, strlen(mistake->where)) != 0 ||
        strstr(tutti_message_last(), mistake->word) == NULL ||
        strchr(tutti_message_last(), '\n') != NULL)
        fail_msg("\"%s\" says: %s", mistake->text, tutti_message_last());
    assert_int_equal(rules.count, 77);
}

static void a_mistake_is_named_with_line_and_column(void **state)
{
    static const struct mistake mistakes[] = {
        {"allfold ring", "rules:1:1: ", "\"allfold\" is no collective"},
        {"\n\n  allfold ring", "rules:3:3: ", "reduce_scatter"},
        {"allreduce", "rules:1:10: ", "names no algorithm"},
        {"allreduce 0-64K", "rules:1:16: ", "names no algorithm"},
        {"allreduce ring # fine\nbroadcast ring", "rules:2:11: ", "broadcast has no algorithm"},
        {"allreduce ring; broadcast ring", "rules:1:27: ", "docs/algorithms.md"},
        {"allreduce 64K-0 ring", "rules:1:11: ", "lower end first"},
        {"allreduce 64Q ring", "rules:1:11: ", "\"64Q\" is no range"},
        {"allreduce 0-64K-128K ring", "rules:1:11: ", "is no range"},
        {"allreduce 0- ring", "rules:1:11: ", "is no range"},
        {"allreduce 99999999999999999999 ring", "rules:1:11: ", "is no range"},
        {"allreduce 0-1K ranks ring", "rules:1:22: ", "is no range"},
        {"allreduce ranks 9-2 ring", "rules:1:17: ", "lower end first"},
        {"allreduce nodes", "rules:1:16: ", "is no range"},
        {"allreduce hybrid doubling=2", "rules:1:18: ", "\"doubling=2\" is no option"},
        {"allreduce hybrid 3", "rules:1:18: ", "is no option"},
        {"allreduce hybrid doublings=", "rules:1:18: ", "is no value"},
        {"allreduce hybrid doublings=x", "rules:1:18: ", "is no value"},
        {"allreduce hybrid doublings=0", "rules:1:18: ", "from 1 on"},
        {"allreduce hybrid doublings=-1", "rules:1:18: ", "is no value"},
        {"allreduce hybrid doublings=4294967296", "rules:1:18: ", "is no value"},
        {"allreduce hybrid doublings=33", "rules:1:18: ", "it may be 1 to 32"},
        {"allreduce ring doublings=2", "rules:1:16: ", "has no option \"doublings\""},
        {"on", "rules:1:3: ", "needs the name of a machine"},
        {"on this machine", "rules:1:9: ", "no blanks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check(&mistakes[i], tutti_rules_parse);
}

static void a_mistake_in_the_short_form_is_named_too(void **state)
{
    static const struct mistake mistakes[] = {
        {"ring", "rules:1:1: ", "collective:algorithm"},
        {"allfold:ring", "rules:1:1: ", "\"allfold\" is no collective"},
        {"allreduce:ring,broadcast:", "rules:1:26: ", "broadcast has no algorithm"},
        {"allreduce:ring:4", "rules:1:15: ", "separate them by commas"},
        {"allreduce:hybrid[doublings=3", "rules:1:18: ", "not closed"},
        {"allreduce:hybrid[]", "rules:1:18: ", "is no option"},
        {"allreduce:hybrid[doublings=3]x", "rules:1:30: ", "separate them by commas"},
        {"allreduce:hybrid[doublings=3,radix=2]", "rules:1:30: ", "has no option \"radix\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check(&mistakes[i], tutti_rules_parse_short);
}

/* ---- what fits ----------------------------------------------------------------------------- */

static const char *found(const struct tutti_rules *rules, enum tutti_collective collective,
                         uint32_t nranks, size_t bytes)
{
    static const uint32_t node[64] = {0};
    struct tutti_placement places = {.nranks = nranks, .node = node, .nnodes = 1};
    struct tutti_tuner_view view = {.nranks = nranks, .places = &places, .fingerprint = "here"};
    struct tutti_tuner_query query = {.collective = collective, .block_bytes = bytes};
    const struct tutti_rule *rule = tutti_rules_find(rules, &view, &query);

    return rule ? rule->choice.algorithm->name : "none";
}

static void the_first_rule_that_fits_wins(void **state)
{
    static const char text[] = "# a comment ; with a semicolon\n"
                               "allreduce 0-64K ranks 2-16 recursive_doubling\r\n"
                               "\tallreduce 1M-inf swing;;allreduce 64K-inf hybrid doublings=2 #\n"
                               "allreduce nodes 2-inf ring\n"
                               "broadcast 8 scatter_allgather";
    struct tutti_rules rules;

    (void)state;
    assert_int_equal(tutti_rules_parse("rules", text, &rules), TUTTI_OK);
    assert_int_equal(rules.count, 5);
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 2, 0), "recursive_doubling");
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 16, 65536), "recursive_doubling");
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 17, 65536), "hybrid");
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 17, 65535), "none");
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 2, 65537), "hybrid");
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 2, 1 << 20), "swing");
    assert_string_equal(found(&rules, TUTTI_BROADCAST, 2, 8), "scatter_allgather");
    assert_string_equal(found(&rules, TUTTI_BROADCAST, 2, 9), "none");
    assert_int_equal(rules.rules[2].choice.options.value[TUTTI_DOUBLINGS], 2);
    assert_int_equal(rules.rules[2].line, 3);
    tutti_rules_fini(&rules);
}

/* Sizes are those of the larger buffer: here of nranks blocks. */
static void sizes_are_of_the_larger_buffer(void **state)
{
    struct tutti_rules rules;

    (void)state;
    assert_int_equal(tutti_rules_parse("rules", "allgather 0-1K ring", &rules), TUTTI_OK);
    assert_string_equal(found(&rules, TUTTI_ALLGATHER, 4, 256), "ring");
    assert_string_equal(found(&rules, TUTTI_ALLGATHER, 4, 257), "none");
    tutti_rules_fini(&rules);
}

static void a_section_is_for_its_machine_only(void **state)
{
    struct tutti_rules rules;

    (void)state;
    assert_int_equal(tutti_rules_parse("rules", "on there\nallreduce ring\non here\n"
                                       "allreduce swing\non any; broadcast chain", &rules),
                     TUTTI_OK);
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 4, 8), "swing");
    assert_string_equal(found(&rules, TUTTI_BROADCAST, 4, 8), "chain");
    tutti_rules_fini(&rules);
}

static void an_algorithm_that_cannot_serve_is_passed_over(void **state)
{
    struct tutti_rules rules;

    (void)state;
    assert_int_equal(tutti_rules_parse("rules", "allreduce one_shot; allreduce ring", &rules),
                     TUTTI_OK);
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 4, 8), "ring");
    tutti_rules_fini(&rules);
}

static void the_short_form_has_options_in_brackets(void **state)
{
    struct tutti_rules rules;

    (void)state;
    assert_int_equal(tutti_rules_parse_short("variable", "allreduce:hybrid[doublings=3],"
                                             "broadcast:chain,", &rules), TUTTI_OK);
    assert_int_equal(rules.count, 2);
    assert_int_equal(rules.rules[0].choice.options.value[TUTTI_DOUBLINGS], 3);
    assert_string_equal(found(&rules, TUTTI_ALLREDUCE, 4, SIZE_MAX / 8), "hybrid");
    assert_string_equal(found(&rules, TUTTI_BROADCAST, 4, 0), "chain");
    tutti_rules_fini(&rules);
    assert_int_equal(tutti_rules_parse_short("variable", "", &rules), TUTTI_OK);
    assert_int_equal(rules.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_named_with_line_and_column),
        cmocka_unit_test(a_mistake_in_the_short_form_is_named_too),
        cmocka_unit_test(the_first_rule_that_fits_wins),
        cmocka_unit_test(sizes_are_of_the_larger_buffer),
        cmocka_unit_test(a_section_is_for_its_machine_only),
        cmocka_unit_test(an_algorithm_that_cannot_serve_is_passed_over),
        cmocka_unit_test(the_short_form_has_options_in_brackets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
