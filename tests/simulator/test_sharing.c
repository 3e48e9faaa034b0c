/* SPDX-License-Identifier: Apache-2.0
 * Tests how shared resources are divided: ports, network cards, trunks, torus links, memory,
 * cores. The cases are small enough to compute their rates by hand. */
#include "base/result.h"
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

/* ---- messages between any two ranks, of an all-to-all's blocks ------------------- */

struct pair {
    uint32_t from, to, blocks;
};

static const struct pair *pairs;
static size_t npairs;

static int emit_pairs(const struct tutti_shape *shape, struct tutti_build *build)
{
    for (size_t i = 0; i < npairs; i++) {
        struct pair pair = pairs[i];

        if (pair.from == shape->rank)
            TUTTI_TRY(tutti_build_send(build, pair.to,
                                       tutti_span(TUTTI_BUF_INPUT, 0, pair.blocks)));
        if (pair.to == shape->rank)
            TUTTI_TRY(tutti_build_recv(build, pair.from,
                                       tutti_span(TUTTI_BUF_OUTPUT, pair.from, pair.blocks)));
    }
    return TUTTI_OK;
}

/* Each rank `by` further, round the end. */
static uint32_t shift_by;

static int emit_shift(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;

    TUTTI_TRY(tutti_build_send(build, (shape->rank + shift_by) % n,
                               tutti_span(TUTTI_BUF_INPUT, 0, 1)));
    return tutti_build_recv(build, (shape->rank + n - shift_by) % n,
                            tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static double play_emitted(const char *machine, uint32_t nranks,
                           int (*emit)(const struct tutti_shape *, struct tutti_build *),
                           size_t block_bytes)
{
    struct tutti_sim_report report;
    struct stage stage;
    double seconds;

    stage_open(&stage, machine, nranks);
    stage.emit = emit;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, block_bytes, &report);
    seconds = report.seconds;
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return seconds;
}

/* ---- ports ------------------------------------------------------------------------- */

#define NODE "node 8; level node latency 0us overhead 0us bandwidth 10GB/s; ranks 8"

static const double n_s = MIB / 10e9; /* what a block takes alone */

static void rates_are_max_min_fair(void **state)
{
    /* Three into rank 2: a third each. Rank 1's other message takes what is left of its port. */
    static const struct pair three[] = {{0, 2, 1}, {1, 2, 1}, {3, 2, 1}, {1, 4, 1}};
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    pairs = three;
    npairs = 4;
    stage_open(&stage, NODE, 0);
    stage.emit = emit_pairs;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, &report);
    assert_close(report.rank_seconds[4], 1.5 * n_s);
    assert_close(report.rank_seconds[2], 3 * n_s);
    assert_close(report.rank_seconds[0], 3 * n_s);
    assert_close(report.seconds, 3 * n_s);
    assert_true(report.wait_share > 0.66 && report.wait_share < 0.67);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

static void who_is_left_takes_over_what_gets_free(void **state)
{
    static const struct pair two[] = {{0, 2, 1}, {1, 2, 2}};

    (void)state;
    pairs = two;
    npairs = 2;
    assert_close(play_emitted(NODE, 0, emit_pairs, MIB), 3 * n_s);
}

static void a_port_with_overhead_serves_one_at_a_time(void **state)
{
    static const struct pair two[] = {{0, 2, 1}, {1, 2, 2}, {0, 3, 1}};
    const char *machine = "node 8; level node latency 1us overhead 2us bandwidth 10GB/s; ranks 8";
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    pairs = two;
    npairs = 3;
    stage_open(&stage, machine, 0);
    stage.emit = emit_pairs;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, &report);
    assert_close(report.rank_seconds[0], 2 * (2e-6 + n_s));
    assert_close(report.rank_seconds[1], 2 * 2e-6 + 3 * n_s);
    assert_close(report.rank_seconds[2], 2 * 2e-6 + 3 * n_s + 1e-6);
    assert_close(report.rank_seconds[3], 2 * (2e-6 + n_s) + 1e-6);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

static void ranks_of_a_node_share_its_network_ports(void **state)
{
    (void)state;
    shift_by = 4; /* node 0 to node 1, and back */
    assert_close(play_emitted("node 4; ranks 8; nics 1; level top overhead 2us bandwidth 10GB/s",
                              0, emit_shift, MIB), 4 * (2e-6 + n_s));
    assert_close(play_emitted("node 4; ranks 8; nics 2; level top overhead 2us bandwidth 10GB/s",
                              0, emit_shift, MIB), 2 * (2e-6 + n_s));
    assert_close(play_emitted("node 4; ranks 8; level top overhead 2us bandwidth 10GB/s",
                              0, emit_shift, MIB), 2e-6 + n_s);
    assert_close(play_emitted("node 4; ranks 8; nics 1; level top latency 2us bandwidth 10GB/s",
                              0, emit_shift, MIB), 4 * n_s + 2e-6);
}

static const struct tutti_sim_link *find_link(const struct tutti_sim_report *report,
                                              const char *name)
{
    for (size_t i = 0; i < report->nlinks; i++)
        if (strcmp(report->links[i].name, name) == 0)
            return &report->links[i];
    fail_msg("no link \"%s\"", name);
    return NULL;
}

static void a_trunk_tapers_what_leaves_a_group(void **state)
{
    const char *machine = "node 1; group 4; ranks 8; trunk 20GB/s;"
                          "level top latency 1us bandwidth 10GB/s";
    /* Within group 0: beside the trunk. */
    static const struct pair mixed[] = {{0, 4, 1}, {1, 5, 1}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}};
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    shift_by = 4;
    assert_close(play_emitted(machine, 0, emit_shift, MIB), 2 * n_s + 1e-6);
    shift_by = 2; /* half of each group leaves it: as much as the trunk carries */
    assert_close(play_emitted(machine, 0, emit_shift, MIB), n_s + 1e-6);

    pairs = mixed;
    npairs = 5;
    stage_open(&stage, machine, 0);
    stage.emit = emit_pairs;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, &report);
    assert_close(report.rank_seconds[4], 2 * n_s + 1e-6);
    assert_close(report.seconds, 2 * n_s + 1e-6);
    assert_close(find_link(&report, "trunk 0 out")->bytes, 4.0 * MIB);
    assert_close(find_link(&report, "trunk 1 in")->busy_s, 2 * n_s);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

