/* SPDX-License-Identifier: Apache-2.0
 * Every algorithm, for every number of ranks and every root, as emitted and fused, is proved. */
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

/* TUTTI_TEST_RANKS bounds the number of ranks, TUTTI_TEST_ALGORITHM picks one by name, for a look
 * at something in particular. */
static uint32_t most_ranks(void)
{
    const char *text = getenv("TUTTI_TEST_RANKS");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : MOST_RANKS;
}

static bool prove(const struct tutti_algorithm *algorithm, const struct variant *variant,
                  uint32_t root, bool is_fused)
{
    struct tutti_shape shape = variant->shape;
    struct tutti_check_report why = {.rank = 0};
    struct team team;
    int rc;

    shape.root = root;
    team = team_of_shape(algorithm, &shape, is_fused);
    rc = team_check(&team, algorithm->serves_vector, &why);
    if (rc != TUTTI_OK)
        print_error("%s %s, %u ranks, root %u, %s%s: rank %u step %d: %s\n",
                    tutti_collective_name(algorithm->collective), algorithm->name, shape.nranks,
                    root, variant->name, is_fused ? ", fused" : "", why.rank, (int)why.step,
                    why.what);
    team_destroy(&team);
    return rc == TUTTI_OK;
}

/* All roots with the usual options; with others, the first and the last and one between. */
static bool prove_variant(const struct tutti_algorithm *algorithm, size_t index, uint32_t nranks)
{
    bool has_root = tutti_collective_has_root(algorithm->collective);
    uint32_t nroots = has_root ? nranks : 1;
    struct variant variant;
    bool is_right = true;

    variant_create(algorithm, index, nranks, &variant);
    for (uint32_t root = 0; root < nroots && is_right; root++)
        if (index == 0 || root == 0 || root == nranks / 3 || root + 1 == nranks)
            is_right = prove(algorithm, &variant, root, false) &&
                       prove(algorithm, &variant, root, true);
    variant_destroy(&variant);
    return is_right;
}

static void every_algorithm_is_right_for_every_number_of_ranks_and_root(void **state)
{
    const char *only = getenv("TUTTI_TEST_ALGORITHM");
    uint32_t nwrong = 0;

    (void)state;
    assert_true(tutti_algorithm_count() > 0);
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(a);
        bool is_right = only == NULL || strcmp(only, algorithm->name) == 0;

        if (!is_right)
            continue;
        for (size_t index = 0; index < variants_count(algorithm); index++)
            for (uint32_t nranks = 1; nranks <= most_ranks() && is_right; nranks++)
                is_right = prove_variant(algorithm, index, nranks);
        nwrong += !is_right;
    }
    assert_int_equal(nwrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right_for_every_number_of_ranks_and_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
