/* SPDX-License-Identifier: Apache-2.0
 * Every algorithm, for every number of ranks and every root, as emitted and fused, is proved. */
#include "schedule/support.h"

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

static bool prove(const struct tutti_algorithm *algorithm, uint32_t nranks, uint32_t root,
                  bool is_fused)
{
    struct team team = team_create(algorithm, nranks, root, is_fused);
    struct tutti_check_report why = {.rank = 0};
    int rc = team_check(&team, algorithm->serves_vector, &why);

    if (rc != TUTTI_OK)
        print_error("%s %s, %u ranks, root %u%s: rank %u step %d: %s\n",
                    tutti_collective_name(algorithm->collective), algorithm->name, nranks, root,
                    is_fused ? ", fused" : "", why.rank, (int)why.step, why.what);
    team_destroy(&team);
    return rc == TUTTI_OK;
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
        for (uint32_t nranks = 1; nranks <= most_ranks() && is_right; nranks++) {
            uint32_t nroots = tutti_collective_has_root(algorithm->collective) ? nranks : 1;

            for (uint32_t root = 0; root < nroots && is_right; root++)
                is_right = prove(algorithm, nranks, root, false) &&
                           prove(algorithm, nranks, root, true);
        }
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
