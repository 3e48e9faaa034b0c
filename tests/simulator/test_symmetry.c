/* SPDX-License-Identifier: Apache-2.0
 * Compares plays by symmetry with plays of all ranks, and tests when a call can be played by
 * symmetry. Plays 16,384 ranks of algorithms that send to every rank. */
#include "simulator/stage.h"

#include "base/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FLAT "ranks 4; level top overhead 5us bandwidth 50GB/s"
#define NODES "ranks 8; node 8; level node latency 1us bandwidth 350GB/s; " \
              "level top overhead 5us bandwidth 50GB/s"
#define GROUPS "ranks 8; node 4; group 4; trunk 200GB/s; " \
               "level node latency 1us bandwidth 350GB/s; " \
               "level group overhead 4us bandwidth 50GB/s; level top overhead 5us bandwidth 50GB/s"
#define PORTS "ranks 8; node 8; nics 4; memory 100GB/s; copy 10GB/s; reduce 8GB/s; " \
              "level node latency 1us overhead 0.5us bandwidth 20GB/s; " \
              "level top latency 2us overhead 2us bandwidth 10GB/s"
#define CORES "ranks 8; node 4; cores 2; level node latency 1us bandwidth 9GB/s; " \
              "level top overhead 5us bandwidth 5GB/s"
#define CELLS "ranks 8; node 8; cell 4; bridge latency 100ns bandwidth 40GB/s; " \
              "level node latency 1us overhead 0.3us bandwidth 9GB/s core 10GB/s; " \
              "level top latency 5us overhead 1us bandwidth 5GB/s core 6GB/s"
#define TORUS "torus 6 4 5; level top latency 1us overhead 1us bandwidth 50GB/s"

enum { RANKS = 16384 };

/* Calls that can be played by symmetry, and how many ranks then stand for all. */
static const struct {
    const char *machine;
    uint32_t nranks, period;
    enum tutti_collective collective;
    const char *algorithm;
    uint32_t option, value; /* an option that is not the usual one; value 0: none */
    size_t block_bytes;
    double apart; /* most that the two times may differ, relative; 0: nothing but rounding */
} cases[] = {
    {FLAT, 64, 1, TUTTI_ALLTOALL, "spread_out", 0, 0, 4096, 0},
    {FLAT, 33, 1, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 1, 100000, 0},
    {FLAT, 96, 1, TUTTI_ALLTOALL, "bruck", TUTTI_RADIX, 2, 1000, 0},
    {FLAT, 64, 1, TUTTI_ALLGATHER, "ring", 0, 0, 200000, 0},
    {FLAT, 100, 1, TUTTI_ALLGATHER, "pat", TUTTI_AGGREGATE, 4, 1000, 0},
    {FLAT, 64, 1, TUTTI_REDUCE_SCATTER, "pat", TUTTI_AGGREGATE, 8, 100000, 0},
    {FLAT, 64, 1, TUTTI_ALLREDUCE, "pat", TUTTI_AGGREGATE, 16, 1 << 20, 0},
    {NODES, 64, 8, TUTTI_ALLTOALL, "spread_out", 0, 0, 4096, 0},
    {NODES, 64, 8, TUTTI_ALLTOALL, "bruck", 0, 0, 4096, 0},
    {NODES, 64, 8, TUTTI_ALLTOALL, "hierarchical", 0, 0, 4096, 0},
    {NODES, 64, 8, TUTTI_ALLREDUCE, "ring", 0, 0, 1 << 20, 0},
    {GROUPS, 64, 16, TUTTI_ALLGATHER, "pat", 0, 0, 65536, 0},
    {GROUPS, 64, 16, TUTTI_REDUCE_SCATTER, "ring", 0, 0, 65536, 0},
    {PORTS, 64, 8, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 1, 4096, 0},
    {PORTS, 64, 8, TUTTI_REDUCE_SCATTER, "pat", 0, 0, 65536, 0},
    {TORUS, 0, 24, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 1, 4096, 0},
    {TORUS, 0, 24, TUTTI_ALLGATHER, "ring", 0, 0, 65536, 0},
    {TORUS, 0, 24, TUTTI_REDUCE_SCATTER, "pat", 0, 0, 65536, 0},
    /* Ranks choose among many waiting messages, and trunks or ports make them choose
     * differently. */
    {PORTS, 64, 8, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 16, 4096, 0.2},
    {GROUPS, 64, 16, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 64, 65536, 0.4},
    {CORES, 32, 4, TUTTI_ALLTOALL, "spread_out", TUTTI_WINDOW, 4, 4096, 0},
    {CORES, 32, 4, TUTTI_ALLREDUCE, "ring", 0, 0, 1 << 20, 0},
    {CELLS, 64, 8, TUTTI_ALLGATHER, "ring", 0, 0, 65536, 0},
    {CELLS, 64, 8, TUTTI_REDUCE_SCATTER, "pat", 0, 0, 4096, 0},
};

