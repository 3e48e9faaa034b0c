/* SPDX-License-Identifier: Apache-2.0
 * Textbook algorithms on a flat machine with one port per rank take the time of the textbook:
 * rounds times overhead, plus bytes over bandwidth. This is exact if all ranks move in step. */
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FLAT "level top latency 0us overhead 5us bandwidth 50GB/s; ranks 4"

static const double alpha = 5e-6, beta = 1 / 50e9;

enum { KIB = 1024, MIB = 1024 * 1024 };

static double whole(double p, double bytes)
{
    return 2 * (p - 1) / p * bytes * beta;
}

static void circulant_allreduce_takes_2q_rounds_and_the_least_volume(void **state)
{
    static const struct {
        uint32_t p, q;
        size_t bytes;
    } cases[] = {{2, 1, 4 * KIB}, {16, 4, 256 * KIB}, {128, 7, 4 * MIB}, {1024, 10, 8 * KIB},
                 {1024, 10, 4 * MIB}, {1024, 10, 64 * MIB}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_close(stage_seconds(FLAT, cases[i].p, TUTTI_ALLREDUCE, "circulant", cases[i].bytes),
                     2 * cases[i].q * alpha + whole(cases[i].p, (double)cases[i].bytes));
}

static void other_numbers_of_ranks_move_in_step_too(void **state)
{
    (void)state;
    for (uint32_t p = 2; p < 70; p++) {
        uint32_t q = 0;

        while (1u << q < p)
            q++;
        /* Blocks of equal size: the least multiple of cache lines. */
        assert_close(stage_seconds(FLAT, p, TUTTI_ALLREDUCE, "circulant", p * 1024),
                     2 * q * alpha + whole(p, p * 1024));
    }
}

static void recursive_doubling_takes_q_rounds_of_the_whole_vector(void **state)
{
    (void)state;
    assert_close(stage_seconds(FLAT, 1024, TUTTI_ALLREDUCE, "recursive_doubling", 8 * KIB),
                 10 * (alpha + 8 * KIB * beta));
    assert_close(stage_seconds(FLAT, 128, TUTTI_ALLREDUCE, "recursive_doubling", 4 * MIB),
                 7 * (alpha + 4 * MIB * beta));
    /* Folding the ranks beyond a power of two: a round before and one after. */
    assert_close(stage_seconds(FLAT, 6, TUTTI_ALLREDUCE, "recursive_doubling", 64 * KIB),
                 4 * (alpha + 64 * KIB * beta));
}

static void rings_take_a_round_for_each_other_rank(void **state)
{
    (void)state;
    assert_close(stage_seconds(FLAT, 16, TUTTI_ALLREDUCE, "ring", 256 * KIB),
                 30 * alpha + whole(16, 256 * KIB));
    assert_close(stage_seconds(FLAT, 128, TUTTI_ALLREDUCE, "ring", 64 * MIB),
                 254 * alpha + whole(128, 64 * MIB));
    assert_close(stage_seconds(FLAT, 48, TUTTI_ALLGATHER, "ring", 4 * KIB),
                 47 * (alpha + 4 * KIB * beta));
    assert_close(stage_seconds(FLAT, 48, TUTTI_REDUCE_SCATTER, "ring", 4 * KIB),
                 47 * (alpha + 4 * KIB * beta));
}

static void trees_take_a_round_for_each_level(void **state)
{
    (void)state;
    assert_close(stage_seconds(FLAT, 64, TUTTI_BROADCAST, "knomial", 16 * KIB),
                 6 * (alpha + 16 * KIB * beta));
    assert_close(stage_seconds(FLAT, 64, TUTTI_REDUCE, "knomial", 16 * KIB),
                 6 * (alpha + 16 * KIB * beta));
    assert_close(stage_seconds(FLAT, 64, TUTTI_GATHER, "knomial", 16 * KIB),
                 6 * alpha + 63 * 16 * KIB * beta);
    assert_close(stage_seconds(FLAT, 64, TUTTI_GATHER, "linear", 16 * KIB),
                 63 * (alpha + 16 * KIB * beta));
    assert_close(stage_seconds(FLAT, 64, TUTTI_BARRIER, "dissemination", 0),
                 6 * (alpha + 8 * beta));
}

static void scans_take_their_rounds(void **state)
{
    (void)state;
    assert_close(stage_seconds(FLAT, 100, TUTTI_SCAN, "doubling", 8 * KIB),
                 7 * (alpha + 8 * KIB * beta));
    /* Skips of 1, 2, 3, 6, ... 48 combine up to 96 ranks before the own one. */
    assert_close(stage_seconds(FLAT, 97, TUTTI_EXCLUSIVE_SCAN, "doubling", 8 * KIB),
                 7 * (alpha + 8 * KIB * beta));
    assert_close(stage_seconds(FLAT, 98, TUTTI_EXCLUSIVE_SCAN, "doubling", 8 * KIB),
                 8 * (alpha + 8 * KIB * beta));
}

static void exchanges_with_everybody_take_a_round_each(void **state)
{
    (void)state;
    assert_close(stage_seconds(FLAT, 24, TUTTI_ALLTOALL, "spread_out", 8 * KIB),
                 23 * (alpha + 8 * KIB * beta));
    /* Half of the blocks in each of the rounds. */
    assert_close(stage_seconds(FLAT, 64, TUTTI_ALLTOALL, "bruck", 1 * KIB),
                 6 * (alpha + 32 * KIB * beta));
}

/* Latency is paid where something waits for it, and holds no port. */
static void latency_delays_without_holding_the_port(void **state)
{
    const char *machine = "level top latency 3us overhead 5us bandwidth 50GB/s; ranks 4";

    (void)state;
    assert_close(stage_seconds(machine, 64, TUTTI_ALLREDUCE, "circulant", 64 * KIB),
                 12 * (alpha + 3e-6) + whole(64, 64 * KIB));
    /* The last of the root's messages is on its way for three more. */
    assert_close(stage_seconds(machine, 9, TUTTI_BROADCAST, "linear", 64 * KIB),
                 8 * (alpha + 64 * KIB * beta) + 3e-6);
}

/* Each hop adds the overhead and a slice; the message itself is paid for once. */
static int emit_relay(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (shape->rank > 0 &&
        tutti_build_recv(build, shape->rank - 1, output) != 0)
        return -1;
    if (shape->rank + 1 == shape->nranks)
        return 0;
    return tutti_build_send(build, shape->rank + 1,
                            shape->rank == 0 ? tutti_span(TUTTI_BUF_INPUT, 0, 1) : output);
}

static void slices_flow_through_those_who_pass_them_on(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, FLAT, 9);
    stage.emit = emit_relay;
    stage_play(&stage, TUTTI_BROADCAST, NULL, 16 * MIB, &report);
    assert_close(report.seconds,
                 8 * alpha + 7 * 64 * KIB * beta + 16 * MIB * beta);
    tutti_sim_report_fini(&report);

    /* A single slice is passed on when all of it is there. */
    stage_play(&stage, TUTTI_BROADCAST, NULL, 64 * KIB, &report);
    assert_close(report.seconds, 8 * (alpha + 64 * KIB * beta));
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(circulant_allreduce_takes_2q_rounds_and_the_least_volume),
        cmocka_unit_test(other_numbers_of_ranks_move_in_step_too),
        cmocka_unit_test(recursive_doubling_takes_q_rounds_of_the_whole_vector),
        cmocka_unit_test(rings_take_a_round_for_each_other_rank),
        cmocka_unit_test(trees_take_a_round_for_each_level),
        cmocka_unit_test(scans_take_their_rounds),
        cmocka_unit_test(exchanges_with_everybody_take_a_round_each),
        cmocka_unit_test(latency_delays_without_holding_the_port),
        cmocka_unit_test(slices_flow_through_those_who_pass_them_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
