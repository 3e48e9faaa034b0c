/* SPDX-License-Identifier: Apache-2.0
 * Tests the purposes of swing and PAT: short paths, few messages, bounded staging. */
#include "algorithms/algorithm.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct tutti_schedule *schedule_of(enum tutti_collective collective, const char *name,
                                          const struct tutti_shape *shape)
{
    struct tutti_schedule *schedule = NULL;

    assert_int_equal(tutti_algorithm_schedule(tutti_algorithm_find(collective, name), shape,
                                              &schedule),
                     TUTTI_OK);
    return schedule;
}

static uint32_t count_sends(const struct tutti_schedule *schedule)
{
    uint32_t nsends = 0;

    for (uint32_t at = 0; at < schedule->nsteps; at++)
        nsends += schedule->steps[at].to >= 0;
    return nsends;
}

/* Chunks are numbered such that what goes to a partner is a run. */
static void swing_sends_one_message_a_round_where_rings_are_powers_of_two(void **state)
{
    const struct tutti_placement torus = {.nranks = 256, .dims = {4, 8, 1, 8}, .ndims = 4};

    (void)state;
    for (uint32_t rank = 0; rank < 256; rank++) {
        struct tutti_shape shape = {.nranks = 256, .rank = rank};
        struct tutti_schedule *ring = schedule_of(TUTTI_ALLREDUCE, "swing", &shape), *dims;

        shape.places = &torus;
        dims = schedule_of(TUTTI_ALLREDUCE, "swing", &shape);
        assert_int_equal(count_sends(ring), 2 * 8);
        assert_int_equal(count_sends(dims), 2 * 8 * 6); /* three dimensions have six parts */
        tutti_schedule_destroy(ring);
        tutti_schedule_destroy(dims);
    }
}

/* Links between two places of a ring. */
static uint32_t links(uint32_t a, uint32_t b, uint32_t d)
{
    uint32_t apart = a > b ? a - b : b - a;

    return apart < d - apart ? apart : d - apart;
}

/* Bytes times links, of the whole reduce-scatter: three quarters at most of those with doubled
 * distances, in which round i sends 2^-i-1 of the vector over 2^i links. */
static void swing_loads_links_less_than_doubling(void **state)
{
    (void)state;
    for (uint32_t nranks = 8; nranks <= 512; nranks *= 2) {
        struct tutti_shape shape = {.nranks = nranks, .rank = 3};
        struct tutti_schedule *schedule = schedule_of(TUTTI_REDUCE_SCATTER, "swing", &shape);
        uint32_t loaded = 0, doubling = 0;

        for (uint32_t at = 0; at < schedule->nsteps; at++)
            if (schedule->steps[at].to >= 0)
                loaded += schedule->steps[at].src.count *
                          links(shape.rank, (uint32_t)schedule->steps[at].to, nranks);
        for (uint32_t i = 1; i < nranks; i *= 2)
            doubling += nranks / (2 * i) * i;
        assert_true(4 * loaded <= 3 * doubling);
        tutti_schedule_destroy(schedule);
    }
}

static void swing_stays_on_the_lines_of_a_torus(void **state)
{
    const struct tutti_placement torus = {.nranks = 105, .dims = {3, 5, 7}, .ndims = 3};

    (void)state;
    for (uint32_t rank = 0; rank < 105; rank++) {
        struct tutti_shape shape = {.nranks = 105, .rank = rank, .places = &torus};
        struct tutti_schedule *schedule = schedule_of(TUTTI_ALLREDUCE, "swing", &shape);

        for (uint32_t at = 0; at < schedule->nsteps; at++) {
            uint32_t to = (uint32_t)schedule->steps[at].to;
            uint32_t ndiffer = (to % 3 != rank % 3) + (to / 3 % 5 != rank / 3 % 5) +
                               (to / 15 != rank / 15);

            assert_true(schedule->steps[at].to < 0 || ndiffer == 1);
        }
        tutti_schedule_destroy(schedule);
    }
}

/* Neither the number of ranks nor the size says how much: A log2(P / A) blocks, or A. */
static void pat_keeps_few_blocks(void **state)
{
    (void)state;
    for (uint32_t rounds = 1; rounds <= 10; rounds++)
        for (uint32_t aggregated = 0; aggregated <= 4; aggregated++) {
            uint32_t most = (rounds > aggregated ? rounds - aggregated : 1) << aggregated;
            struct tutti_shape shape = {.nranks = 1u << rounds, .rank = 1};
            struct tutti_schedule *schedule;

            shape.options.value[TUTTI_AGGREGATE] = 1u << aggregated;
            schedule = schedule_of(TUTTI_REDUCE_SCATTER, "pat", &shape);
            assert_true(schedule->scratch_chunks <= most);
            tutti_schedule_destroy(schedule);
        }
}

/* Between powers of two the option is the lower one. */
static void pat_aggregates_powers_of_two(void **state)
{
    struct tutti_shape shape = {.nranks = 50, .rank = 7};
    struct tutti_schedule *eight, *fifteen;

    (void)state;
    shape.options.value[TUTTI_AGGREGATE] = 8;
    eight = schedule_of(TUTTI_REDUCE_SCATTER, "pat", &shape);
    shape.options.value[TUTTI_AGGREGATE] = 15;
    fifteen = schedule_of(TUTTI_REDUCE_SCATTER, "pat", &shape);
    assert_int_equal(eight->nsteps, fifteen->nsteps);
    for (uint32_t at = 0; at < eight->nsteps; at++)
        assert_int_equal(eight->steps[at].to, fifteen->steps[at].to);
    tutti_schedule_destroy(eight);
    tutti_schedule_destroy(fifteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swing_sends_one_message_a_round_where_rings_are_powers_of_two),
        cmocka_unit_test(swing_loads_links_less_than_doubling),
        cmocka_unit_test(swing_stays_on_the_lines_of_a_torus),
        cmocka_unit_test(pat_keeps_few_blocks),
        cmocka_unit_test(pat_aggregates_powers_of_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
