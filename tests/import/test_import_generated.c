/* SPDX-License-Identifier: Apache-2.0
 * Compiles scripts of well-known algorithms to the XML of MSCCL and the JSON of MSCCL++, in the
 * forms that the compilers of these libraries write: several channels, instances, protocols and
 * ways to deal steps to threadblocks, in place and not. All must be proved. */
#include "base/result.h"
#include "import/grammar.h"
#include "import/load.h"
#include "schedule/check/check.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t sizes[] = {2, 3, 4, 6, 8};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* How a script is written to a file. */
struct form {
    uint32_t nranks, channels, instances;
    bool is_in_place;
    int way; /* enum layout or enum style */
};

static char *compile(const struct pattern *pattern, const struct form *form, bool is_json,
                     bool is_complete)
{
    static const char *const protocols[] = {"Simple", "LL", "LL128"};
    struct script script = pattern_script(pattern, form->nranks, form->channels, form->is_in_place),
                  repeated;
    char *text;

    if (!is_complete)
        script.nactions--;
    repeated = script_repeat(&script, form->instances, form->channels);
    /* Without instances the actions keep chunks that they move together. */
    if (is_json)
        text = script_json(form->instances > 1 ? &repeated : &script,
                           form->channels * form->instances, (enum style)form->way);
    else
        text = script_xml(form->instances > 1 ? &repeated : &script, protocols[form->way % 3],
                          (enum layout)form->way);
    script_free(&repeated);
    script_free(&script);
    return text;
}

static void expect_proved(const struct pattern *pattern, const struct form *form, bool is_json)
{
    char *text = compile(pattern, form, is_json, true);
    struct tutti_ensemble ensemble;

    if (tutti_import_prove("file", text, strlen(text), &ensemble) != TUTTI_OK)
        fail_msg("%s %s of %u ranks, %u channels, %u instances%s, %s, way %d: %s\n%s",
                 pattern->name, tutti_collective_name(pattern->collective), form->nranks,
                 form->channels, form->instances, form->is_in_place ? ", in place" : "",
                 is_json ? "JSON" : "XML", form->way, tutti_message_last(), text);
    assert_int_equal(ensemble.nranks, form->nranks);
    assert_int_equal(ensemble.schedules[0]->collective, pattern->collective);
    tutti_ensemble_fini(&ensemble);
    free(text);
}

/* Calls `visit` with every form of every pattern. */
static size_t for_all(bool is_json,
                      void (*visit)(const struct pattern *, const struct form *, bool is_json))
{
    size_t count = 0;

    for (size_t i = 0; pattern(i) != NULL; i++)
        for (int s = 0; s < SIZES; s++)
            for (int bits = 0; bits < 8; bits++)
                for (int way = 0; way < (is_json ? (int)STYLES : (int)LAYOUTS); way++) {
                    struct form form = {.nranks = sizes[s],
                                        .channels = bits & 1 ? 3 : 1,
                                        .instances = bits & 2 ? 2 : 1,
                                        .is_in_place = (bits & 4) != 0,
                                        .way = way};

                    if ((form.is_in_place && !pattern(i)->may_be_in_place) ||
                        (pattern(i)->needs_groups && (sizes[s] % 2 != 0 || sizes[s] < 4)))
                        continue;
                    visit(pattern(i), &form, is_json);
                    count++;
                }
    return count;
}

static void generated_xml_is_proved(void **state)
{
    (void)state;
    assert_true(for_all(false, expect_proved) > 2000);
}

static void generated_plans_are_proved(void **state)
{
    (void)state;
    assert_true(for_all(true, expect_proved) > 1500);
}

/* A script without its last action lacks a part of the result, in every form. */
static void expect_refused(const struct pattern *pattern, const struct form *form, bool is_json)
{
    char *text = compile(pattern, form, is_json, false);
    struct tutti_ensemble ensemble;

    if (tutti_import_prove("file", text, strlen(text), &ensemble) != TUTTI_ERR_ARGUMENT)
        fail_msg("%s %s of %u ranks is accepted without its last action", pattern->name,
                 tutti_collective_name(pattern->collective), form->nranks);
    if (strstr(tutti_message_last(), "a right ") == NULL)
        fail_msg("%s: %s\n%s", pattern->name, tutti_message_last(), text);
    free(text);
}

static void incomplete_scripts_are_refused(void **state)
{
    (void)state;
    assert_true(for_all(false, expect_refused) > 2000);
    assert_true(for_all(true, expect_refused) > 1500);
}

/* Finds the one-pass patterns. */
static bool is_one_pass(const struct pattern *pattern)
{
    return strncmp(pattern->name, "one pass", strlen("one pass")) == 0;
}

/* All ranks add in the order of ranks, whatever the file's order: ((x0 + x1) + x2) + ... So the
 * four ways to write one pass give equal bits. */
