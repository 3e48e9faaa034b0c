/* SPDX-License-Identifier: Apache-2.0
 * Collectives by lines with flags, on simulated GPUs: right to the last bit, epoch after epoch, and
 * never waiting for ever. */
#include "simcuda/attempt.h"
#include "simcuda/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "tutti_gpu_work_small"
#define GROUP "tutti_gpu_group"

static const enum tutti_gpu_work_kind kinds[] = {TUTTI_GPU_LL, TUTTI_GPU_LL128};

static void same_grids(struct domain_grid grids[TUTTI_GPU_RANKS], uint32_t blocks, uint32_t threads)
{
    for (uint32_t i = 0; i < TUTTI_GPU_RANKS; i++)
        grids[i] = (struct domain_grid){blocks, threads};
}

/* ---- right ----------------------------------------------------------------------------------- */

static void every_collective_is_right_for_every_rank_count_and_root(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_GPU_RANKS];
    struct domain domain;

    (void)state;
    same_grids(grids, 1, 32);
    for (uint32_t nranks = 1; nranks <= 8; nranks++) {
        uint64_t number = 0;

        domain_init(&domain, nranks, &sizes);
        for (uint32_t collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++)
            for (uint32_t root = 0; root < nranks; root++)
                for (uint32_t form = 0; form < 8; form++) {
                    const struct attempt_call call = {
                        .kind = kinds[form & 1],
                        .collective = (enum tutti_collective)collective,
                        .type = TUTTI_INT32,
                        .is_in_place = form & 2,
                        .is_vector = form & 4,
                        .root = root,
                        .count = 1 + number % 70,
                        .seed = number,
                    };

                    if (root > 0 && !tutti_collective_has_root(call.collective))
                        continue;
                    if (attempt_is_possible(&call))
                        attempt_run(&domain, &call, SMALL, grids, ++number);
                }
        domain_fini(&domain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right_for_every_rank_count_and_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
