/* SPDX-License-Identifier: Apache-2.0
 * Walecki's rings go around all ranks, and share no link in any direction. */
#include "algorithms/algorithm.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 40
#define NONE UINT32_MAX

/* next[channel][rank], and which links are taken. */
static uint32_t next[256][MOST_RANKS];
static bool is_taken[MOST_RANKS][MOST_RANKS];

/* All rings there are: where each rank sends on each channel, always to the same one. */
static uint32_t collect(uint32_t nranks)
{
    const struct tutti_algorithm *algorithm = tutti_algorithm_find(TUTTI_ALLGATHER, "walecki");
    uint32_t nrings = 0;

    memset(next, 0xff, sizeof(next));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape shape = {.nranks = nranks, .rank = rank};
        struct tutti_schedule *schedule;

        shape.options.value[TUTTI_CHANNELS] = 256;
        assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
        for (uint32_t at = 0; at < schedule->nsteps; at++) {
            const struct tutti_step *step = &schedule->steps[at];
            uint32_t *to = &next[step->channel][rank];

            if (step->kind != TUTTI_STEP_SEND && step->kind != TUTTI_STEP_RECV_COPY_SEND)
                continue;
            assert_true(*to == NONE || *to == (uint32_t)step->to);
            *to = (uint32_t)step->to;
        }
        nrings = schedule->nchannels;
        tutti_schedule_destroy(schedule);
    }
    return nrings;
}

static void rings_go_around_all_ranks_and_share_no_link(void **state)
{
    (void)state;
    for (uint32_t nranks = 3; nranks <= MOST_RANKS; nranks++) {
        uint32_t nrings = collect(nranks);

        /* All links, or for an even number all except one of each rank. */
        assert_int_equal(nrings, nranks % 2 == 1 ? nranks - 1 : nranks - 2);
        memset(is_taken, 0, sizeof(is_taken));
        for (uint32_t ring = 0; ring < nrings; ring++) {
            uint32_t length = 0, at = 0;

            do {
                uint32_t to = next[ring][at];

                assert_true(to < nranks && !is_taken[at][to]);
                is_taken[at][to] = true;
                at = to;
                length++;
            } while (at != 0);
            assert_int_equal(length, nranks);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_go_around_all_ranks_and_share_no_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
