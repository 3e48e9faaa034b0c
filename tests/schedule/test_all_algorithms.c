/* SPDX-License-Identifier: Apache-2.0
 * Proves every algorithm, as emitted and fused, for every number of ranks and every root.
 *
 *     test_all_algorithms [collective]
 *
 * TUTTI_TEST_RANKS limits the number of ranks. TUTTI_TEST_ALGORITHM selects one algorithm by name,
 * to examine it. */
#include "schedule/support.h"
#include "schedule/variants.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 64
#define ALL_ROOTS 64  /* ranks up to which each is a root, with the usual options */
#define ALL_COUNTS 32 /* ranks up to which every number of them is tried with other options */
#define MOST_STEPS (UINT32_C(1) << 21) /* of all ranks, where there are more than ALL_ROOTS */
#define SHARED_CHANNELS 24 /* ranks up to which channels are also proved to be one */
#define BOTH_FORMS 12 /* ranks up to which the checker's two forms are compared */

static const char *only_collective;
static bool uses_scratch; /* true if any schedule of the current algorithm has this */

static uint32_t most_ranks(void)
{
    const char *text = getenv("TUTTI_TEST_RANKS");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : MOST_RANKS;
}

/* Both forms of the checker must find the same values. */
static bool is_same_report(const struct tutti_check_report *a, const struct tutti_check_report *b)
{
    return a->credits == b->credits && a->orders == b->orders && a->order_hash == b->order_hash &&
           a->depth == b->depth && a->messages == b->messages && a->sent == b->sent;
}

static bool check_team(const struct tutti_algorithm *algorithm, const struct team *team,
                       const struct variant *variant, uint32_t root, const char *form)
{
    struct tutti_check_report why, hashed;
    int rc = team_check(team, algorithm->serves_vector, false, &why);

    if (rc != TUTTI_OK)
        print_error("%s %s, %u ranks, root %u, %s%s: rank %u step %d: %s\n",
                    tutti_collective_name(algorithm->collective), algorithm->name, team->nranks,
                    root, variant->name, form, why.rank, (int)why.step, why.what);
    if (rc != TUTTI_OK || team->nranks > BOTH_FORMS)
        return rc == TUTTI_OK;
    rc = team_check(team, algorithm->serves_vector, true, &hashed);
    if (rc != TUTTI_OK || !is_same_report(&why, &hashed))
        print_error("%s %s, %u ranks, root %u, %s%s: right, but hashed: %s\n",
                    tutti_collective_name(algorithm->collective), algorithm->name, team->nranks,
                    root, variant->name, form, rc != TUTTI_OK ? hashed.what : "another report");
    return rc == TUTTI_OK && is_same_report(&why, &hashed);
}

/* An algorithm that is called lean must be lean on all ranks, because all of them rely on it. */
static bool is_as_lean_as_said(const struct tutti_algorithm *algorithm,
                               const struct team *team)
{
    for (uint32_t rank = 0; rank < team->nranks; rank++)
        if (team->schedules[rank]->scratch_chunks > 0) {
            uses_scratch = true;
            if (algorithm->is_lean)
                print_error("%s %s, %u ranks, rank %u: lean, yet it uses scratch\n",
                            tutti_collective_name(algorithm->collective), algorithm->name,
                            team->nranks, rank);
        }
    return !algorithm->is_lean || !uses_scratch;
}

static bool has_channels(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->nranks; rank++)
        if (team->schedules[rank]->nchannels > 1)
            return true;
    return false;
}

/* With as many channels as are asked for (0), and where that is several, with one for all. */
static bool prove(const struct tutti_algorithm *algorithm, const struct variant *variant,
                  uint32_t root, uint32_t channels)
{
    struct tutti_shape shape = variant->shape;
    struct team plain, fused;
    bool is_right, has_several;

    shape.root = root;
    shape.channels = channels;
    plain = team_of_shape(algorithm, &shape, false);
    fused = team_of_shape(algorithm, &shape, true);
    is_right = check_team(algorithm, &plain, variant, root, "");
    if (is_right && !team_is_same(&plain, &fused))
        is_right = check_team(algorithm, &fused, variant, root, ", fused");
    is_right = is_right && is_as_lean_as_said(algorithm, &fused);
    has_several = has_channels(&plain);
    team_destroy(&plain);
    team_destroy(&fused);
    if (is_right && has_several && shape.nranks <= SHARED_CHANNELS)
        is_right = channels == 0 && prove(algorithm, variant, root, 1);
    return is_right;
}

/* With the usual options, every number of ranks; with others, of the many those near multiples of
 * 16. */
static bool is_sampled(size_t index, uint32_t nranks)
{
    return index == 0 || nranks <= ALL_COUNTS || (nranks + 1) % 16 <= 2;
}

/* Rings over all pairs of many ranks have steps as the cube of their number. */
static bool is_too_long(const struct tutti_algorithm *algorithm, const struct variant *variant)
{
    struct tutti_schedule *schedule;
    bool is_long;

    if (variant->shape.nranks <= ALL_ROOTS)
        return false;
    assert_int_equal(tutti_algorithm_schedule(algorithm, &variant->shape, &schedule), TUTTI_OK);
    is_long = schedule->nsteps > MOST_STEPS / variant->shape.nranks;
    if (is_long)
        print_message("left out: %s %s, %u ranks, %s: %u steps per rank\n",
                      tutti_collective_name(algorithm->collective), algorithm->name,
                      variant->shape.nranks, variant->name, schedule->nsteps);
    tutti_schedule_destroy(schedule);
    return is_long;
}

/* All roots with the usual options; with others, or many ranks, the first, the last, one
 * between. */
static bool prove_variant(const struct tutti_algorithm *algorithm, size_t index, uint32_t nranks)
{
    bool has_root = tutti_collective_has_root(algorithm->collective);
    uint32_t nroots = has_root ? nranks : 1;
    struct variant variant;
    bool is_right = true;

    variant_create(algorithm, index, nranks, &variant);
    if (is_too_long(algorithm, &variant))
        nroots = 0;
    for (uint32_t root = 0; root < nroots && is_right; root++)
        if ((index == 0 && nranks <= ALL_ROOTS) || root == 0 || root == nranks / 3 ||
            root + 1 == nranks)
            is_right = prove(algorithm, &variant, root, 0);
    variant_destroy(&variant);
    return is_right;
}

static bool is_asked_for(const struct tutti_algorithm *algorithm)
{
    const char *name = getenv("TUTTI_TEST_ALGORITHM");

    return (name == NULL || strcmp(name, algorithm->name) == 0) &&
           (only_collective == NULL ||
            strcmp(only_collective, tutti_collective_name(algorithm->collective)) == 0);
}

static void every_algorithm_is_right_for_every_number_of_ranks_and_root(void **state)
{
    uint32_t nwrong = 0, nproved = 0;

    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(a);
        bool is_right = true;

        if (!is_asked_for(algorithm))
            continue;
        uses_scratch = false;
        for (size_t index = 0; index < variants_count(algorithm); index++)
            for (uint32_t nranks = 1; nranks <= most_ranks() && is_right; nranks++)
                is_right = !is_sampled(index, nranks) || prove_variant(algorithm, index, nranks);
        if (is_right && algorithm->needs == 0 && !algorithm->is_lean && !uses_scratch) {
            print_error("%s %s uses no scratch: say is_lean\n",
                        tutti_collective_name(algorithm->collective), algorithm->name);
            is_right = false;
        }
        nproved++;
        nwrong += !is_right;
    }
    assert_int_equal(nwrong, 0);
    assert_true(nproved > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right_for_every_number_of_ranks_and_root),
    };

    only_collective = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