/* Plays a case twice: all ranks, and by symmetry. Returns the number of ranks. */
static uint32_t play_twice(size_t i, struct tutti_sim_report *ret_all,
                           struct tutti_sim_report *ret_few)
{
    struct stage stage;
    uint32_t ranks;

    print_message("%s, %u ranks, %s\n", cases[i].machine, cases[i].nranks, cases[i].algorithm);
    stage_open(&stage, cases[i].machine, cases[i].nranks);
    if (cases[i].value > 0)
        stage.options.value[cases[i].option] = cases[i].value;
    stage_play(&stage, cases[i].collective, cases[i].algorithm, cases[i].block_bytes, ret_all);
    stage.period = stage_find_period(&stage, cases[i].collective, cases[i].algorithm,
                                     cases[i].block_bytes);
    assert_int_equal(stage.period, cases[i].period);
    stage_play(&stage, cases[i].collective, cases[i].algorithm, cases[i].block_bytes, ret_few);
    ranks = stage.machine->places.nranks;
    stage_close(&stage);
    return ranks;
}

static void few_ranks_take_as_long_as_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_sim_report all, few;
        uint32_t ranks = play_twice(i, &all, &few);

        assert_int_equal(few.nmessages, all.nmessages);
        assert_close(few.bytes, all.bytes);
        if (cases[i].apart > 0) {
            assert_true(fabs(few.seconds / all.seconds - 1) < cases[i].apart);
        } else {
            assert_close(few.seconds, all.seconds);
            assert_close(few.links[0].busy_s, all.links[0].busy_s);
            for (uint32_t rank = 0; rank < ranks; rank++)
                assert_close(few.rank_seconds[rank], all.rank_seconds[rank]);
        }
        tutti_sim_report_fini(&all);
        tutti_sim_report_fini(&few);
    }
}

static uint32_t period_of(const char *machine, uint32_t nranks, enum tutti_collective collective,
                          const char *algorithm, size_t block_bytes)
{
    struct stage stage;
    uint32_t period;

    stage_open(&stage, machine, nranks);
    period = stage_find_period(&stage, collective, algorithm, block_bytes);
    stage_close(&stage);
    return period;
}

static void machines_that_no_shift_maps_onto_themselves_are_played_whole(void **state)
{
    (void)state;
    /* Nodes of 3 and 5 ranks repeat after 8 ranks. */
    assert_int_equal(period_of("ranks 8; node 3 5; level top bandwidth 50GB/s", 32,
                               TUTTI_ALLGATHER, "ring", 4096), 8);
    /* The last node has fewer ranks. */
    assert_int_equal(period_of(NODES, 60, TUTTI_ALLGATHER, "ring", 4096), 0);
    /* A shift by one rank maps each node to the next, but rank 7 and rank 0 to one node. */
    assert_int_equal(period_of("ranks 8; node 4; place cyclic; level top bandwidth 50GB/s", 8,
                               TUTTI_ALLGATHER, "ring", 4096), 0);
    assert_int_equal(period_of("ranks 4; level top bandwidth 50GB/s; link 10GB/s; "
                               "path 0 1 via 0", 0, TUTTI_ALLGATHER, "ring", 4096), 0);
    /* One node, whose memory all ranks share: no other node could stand for it. */
    assert_int_equal(period_of("node 8; memory 50GB/s; level node bandwidth 9GB/s", 8,
                               TUTTI_ALLGATHER, "ring", 4096), 0);
}