static void messages_on_a_torus_go_the_shorter_way_round(void **state)
{
    const char *ring = "torus 8; ranks 8; level top latency 1us bandwidth 10GB/s";
    const char *grid = "torus 4 4; ranks 16; level top latency 1us overhead 3us bandwidth 10GB/s";

    (void)state;
    for (shift_by = 1; shift_by < 8; shift_by++) {
        uint32_t hops = shift_by <= 4 ? shift_by : 8 - shift_by;

        assert_close(play_emitted(ring, 0, emit_shift, MIB), hops * (n_s + 1e-6));
    }
    shift_by = 8; /* two rows down: each link of a column carries two */
    assert_close(play_emitted(grid, 0, emit_shift, MIB), 3e-6 + 2 * n_s + 2e-6);
}

/* ---- memory and cores ---------------------------------------------------------------- */

static int emit_copy(const struct tutti_shape *shape, struct tutti_build *build)
{
    (void)shape;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, 1),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static double play_pairs(const char *machine, const struct pair *list, size_t count)
{
    pairs = list;
    npairs = count;
    return play_emitted(machine, 0, emit_pairs, MIB);
}

/* A core moves its rank's messages: both directions together, and it also does the arithmetic. */
static void a_core_does_one_thing_after_the_other(void **state)
{
    const struct pair one_way[] = {{0, 1, 1}};
    const struct pair exchange[] = {{0, 1, 1}, {1, 0, 1}};
    const struct pair from_both[] = {{0, 2, 1}, {1, 2, 1}};
    static const char alike[] = "ranks 4; node 4; level node bandwidth 10GB/s core 10GB/s";
    static const char roomy[] = "ranks 4; node 4; level node bandwidth 10GB/s core 16GB/s";
    static const char crowded[] = "ranks 4; node 4; cores 1; level node bandwidth 10GB/s core "
                                  "10GB/s";

    (void)state;
    assert_close(play_pairs(alike, one_way, 1), n_s);
    assert_close(play_pairs(alike, exchange, 2), 2 * n_s);
    assert_close(play_pairs(roomy, exchange, 2), 2 * n_s * 10 / 16);
    assert_close(play_pairs(alike, from_both, 2), 2 * n_s);
    /* One core for both ends. */
    assert_close(play_pairs(crowded, one_way, 1), 2 * n_s);
    assert_close(play_pairs(crowded, exchange, 2), 4 * n_s);
}

/* An all-to-all of 4 blocks of 1 MiB touches 8 MiB. */
static void rates_are_those_of_the_footprint(void **state)
{
    const struct pair one_way[] = {{0, 1, 1}};

    (void)state;
    assert_close(play_pairs("ranks 4; node 4; level node bandwidth 10GB/s beyond 8MiB 1GB/s",
                            one_way, 1), n_s);
    assert_close(play_pairs("ranks 4; node 4; level node bandwidth 10GB/s beyond 8388607B 5GB/s",
                            one_way, 1), 2 * n_s);
}

