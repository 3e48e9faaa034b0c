/* SPDX-License-Identifier: Apache-2.0
 * Testing the checker: schedules with one edit. What the interpreter finds to go wrong in any of
 * its interleavings is harmful, and the checker must report it. */
#include "schedule/interpreter.h"
#include "schedule/support.h"

#include "base/result.h"
#include "schedule/mutate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define INTERLEAVINGS 24
#define PER_KIND 8 /* mutants of one kind, algorithm and number of ranks */

static const uint32_t ranks_to_try[] = {2, 3, 5, 8};

struct tally {
    uint32_t made, harmful, reported, beyond;
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

static void try_mutant(const struct tutti_algorithm *algorithm, struct team *team,
                       enum mutation kind, uint64_t seed, struct tally *tally)
{
    struct tutti_check_report why = {.rank = 0};
    uint32_t rank = 0, step = 0;
    struct tutti_schedule *original = NULL, *mutant;
    enum outcome outcome;
    int rc;

    mutant = mutate((const struct tutti_schedule *const *)team->schedules, team->nranks, kind, seed,
                    &rank, &step);
    if (mutant == NULL)
        return;
    original = team->schedules[rank];
    team->schedules[rank] = mutant;
    outcome = interpret_many(team, seed);
    rc = team_check(team, algorithm->serves_vector, false, &why);

    tally->made++;
    tally->harmful += outcome != OUTCOME_RIGHT;
    tally->reported += outcome != OUTCOME_RIGHT && rc != TUTTI_OK;
    tally->beyond += outcome == OUTCOME_RIGHT && rc != TUTTI_OK;
    if (outcome != OUTCOME_RIGHT && rc == TUTTI_OK)
        print_message("not reported: %s %s, %u ranks: %s at rank %u step %u (%s), outcome %d, seed "
                      "%llu\n",
                      tutti_collective_name(algorithm->collective), algorithm->name, team->nranks,
                      mutation_name(kind), rank, step,
                      tutti_step_name((enum tutti_step_kind)original->steps[step].kind),
                      (int)outcome, (unsigned long long)seed);
    if (outcome == OUTCOME_RIGHT && rc != TUTTI_OK && getenv("TUTTI_TEST_VERBOSE") != NULL)
        print_message("reported, came out right: %s %s, %u ranks: %s at rank %u step %u: %s\n",
                      tutti_collective_name(algorithm->collective), algorithm->name, team->nranks,
                      mutation_name(kind), rank, step, why.what);
    team->schedules[rank] = original;
    tutti_schedule_destroy(mutant);
}

static void all_algorithms(void (*visit)(const struct tutti_algorithm *algorithm, struct team *team,
                                         void *context), void *context)
{
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (size_t n = 0; n < sizeof(ranks_to_try) / sizeof(ranks_to_try[0]); n++)
            for (int is_fused = 0; is_fused <= 1; is_fused++) {
                uint32_t nranks = ranks_to_try[n];
                struct team team = team_create(tutti_algorithm(a), nranks, nranks / 2, is_fused);

                visit(tutti_algorithm(a), &team, context);
                team_destroy(&team);
            }
}

static void interpret_team(const struct tutti_algorithm *algorithm, struct team *team,
                           void *context)
{
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

static void mutate_team(const struct tutti_algorithm *algorithm, struct team *team, void *context)
{
    struct tally *tallies = context;

    for (int kind = 0; kind < MUTATION_COUNT; kind++)
        for (uint64_t seed = 1; seed <= per_kind(); seed++)
            try_mutant(algorithm, team, (enum mutation)kind, seed, &tallies[kind]);
}

static void the_checker_reports_harmful_edits(void **state)
{
    struct tally tallies[MUTATION_COUNT] = {{0}}, total = {0};

    (void)state;
    all_algorithms(mutate_team, tallies);
    print_message("%-22s %8s %8s %8s %8s\n", "edit", "made", "harmful", "reported",
                  "beyond");
    for (int kind = 0; kind < MUTATION_COUNT; kind++) {
        const struct tally *tally = &tallies[kind];

        print_message("%-22s %8u %8u %8u %8u\n", mutation_name((enum mutation)kind), tally->made,
                      tally->harmful, tally->reported, tally->beyond);
        assert_true(tally->made > 0);
        total.made += tally->made;
        total.harmful += tally->harmful;
        total.reported += tally->reported;
        total.beyond += tally->beyond;
    }
    print_message("%-22s %8u %8u %8u %8u\n", "all", total.made, total.harmful, total.reported,
                  total.beyond);
    assert_true(total.harmful > total.made / 4);
    assert_true((uint64_t)total.reported * 100 >= (uint64_t)total.harmful * 95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interpreter_finds_every_algorithm_right),
        cmocka_unit_test(the_checker_reports_harmful_edits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