static void schedules_that_do_not_repeat_are_played_whole(void **state)
{
    (void)state;
    assert_int_equal(period_of(FLAT, 64, TUTTI_BROADCAST, "linear", 4096), 0);
    assert_int_equal(period_of(FLAT, 64, TUTTI_ALLGATHER, "recursive_doubling", 4096), 0);
    assert_int_equal(period_of("node 64; level node bandwidth 50GB/s", 64, TUTTI_ALLREDUCE,
                               "mapped", 4096), 0);
    /* 1,000 bytes are not 64 equal parts. */
    assert_int_equal(period_of(FLAT, 64, TUTTI_ALLREDUCE, "ring", 1024), 1);
    assert_int_equal(period_of(FLAT, 64, TUTTI_ALLREDUCE, "ring", 1000), 0);
}

static void a_period_must_fit_the_machine(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, NODES, 64);
    stage.algorithm = tutti_algorithm_find(TUTTI_ALLGATHER, "ring");
    for (uint32_t period = 1; period <= 85; period += 3) {
        stage.period = period;
        if (period == 16) /* two nodes map onto the next two */
            continue;
        assert_int_equal(stage_try(&stage, 4096, &report), TUTTI_ERR_ARGUMENT);
        assert_non_null(strstr(tutti_message_last(), "does not map the machine"));
    }
    stage_close(&stage);
}

/* p - 1 messages, one at a time. */
static void all_to_all_of_16384_ranks_takes_what_the_textbook_says(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, FLAT, RANKS);
    stage.period = stage_find_period(&stage, TUTTI_ALLTOALL, "spread_out", 4096);
    assert_int_equal(stage.period, 1);
    stage_play(&stage, TUTTI_ALLTOALL, "spread_out", 4096, &report);
    assert_close(report.seconds, (RANKS - 1) * (5e-6 + 4096 / 50e9));
    assert_int_equal(report.nmessages, (uint64_t)RANKS * (RANKS - 1));
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

/* The published number of messages: log2 A, which double up to A blocks, then P / A - 1. */
static void pat_of_16384_ranks_sends_the_published_messages(void **state)
{
    static const enum tutti_collective collectives[] = {TUTTI_ALLGATHER, TUTTI_REDUCE_SCATTER};

    (void)state;
    for (size_t c = 0; c < sizeof collectives / sizeof collectives[0]; c++)
        for (uint32_t doublings = 0; doublings <= 10; doublings += 5) {
            uint32_t aggregate = 1u << doublings, messages = doublings + RANKS / aggregate - 1;
            struct tutti_sim_report report;
            struct stage stage;

            stage_open(&stage, FLAT, RANKS);
            stage.options.value[TUTTI_AGGREGATE] = aggregate;
            stage.period = stage_find_period(&stage, collectives[c], "pat", 64);
            assert_int_equal(stage.period, 1);
            stage_play(&stage, collectives[c], "pat", 64, &report);
            assert_int_equal(report.nmessages, (uint64_t)RANKS * messages);
            assert_close(report.bytes, 64.0 * RANKS * (RANKS - 1));
            tutti_sim_report_fini(&report);
            stage_close(&stage);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_ranks_take_as_long_as_all),
        cmocka_unit_test(machines_that_no_shift_maps_onto_themselves_are_played_whole),
        cmocka_unit_test(schedules_that_do_not_repeat_are_played_whole),
        cmocka_unit_test(a_period_must_fit_the_machine),
        cmocka_unit_test(all_to_all_of_16384_ranks_takes_what_the_textbook_says),
        cmocka_unit_test(pat_of_16384_ranks_sends_the_published_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