static void overheads_of_both_ways_share_a_core(void **state)
{
    const struct pair exchange[] = {{0, 1, 1}, {1, 0, 1}};

    (void)state;
    assert_close(play_pairs("ranks 2; node 2; level node overhead 5us bandwidth 10GB/s core 10GB/s",
                            exchange, 2), 2 * (5e-6 + n_s));
}

static void more_ranks_than_cores_take_turns(void **state)
{
    (void)state;
    assert_close(play_emitted("node 4; ranks 4; copy 10GB/s; level node bandwidth 10GB/s", 0,
                              emit_copy, MIB), n_s);
    assert_close(play_emitted("node 4; ranks 4; copy 10GB/s; cores 4;"
                              "level node bandwidth 10GB/s", 0, emit_copy, MIB), n_s);
    assert_close(play_emitted("node 4; ranks 4; copy 10GB/s; cores 2;"
                              "level node bandwidth 10GB/s", 0, emit_copy, MIB), 2 * n_s);
    assert_close(play_emitted("node 3; ranks 3; copy 10GB/s; cores 2;"
                              "level node bandwidth 10GB/s", 0, emit_copy, MIB), 1.5 * n_s);
    /* Messages within a node, and overheads, are work of a core too. */
    shift_by = 1;
    assert_close(play_emitted("node 4; ranks 4; cores 1; level node overhead 1us bandwidth 10GB/s",
                              0, emit_shift, MIB), 4 * (1e-6 + n_s));
}

static void all_ranks_of_a_node_share_its_memory(void **state)
{
    (void)state;
    /* Each byte is loaded and stored. */
    assert_close(play_emitted("node 4; ranks 4; copy 10GB/s; memory 40GB/s;"
                              "level node bandwidth 10GB/s", 0, emit_copy, MIB), 2 * n_s);
    assert_close(play_emitted("node 4; ranks 4; memory 40GB/s; level node bandwidth 10GB/s", 0,
                              emit_copy, MIB), 2 * n_s);
    assert_close(play_emitted("node 4; ranks 8; copy 10GB/s; memory 80GB/s;"
                              "level node bandwidth 10GB/s", 0, emit_copy, MIB), n_s);
}

/* ---- one-sided steps, and arithmetic --------------------------------------------------- */

static void one_sided_schedules_pay_for_signals_and_for_what_they_read(void **state)
{
    const char *machine = "node 4; ranks 4; level node latency 1us overhead 2us bandwidth 10GB/s";

    (void)state;
    assert_close(stage_seconds(machine, 0, TUTTI_BARRIER, "direct", 0), 3e-6);
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "one_shot", MIB), 3e-6 + 3 * n_s);
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "two_shot", MIB), 6e-6 + 1.5 * n_s);
    /* Everybody loads from all and stores into all: as much, through the same ports. */
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "mapped", MIB), 6e-6 + 1.5 * n_s);
    /* Whether everyone takes three blocks or stores into three ranks. */
    assert_close(stage_seconds(machine, 0, TUTTI_ALLGATHER, "stored", MIB), 6e-6 + 3 * n_s);
}

static void loads_have_a_speed_of_their_own(void **state)
{
    const char *machine = "node 4; ranks 4; load 20GB/s; level node bandwidth 10GB/s core 10GB/s";
    struct tutti_sim_bound bound;
    struct stage stage;

    (void)state;
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "one_shot", MIB), 2 * n_s);
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "two_shot", MIB), 1.125 * n_s);
    /* The first copies to the window are stores to memory that others load from; and the bound
     * knows. */
    stage_open(&stage, machine, 0);
    assert_int_equal(tutti_sim_bound(stage.machine, TUTTI_ALLREDUCE, 0, MIB, &bound), TUTTI_OK);
    assert_true(bound.bandwidth_s <= 0.75 * n_s * (1 + 1e-9));
    stage_close(&stage);
}

static void memory_bounds_one_sided_steps_on_one_node(void **state)
{
    const char *machine = "node 8; ranks 8; memory 10GB/s; level node bandwidth 1000GB/s";

    (void)state;
    /* Each of 8 ranks: an eighth of 8 vectors is loaded, and stored in 8. */
    assert_close(stage_seconds(machine, 0, TUTTI_ALLREDUCE, "mapped", MIB), 16 * n_s);
    /* A block is loaded by all and stored by all, or loaded by one and stored everywhere. */
    assert_close(stage_seconds(machine, 0, TUTTI_ALLGATHER, "mapped", MIB), 128 * n_s);
    assert_close(stage_seconds(machine, 0, TUTTI_ALLGATHER, "stored", MIB), 72 * n_s);
}

