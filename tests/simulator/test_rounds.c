/* SPDX-License-Identifier: Apache-2.0
 * Tests the rounds of circulant_pipeline when it is played. On a flat machine with one port per
 * rank every round takes the time of one segment, and there are as few rounds as possible:
 * k - 1 + ceil(log2 p) for k segments among p ranks. */
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FLAT "level top latency 0us overhead 5us bandwidth 50GB/s; ranks 4"

enum { SEGMENT_BYTES = 1024 };

static const double segment_s = 5e-6 + SEGMENT_BYTES / 50e9;

static uint32_t fewest_rounds(uint32_t nranks, uint32_t segments)
{
    uint32_t rounds = segments - 1;

    for (uint32_t covered = 1; covered < nranks; covered *= 2)
        rounds++;
    return rounds;
}

/* Returns the number of rounds that the collective takes. */
static double play_rounds(enum tutti_collective collective, uint32_t nranks, uint32_t segments)
{
    struct tutti_sim_report report;
    struct stage stage;
    double rounds;

    stage_open(&stage, FLAT, nranks);
    stage.root = collective == TUTTI_ALLREDUCE ? 0 : nranks / 3;
    stage.options.value[TUTTI_SEGMENTS] = segments;
    stage_play(&stage, collective, "circulant_pipeline", segments * SEGMENT_BYTES, &report);
    rounds = report.seconds / segment_s;
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return rounds;
}

static void expect_fewest_rounds(uint32_t nranks, uint32_t segments)
{
    static const enum tutti_collective rooted[] = {TUTTI_BROADCAST, TUTTI_REDUCE};
    uint32_t fewest = fewest_rounds(nranks, segments);

    for (size_t i = 0; i < sizeof(rooted) / sizeof(rooted[0]); i++) {
        double rounds = play_rounds(rooted[i], nranks, segments);

        if (rounds < fewest - 1e-3 || rounds > fewest + 1e-3)
            fail_msg("%s of %u segments, %u ranks: %g rounds, expected %u",
                     tutti_collective_name(rooted[i]), segments, nranks, rounds, fewest);
    }
}

static void all_small_numbers_of_ranks_take_the_fewest_rounds(void **state)
{
    static const uint32_t segments[] = {1, 2, 3, 8, 21};

    (void)state;
    for (uint32_t nranks = 3; nranks <= 130; nranks++)
        for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++)
            expect_fewest_rounds(nranks, segments[i]);
}

/* Primes, powers of two and their neighbors, and others. */
static void large_numbers_of_ranks_take_the_fewest_rounds(void **state)
{
    static const uint32_t nranks[] = {131,  191,  255,  256,  257,  384,  509,  511,  512,
                                      513,  521,  768,  1000, 1023, 1024, 1025, 1031, 1536,
                                      2039, 2047, 2048, 2049, 3001, 4093, 4095, 4096, 4097};
    static const uint32_t segments[] = {1, 2, 13};

    (void)state;
    for (size_t i = 0; i < sizeof(nranks) / sizeof(nranks[0]); i++)
        for (size_t j = 0; j < sizeof(segments) / sizeof(segments[0]); j++)
            expect_fewest_rounds(nranks[i], segments[j]);
    expect_fewest_rounds(17, 300);
    expect_fewest_rounds(100, 64);
    expect_fewest_rounds(1000, 64);
}

/* Two neighbors in a lane are one write, so between two ranks all segments are one message. */
static void two_ranks_exchange_one_message(void **state)
{
    (void)state;
    assert_close(play_rounds(TUTTI_BROADCAST, 2, 8) * segment_s, 5e-6 + 8 * SEGMENT_BYTES / 50e9);
    assert_close(play_rounds(TUTTI_REDUCE, 2, 8) * segment_s, 5e-6 + 8 * SEGMENT_BYTES / 50e9);
}

/* An all-reduce overlaps a reduce and a broadcast. Their messages share the ports, so that a round
 * of one may delay rounds of the other. With many segments this costs up to 6 %, and with few
 * segments the overlap gains more. */
static void the_halves_of_an_allreduce_overlap(void **state)
{
    /* `most` is the largest number of rounds, divided by that without overlap. */
    static const struct {
        uint32_t segments;
        double most;
    } cases[] = {{1, 1}, {2, 0.95}, {3, 0.95}, {8, 0.9}, {21, 1.06}};

    (void)state;
    for (uint32_t nranks = 3; nranks <= 130; nranks++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            uint32_t segments = cases[i].segments;
            double rounds = play_rounds(TUTTI_ALLREDUCE, nranks, segments);

            if (rounds > cases[i].most * 2 * fewest_rounds(nranks, segments) + 1e-3)
                fail_msg("%u segments, %u ranks: %g rounds", segments, nranks, rounds);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_small_numbers_of_ranks_take_the_fewest_rounds),
        cmocka_unit_test(large_numbers_of_ranks_take_the_fewest_rounds),
        cmocka_unit_test(two_ranks_exchange_one_message),
        cmocka_unit_test(the_halves_of_an_allreduce_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
