/* SPDX-License-Identifier: Apache-2.0
 * Runs the measuring programs as users do: nccl-tests' options, the output, the JSON file.
 * perf/CMakeLists.txt tests for each program that the figures come from right results. */
#include "tools/running.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- options --------------------------------------------------------------------------------- */

static void what_is_typed_for_nccl_tests_works(void **state)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        {"-b 8 -e 1K -f 2 -g 4 -n 1", "# ranks: 4, per process: 4, minBytes: 8, maxBytes: 1024, "
                                      "step: 2 (factor)"},
        {"--minbytes 8 --maxbytes 1K --stepfactor 2 --nthreads 2 --ngpus 2 --iters 1 "
         "--warmup_iters 0 --agg_iters 2 --check 1",
         "# ranks: 4, per process: 4, minBytes: 8, maxBytes: 1024, step: 2 (factor), warmup iters: "
         "0, iters: 1, agg iters: 2, validation: 1"},
        {"-b 8 -e 24 --stepbytes 8 -n 1 -g 2 --run_cycles 1 --parallel_init 1 --op max "
         "--datatype int8 --root 0 --blocking 2 --timeout 60 --average 3",
         "step: 8 (bytes)"},
        {"-b 8 -n 1 -g 2 --stream_null 0 --report_cputime 1 --cudagraph 0", "stream: host"},
        {"-b 8 -n 1 -g 2 --stream_null 1", "stream: none"},
        {"-b 8 -n 1 -g 2 --local_register 0", "memory: malloc"},
        {"-b 8 -n 1 -g 2 --local_register 1", "memory: tuttiMemAlloc"},
        {"-b 8 -n 1 -g 2 -R 2 --unalign 1", "memory: tuttiMemAlloc"},
        {"-b 8 -n 1 -g 2 --memory_report 1 --report_timestamps 1", "# Memory of rank   1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(running_run(ALL_REDUCE, "%s", cases[i].arguments), 0);
        running_says(cases[i].says);
        running_says("# Out of bounds values : 0 OK");
    }
}