static void arithmetic_follows_the_bytes_slice_by_slice(void **state)
{
    const double slice_s = 64 * KIB / 10e9;

    (void)state;
    assert_close(stage_seconds("ranks 2; reduce 20GB/s; level top overhead 1us bandwidth 10GB/s", 0,
                               TUTTI_REDUCE, "knomial", MIB), 1e-6 + n_s + slice_s / 2);
    assert_close(stage_seconds("ranks 2; reduce 5GB/s; level top overhead 1us bandwidth 10GB/s", 0,
                               TUTTI_REDUCE, "knomial", MIB), 1e-6 + slice_s + 2 * n_s);
    /* Received to be added later: one after the other. */
    assert_close(stage_seconds("ranks 4; reduce 5GB/s; level top overhead 1us bandwidth 10GB/s", 0,
                               TUTTI_ALLREDUCE, "recursive_doubling", MIB), 2 * (1e-6 + 3 * n_s));
}

/* ---- what cannot be played ---------------------------------------------------------------- */

static int emit_circle(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span block = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    TUTTI_TRY(tutti_build_recv(build, 1 - shape->rank, block));
    return tutti_build_send(build, 1 - shape->rank, block);
}

static int emit_deaf(const struct tutti_shape *shape, struct tutti_build *build)
{
    return shape->rank == 0 ? tutti_build_send(build, 1, tutti_span(TUTTI_BUF_INPUT, 0, 1))
                            : TUTTI_OK;
}

static int emit_short(const struct tutti_shape *shape, struct tutti_build *build)
{
    return shape->rank == 0 ? tutti_build_send(build, 1, tutti_span(TUTTI_BUF_INPUT, 0, 2))
                            : tutti_build_recv(build, 0, tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static void expect_refusal(struct stage *stage, const char *why)
{
    struct tutti_sim_report report;

    assert_int_equal(stage_try(stage, MIB, &report), TUTTI_ERR_ARGUMENT);
    if (strstr(tutti_message_last(), why) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", tutti_message_last(), why);
}

static void schedules_that_cannot_be_played_are_refused(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, "ranks 2; level top bandwidth 10GB/s", 0);
    stage.collective = TUTTI_ALLTOALL;
    stage.emit = emit_circle;
    expect_refusal(&stage, "2 steps wait forever, the first is step 0 (recv_copy_send) of rank 0");
    stage.emit = emit_deaf;
    expect_refusal(&stage, "rank 0, step 0 (send): no rank receives what it sends");
    stage.emit = emit_short;
    expect_refusal(&stage, "rank 1, step 0 (recv): it receives more or less than is sent");
    stage.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "one_shot");
    expect_refusal(&stage, "one-sided");
    stage_close(&stage);
}

static void a_machine_of_another_size_is_refused(void **state)
{
    struct tutti_sim_source source = {.nranks = 3};
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, "ranks 2; level top bandwidth 10GB/s", 0);
    assert_int_equal(tutti_simulate(&source, stage.machine, &report), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "the machine has 2 ranks"));
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_max_min_fair),
        cmocka_unit_test(who_is_left_takes_over_what_gets_free),
        cmocka_unit_test(a_port_with_overhead_serves_one_at_a_time),
        cmocka_unit_test(ranks_of_a_node_share_its_network_ports),
        cmocka_unit_test(a_trunk_tapers_what_leaves_a_group),
        cmocka_unit_test(messages_on_a_torus_go_the_shorter_way_round),
        cmocka_unit_test(a_core_does_one_thing_after_the_other),
        cmocka_unit_test(rates_are_those_of_the_footprint),
        cmocka_unit_test(overheads_of_both_ways_share_a_core),
        cmocka_unit_test(more_ranks_than_cores_take_turns),
        cmocka_unit_test(all_ranks_of_a_node_share_its_memory),
        cmocka_unit_test(one_sided_schedules_pay_for_signals_and_for_what_they_read),
        cmocka_unit_test(loads_have_a_speed_of_their_own),
        cmocka_unit_test(memory_bounds_one_sided_steps_on_one_node),
        cmocka_unit_test(arithmetic_follows_the_bytes_slice_by_slice),
        cmocka_unit_test(schedules_that_cannot_be_played_are_refused),
        cmocka_unit_test(a_machine_of_another_size_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