static void one_pass_adds_in_the_order_of_ranks(void **state)
{
    uint64_t hash = 0;
    size_t count = 0;

    (void)state;
    for (size_t i = 0; pattern(i) != NULL; i++)
        for (int way = 0; way < (int)STYLES && is_one_pass(pattern(i)); way++) {
            struct form form = {.nranks = 6, .channels = 1, .instances = 1, .way = way};
            char *text = compile(pattern(i), &form, way == 1, true);
            struct tutti_check_report report;
            struct tutti_ensemble ensemble;

            assert_int_equal(tutti_import_prove("file", text, strlen(text), &ensemble), TUTTI_OK);
            assert_int_equal(
                tutti_check_schedule((const struct tutti_schedule *const *)ensemble.schedules,
                                     ensemble.nranks, &report),
                TUTTI_OK);
            assert_int_equal(report.orders, 1);
            assert_true(count == 0 || report.order_hash == hash);
            hash = report.order_hash;
            count++;
            tutti_ensemble_fini(&ensemble);
            free(text);
        }
    assert_int_equal(count, 4 * STYLES);
}

/* A file that is right as it stands keeps the order of its sums. */
static void right_files_keep_their_order(void **state)
{
    static const char own[] =
        "<algo name='x' nchunksperloop='1' ngpus='3' coll='allreduce' inplace='0' outofplace='1' "
        "minBytes='0' maxBytes='0'>"
        "<gpu id='0' i_chunks='1' o_chunks='1' s_chunks='0'>"
        "<tb id='0' send='2' recv='2' chan='0'>"
        "<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/>"
        "<step s='1' type='r' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/></tb></gpu>"
        "<gpu id='1' i_chunks='1' o_chunks='1' s_chunks='0'>"
        "<tb id='0' send='2' recv='2' chan='0'>"
        "<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/>"
        "<step s='1' type='r' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/></tb></gpu>"
        "<gpu id='2' i_chunks='1' o_chunks='1' s_chunks='0'>"
        "<tb id='0' send='1' recv='1' chan='0'>"
        "<step s='0' type='rrc' srcbuf='i' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/>"
        "<step s='1' type='s' srcbuf='o' srcoff='0' dstbuf='o' dstoff='0' cnt='1' depid='1' "
        "deps='0'/></tb>"
        "<tb id='1' send='0' recv='0' chan='0'>"
        "<step s='0' type='rrc' srcbuf='o' srcoff='0' dstbuf='o' dstoff='0' cnt='1' depid='0' "
        "deps='0'/>"
        "<step s='1' type='s' srcbuf='o' srcoff='0' dstbuf='o' dstoff='0' cnt='1'/></tb></gpu>"
        "</algo>";
    struct tutti_ensemble ensemble;
    const struct tutti_schedule *sums;

    (void)state;
    assert_int_equal(tutti_import_prove("own", own, strlen(own), &ensemble), TUTTI_OK);
    sums = ensemble.schedules[2];
    /* Gpu 2 adds the part of gpu 1 first, as the file says. */
    assert_int_equal(sums->steps[0].kind, TUTTI_STEP_RECV_REDUCE);
    assert_int_equal(sums->steps[0].from, 1);
    tutti_ensemble_fini(&ensemble);
}

/* Only files whose sums are regrouped get the warning that says so. */
static void regrouped_sums_are_told(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; pattern(i) != NULL; i++) {
        struct form form = {.nranks = 4, .channels = 1, .instances = 1, .way = BY_PEER};
        struct tutti_ensemble ensemble;
        char *text = compile(pattern(i), &form, false, true);
        const char *log;

        stderr_text_begin();
        assert_int_equal(tutti_import_prove("file", text, strlen(text), &ensemble), TUTTI_OK);
        log = stderr_text_end();
        assert_int_equal(count_lines_with(log, "file: its ranks add in different orders"),
                         is_one_pass(pattern(i)));
        assert_int_equal(count_lines_with(log, "WARN"), is_one_pass(pattern(i)));
        count += is_one_pass(pattern(i));
        tutti_ensemble_fini(&ensemble);
        free(text);
    }
    assert_int_equal(count, 4);
}

/* Removes all waits of an XML file. */
static void remove_waits(char *text)
{
    for (char *at = text; (at = strstr(at, "depid=\"")) != NULL; at++) {
        char *end = strchr(at + strlen("depid=\""), '"');

        assert_non_null(end);
        memset(at, ' ', (size_t)(end - at) + 1);
    }
}

static void files_without_waits_have_races(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; pattern(i) != NULL; i++) {
        struct form form = {.nranks = 4, .channels = 1, .instances = 1, .way = BY_DIRECTION};
        struct tutti_ensemble ensemble;
        char *text;

        if (pattern(i)->collective != TUTTI_ALLREDUCE)
            continue;
        text = compile(pattern(i), &form, false, true);
        remove_waits(text);
        assert_int_equal(tutti_import_prove("file", text, strlen(text), &ensemble),
                         TUTTI_ERR_ARGUMENT);
        assert_non_null(strstr(tutti_message_last(), "race: it touches chunk"));
        count++;
        free(text);
    }
    assert_true(count >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_xml_is_proved),
        cmocka_unit_test(generated_plans_are_proved),
        cmocka_unit_test(incomplete_scripts_are_refused),
        cmocka_unit_test(one_pass_adds_in_the_order_of_ranks),
        cmocka_unit_test(right_files_keep_their_order),
        cmocka_unit_test(regrouped_sums_are_told),
        cmocka_unit_test(files_without_waits_have_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
