/* SPDX-License-Identifier: Apache-2.0
 * Tests the checker with schedules that have one edit. If the interpreter finds an error in any of
 * its interleavings, the edit is harmful, and the checker must report it. */
#include "schedule/interpreter.h"
#include "schedule/support.h"

#include "base/result.h"
#include "schedule/mutate.h"
#include "schedule/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define INTERLEAVINGS 24
#define VARIANT_RANKS 7
#define PER_KIND 12 /* mutants of one kind, algorithm, number of ranks and form */

static const uint32_t ranks_to_try[] = {2, 3, 5, 8};

/* Caught and missed are harmful; beyond is what the checker reports of the harmless. */
struct tally {
    uint32_t edits, harmless, caught, missed, beyond;
};

struct tallies {
    struct tally *algorithms, kinds[MUTATION_COUNT], all;
};

static enum outcome interpret_many(const struct team *team, uint64_t seed)
{
    enum outcome outcome = OUTCOME_RIGHT;

    for (uint32_t i = 0; i < INTERLEAVINGS && outcome == OUTCOME_RIGHT; i++) {
        struct interpreter_options options = {.seed = seed * INTERLEAVINGS + i + 1,
                                              .in_place = i & 1, .is_buffered = (i & 6) == 6,
                                              .is_uniform = (i & 8) != 0};

        outcome = interpret(team->schedules, team->nranks, &options);
    }
    return outcome;
}

static void count(struct tally *tally, bool is_harmful, bool is_reported)
{
    tally->edits++;
    tally->harmless += !is_harmful;
    tally->caught += is_harmful && is_reported;
    tally->missed += is_harmful && !is_reported;
    tally->beyond += !is_harmful && is_reported;
}

static void try_mutant(size_t a, struct team *team, enum mutation kind, uint64_t seed,
                       struct tallies *tallies)
{
    const struct tutti_algorithm *algorithm = tutti_algorithm(a);
    struct tutti_check_report why;
    uint32_t rank = 0, step = 0;
    struct tutti_schedule *original, *mutant;
    bool is_harmful, is_reported;

    mutant = mutate((const struct tutti_schedule *const *)team->schedules, team->nranks, kind, seed,
                    &rank, &step);
    if (mutant == NULL)
        return;
    original = team->schedules[rank];
    team->schedules[rank] = mutant;
    is_harmful = interpret_many(team, seed) != OUTCOME_RIGHT;
    is_reported = team_check(team, algorithm->serves_vector, false, &why) != TUTTI_OK;
    /* A sum that is wrong, but that no output has, is told by the exact form alone. */
    if (is_harmful && is_reported)
        is_reported = team_check(team, algorithm->serves_vector, true, &why) != TUTTI_OK;

    count(&tallies->algorithms[a], is_harmful, is_reported);
    count(&tallies->kinds[kind], is_harmful, is_reported);
    count(&tallies->all, is_harmful, is_reported);
    if (is_harmful != is_reported && (is_harmful || getenv("TUTTI_TEST_VERBOSE") != NULL))
        print_message("%s: %s %s, %u ranks: %s at rank %u step %u (%s), seed %llu: %s\n",
                      is_harmful ? "missed" : "harmless, reported",
                      tutti_collective_name(algorithm->collective), algorithm->name, team->nranks,
                      mutation_name(kind), rank, step,
                      tutti_step_name((enum tutti_step_kind)original->steps[step].kind),
                      (unsigned long long)seed, why.what);
    team->schedules[rank] = original;
    tutti_schedule_destroy(mutant);
}

static void visit_shape(size_t a, const struct tutti_shape *shape,
                        void (*visit)(size_t a, struct team *team, void *context),
                        void *context)
{
    struct team plain = team_of_shape(tutti_algorithm(a), shape, false);
    struct team fused = team_of_shape(tutti_algorithm(a), shape, true);

    visit(a, &plain, context);
    if (!team_is_same(&plain, &fused))
        visit(a, &fused, context);
    team_destroy(&plain);
    team_destroy(&fused);
}

/* Uses the default options, and the last variant, which has places if the algorithm uses any. */
static void all_algorithms(void (*visit)(size_t a, struct team *team, void *context),
                           void *context)
{
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        size_t last = variants_count(tutti_algorithm(a)) - 1;
        struct variant variant;

        for (size_t n = 0; n < sizeof(ranks_to_try) / sizeof(ranks_to_try[0]); n++) {
            struct tutti_shape shape = {.nranks = ranks_to_try[n], .root = ranks_to_try[n] / 2};

            visit_shape(a, &shape, visit, context);
        }
        if (last == 0)
            continue;
        variant_create(tutti_algorithm(a), last, VARIANT_RANKS, &variant);
        visit_shape(a, &variant.shape, visit, context);
        variant_destroy(&variant);
    }
}

static void interpret_team(size_t a, struct team *team, void *context)
{
    const struct tutti_algorithm *algorithm = tutti_algorithm(a);

    (void)context;
    if (interpret_many(team, 1) != OUTCOME_RIGHT)
        fail_msg("%s %s, %u ranks: the interpreter finds it wrong",
                 tutti_collective_name(algorithm->collective), algorithm->name, team->nranks);
}

static void the_interpreter_finds_every_algorithm_right(void **state)
{
    (void)state;
    all_algorithms(interpret_team, NULL);
}

/* TUTTI_TEST_MUTANTS asks for more, for a longer look. */
static uint64_t per_kind(void)
{
    const char *text = getenv("TUTTI_TEST_MUTANTS");

    return text != NULL ? strtoull(text, NULL, 10) : PER_KIND;
}

static void mutate_team(size_t a, struct team *team, void *context)
{
    for (int kind = 0; kind < MUTATION_COUNT; kind++)
        for (uint64_t seed = 1; seed <= per_kind(); seed++)
            try_mutant(a, team, (enum mutation)kind, seed, context);
}

static void print_tally(const char *what, const char *name, const struct tally *tally)
{
    print_message("%-14s %-20s %8u %8u %8u %8u %8u\n", what, name, tally->edits, tally->harmless,
                  tally->caught, tally->missed, tally->beyond);
}

/* At least 95 of 100 harmful ones. */
static void assert_caught(const struct tally *tally)
{
    assert_true(tally->edits > 0);
    assert_true(tally->caught > 0);
    assert_true((uint64_t)tally->caught * 5 >= (uint64_t)tally->missed * 95);
}

static void the_checker_reports_harmful_edits(void **state)
{
    struct tallies tallies = {.algorithms = calloc(tutti_algorithm_count(), sizeof(struct tally))};

    (void)state;
    assert_non_null(tallies.algorithms);
    all_algorithms(mutate_team, &tallies);
    print_message("%-14s %-20s %8s %8s %8s %8s %8s\n", "collective", "algorithm", "edits",
                  "harmless", "caught", "missed", "beyond");
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        print_tally(tutti_collective_name(tutti_algorithm(a)->collective),
                    tutti_algorithm(a)->name, &tallies.algorithms[a]);
    for (int kind = 0; kind < MUTATION_COUNT; kind++)
        print_tally("edit", mutation_name((enum mutation)kind), &tallies.kinds[kind]);
    print_tally("all", "", &tallies.all);

    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        assert_caught(&tallies.algorithms[a]);
    for (int kind = 0; kind < MUTATION_COUNT; kind++)
        assert_caught(&tallies.kinds[kind]);
    assert_true(tallies.all.caught > tallies.all.edits / 4);
    free(tallies.algorithms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interpreter_finds_every_algorithm_right),
        cmocka_unit_test(the_checker_reports_harmful_edits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