static void types_have_their_usual_names(void **state)
{
    static const char *const names[][2] = {
        {"fp16", " half "}, {"float16", " half "}, {"half", " half "}, {"bf16", " bfloat16 "},
        {"fp32", " float "}, {"float64", " double "}, {"fp8_e4m3", " f8e4m3 "},
        {"fp8_e5m2", " f8e5m2 "}, {"float8e5m2", " f8e5m2 "}, {"char", " int8 "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(running_run(ALL_REDUCE, "-g 2 -b 64 -n 1 -d %s", names[i][0]), 0);
        running_says(names[i][1]);
    }
}

static void mistakes_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        {"-d fp", "-d: 'fp' is not allowed"},
        {"-d ''", "-d: '' is not allowed"},
        {"-d 'fp16 f16'", "is not allowed"},
        {"-g 0", "-g: '0' is not allowed"},
        {"-R 3", "-R: '3' is not allowed"},
        {"-t 4096 -g 2", "is more than 4096 ranks per process"},
        {"-G 2", "CUDA graphs only with --device gpu"},
        {"-G 2 --graph 2 --device gpu", "give either -G or --graph"},
        {"-G 2 -n 5000 --device gpu", "lower -n"},
        {"--cta_policy 1", "no -x: the library chooses"},
        {"-D 1", "no -D: there is no device API"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        running_is_mistake(running_run(ALL_REDUCE, "%s", cases[i].arguments), ALL_REDUCE,
                           cases[i].says);
}

static void the_version_is_told(void **state)
{
    (void)state;
    assert_int_equal(running_run(SENDRECV, "--version"), 0);
    assert_string_equal(running.out, "sendrecv_perf " VERSION ", library " VERSION "\n");
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void rows_end_with_algorithm_and_transport_on_request(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", "allreduce:hybrid[doublings=1]", 1);
    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    assert_int_equal(running_run(ALL_REDUCE, "--ranks 4 -b 1K -n 1 -A 1"), 0);
    running_says(" #wrong  algorithm                transport\n");
    running_says("  hybrid[doublings=1]      tcp\n");
    assert_int_equal(running_run(SENDRECV, "--ranks 2 -b 1K -n 1 --algorithms 1"), 0);
    running_says("  send/recv                tcp\n");
    assert_int_equal(running_run(ALL_REDUCE, "--ranks 2 -b 1K -n 1"), 0);
    assert_null(strstr(running.out, "tcp"));
    unsetenv("TUTTI_TRANSPORTS");
    unsetenv("TUTTI_ALGORITHM");
    assert_int_equal(running_run(ALL_GATHER_V, "-g 2 -b 1K -n 1 -A 1"), 0);
    running_says(" threads\n");
}

static void one_rank_is_told_that_it_talks_to_nobody(void **state)
{
    static const char line[] = "# One rank: nothing is communicated.";

    (void)state;
    assert_int_equal(running_run(ALL_REDUCE, "-b 8 -n 1"), 0);
    assert_int_equal(running_count(running.out, line), 1);
    assert_int_equal(running_run(ALL_REDUCE, "-b 8 -n 1 -g 2"), 0);
    assert_int_equal(running_count(running.out, line), 0);
}

static void progress_is_shown_where_the_launcher_says_so(void **state)
{
    (void)state;
    assert_int_equal(running_run(ALL_REDUCE, "-g 2 -b 64 -n 1"), 0);
    assert_string_equal(running.err, "");
    setenv("TUTTI_PROGRESS", "1", 1);
    assert_int_equal(running_run(ALL_REDUCE, "-g 2 -b 64 -n 1"), 0);
    unsetenv("TUTTI_PROGRESS");
    assert_non_null(strstr(running.err, "# 64 bytes float, in place: 10 of 10\033[K\r"));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (text == NULL)
        fail_msg("there is no text \"%s\"", name);
    return text;
}

/* A quote, a backslash and a line's end in an argument, and so in the command line that is told. */
static void the_file_tells_how_it_was_made(void **state)
{
    json_t *file, *command, *environment, *row;
    json_error_t error;

    (void)state;
    setenv("TUTTI_SECRET", "do not tell", 1);
    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    assert_int_equal(running_run(TUTTI_RUN, "-np 2 " ALL_REDUCE
                                            " -b 1K -e 4K -f 4 -n 1 -I 1 -J 'a\"b\\\nc.json'"), 0);
    unsetenv("TUTTI_TRANSPORTS");
    unsetenv("TUTTI_SECRET");
    file = json_load_file("a\"b\\\nc.json", 0, &error);
    if (file == NULL)
        fail_msg("line %d: %s", error.line, error.text);

    assert_string_equal(text_at(file, "name"), "all_reduce");
    assert_true(json_integer_value(json_object_get(file, "library_version")) > 0);
    assert_int_equal(strlen(text_at(file, "date")), strlen("2026-01-31T12:00:00Z"));
    assert_true(strlen(text_at(file, "host")) > 0);
    assert_true(strlen(text_at(file, "cpu")) > 0);
    command = json_object_get(file, "command");
    assert_int_equal(json_array_size(command), 13);
    assert_string_equal(json_string_value(json_array_get(command, 12)), "a\"b\\\nc.json");
    environment = json_object_get(file, "environment");
    assert_string_equal(text_at(environment, "TUTTI_TRANSPORTS"), "self,tcp");
    assert_string_equal(text_at(environment, "TUTTI_SECRET"), "(hidden)");
    assert_int_equal(json_array_size(json_object_get(file, "places")), 2);

    assert_int_equal(json_array_size(json_object_get(file, "results")), 2);
    row = json_array_get(json_object_get(file, "results"), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "size")), 4096);
    assert_string_equal(text_at(row, "transport"), "tcp");
    assert_true(strlen(text_at(row, "algorithm")) > 0);
    assert_true(strlen(text_at(row, "reason")) > 0);
    assert_true(json_is_object(json_object_get(row, "in_place")));
    assert_true(json_is_true(json_object_get(file, "ok")));
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_typed_for_nccl_tests_works),
        cmocka_unit_test(types_have_their_usual_names),
        cmocka_unit_test(mistakes_are_refused_with_the_reason),
        cmocka_unit_test(the_version_is_told),
        cmocka_unit_test(rows_end_with_algorithm_and_transport_on_request),
        cmocka_unit_test(one_rank_is_told_that_it_talks_to_nobody),
        cmocka_unit_test(progress_is_shown_where_the_launcher_says_so),
        cmocka_unit_test(the_file_tells_how_it_was_made),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
