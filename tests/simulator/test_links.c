/* SPDX-License-Identifier: Apache-2.0
 * Tests machines that are given as graphs: the time of pairs with paths, in closed form and by
 * hand, and the tuner's price of rings. No time is below the bounds. */
#include "base/result.h"
#include "simulator/stage.h"
#include "tuner/price.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static const double n_s = MIB / 10e9; /* what a block takes alone on links of 10 GB/s */

/* ---- graphs -------------------------------------------------------------------------- */

/* A link from each rank to each other. */
static char *mesh(uint32_t nranks, const char *rate, const char *lines)
{
    uint32_t link = 0;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    fprintf(out, "ranks %u; node %u; %s\n", nranks, nranks, lines);
    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++)
            if (from != to)
                fprintf(out, "link l%u-%u %s; path %u %u via %u\n", from, to, rate, from, to,
                        link++);
    fclose(out);
    return text;
}

/* A link from each rank to a switch and one back. */
static char *star(uint32_t nranks, const char *rate, const char *lines)
{
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    fprintf(out, "ranks %u; node %u; %s\n", nranks, nranks, lines);
    for (uint32_t rank = 0; rank < nranks; rank++)
        fprintf(out, "link up%u %s down%u %s\n", rank, rate, rank, rate);
    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++)
            if (from != to)
                fprintf(out, "path %u %u via %u %u\n", from, to, 2 * from, 2 * to + 1);
    fclose(out);
    return text;
}

static double seconds_of(char *machine, enum tutti_collective collective, const char *algorithm,
                         size_t block_bytes)
{
    double seconds = stage_seconds(machine, 0, collective, algorithm, block_bytes);

    free(machine);
    return seconds;
}

static struct tutti_sim_bound bound_of(const char *machine, enum tutti_collective collective,
                                       double block_bytes)
{
    struct tutti_sim_bound bound;
    struct stage stage;

    stage_open(&stage, machine, 0);
    assert_int_equal(tutti_sim_bound(stage.machine, collective, 0, block_bytes, &bound), TUTTI_OK);
    stage_close(&stage);
    return bound;
}

/* ---- messages between any two ranks, of an all-to-all's blocks ----------------------- */

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

/* When each rank has all that it gets of blocks of a MiB. */
static void play_pairs(const char *machine, const struct pair *which, size_t count,
                       struct tutti_sim_report *ret_report)
{
    struct stage stage;

    pairs = which;
    npairs = count;
    stage_open(&stage, machine, 0);
    stage.emit = emit_pairs;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, ret_report);
    stage_close(&stage);
}

static void who_shares_a_link_shares_its_rate(void **state)
{
    static const struct pair three[] = {{0, 1, 1}, {2, 3, 1}, {4, 5, 1}};
    struct tutti_sim_report report;

    (void)state;
    play_pairs("ranks 6; level top bandwidth 50GB/s; link bridge 10GB/s own 10GB/s;"
               "path 0 1 via 0; path 2 3 via 0; path 4 5 via 1", three, 3, &report);
    assert_close(report.rank_seconds[1], 2 * n_s);
    assert_close(report.rank_seconds[3], 2 * n_s);
    assert_close(report.rank_seconds[5], n_s);
    assert_int_equal(report.nlinks, 2);
    assert_string_equal(report.links[0].name, "bridge");
    assert_true(report.links[0].bytes == 2.0 * MIB && report.links[0].bytes_per_s == 10e9);
    assert_close(report.links[0].busy_s, 2 * n_s);
    assert_string_equal(report.links[1].name, "own");
    tutti_sim_report_fini(&report);
}

static void the_narrowest_link_bounds_and_leaves_the_rest_to_others(void **state)
{
    static const struct pair two[] = {{0, 1, 1}, {2, 3, 1}};
    struct tutti_sim_report report;

    (void)state;
    /* Alone 10 and 4 GB/s: the second has 4, and the first the 6 that are left. When the first is
     * done, a third of the second is left. */
    play_pairs("ranks 4; level top bandwidth 50GB/s; link 10GB/s 4GB/s 90GB/s;"
               "path 0 1 via 2 0; path 2 3 via 0 1", two, 2, &report);
    assert_close(report.rank_seconds[1], 10.0 / 6 * n_s);
    assert_close(report.rank_seconds[3], 2.5 * n_s);
    assert_int_equal(report.nlinks, 3);
    assert_close(report.links[0].busy_s, 2.5 * n_s);
    assert_close(report.links[1].busy_s, 2.5 * n_s);
    assert_string_equal(report.links[2].name, "link 2");
    assert_close(report.links[2].busy_s, 10.0 / 6 * n_s);
    tutti_sim_report_fini(&report);
    /* A link serves both in turn, although the second could go at 90 alone. */
    play_pairs("ranks 4; level top bandwidth 50GB/s; link 20GB/s 12GB/s 90GB/s;"
               "path 0 1 via 0 1; path 2 3 via 2 0", two, 2, &report);
    assert_close(report.rank_seconds[1], n_s);
    assert_close(report.rank_seconds[3], n_s);
    tutti_sim_report_fini(&report);
}

static void a_byte_takes_its_weight_of_a_link(void **state)
{
    static const struct pair two[] = {{0, 1, 1}, {2, 3, 1}};
    const char *machine = "ranks 4; level top bandwidth 50GB/s; link 10GB/s;"
                          "path 0 1 via 0; path 2 3 via 0x3";
    struct tutti_sim_report report;

    (void)state;
    play_pairs(machine, two + 1, 1, &report);
    assert_close(report.seconds, 3 * n_s);
    assert_true(report.links[0].bytes == 3.0 * MIB);
    tutti_sim_report_fini(&report);
    /* Each takes half of the link, which is 5 and 10/6 GB/s; then the second has two thirds
     * left. */
    play_pairs(machine, two, 2, &report);
    assert_close(report.rank_seconds[1], 2 * n_s);
    assert_close(report.rank_seconds[3], 4 * n_s);
    tutti_sim_report_fini(&report);
}

static void a_path_has_its_latency_and_the_overhead_of_its_level(void **state)
{
    static const struct pair out[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}};
    struct tutti_sim_report report;

    (void)state;
    /* The overhead holds no link and no port: all three begin at once. */
    play_pairs("ranks 4; level top latency 1us overhead 2us bandwidth 50GB/s; link 10GB/s 10GB/s;"
               "path 0 1 via 0 latency 7us; path 0 2 via 1; path 0 3 via latency 0us", out, 3,
               &report);
    assert_close(report.rank_seconds[1], 9e-6 + n_s);
    assert_close(report.rank_seconds[2], 3e-6 + n_s);
    /* There is one device, so it has the level's rate and shares it with no other. */
    assert_close(report.rank_seconds[3], 2e-6 + MIB / 50e9);
    tutti_sim_report_fini(&report);
}

static void pairs_without_a_path_go_by_the_levels(void **state)
{
    static const struct pair both[] = {{0, 1, 1}, {1, 0, 1}, {0, 2, 1}};
    struct tutti_sim_report report;

    (void)state;
    play_pairs("ranks 3; level top bandwidth 10GB/s; link 5GB/s; path 0 1 via 0", both, 3, &report);
    assert_close(report.rank_seconds[1], 2 * n_s);
    assert_close(report.rank_seconds[0], 2 * n_s); /* has sent, too */
    assert_close(report.rank_seconds[2], n_s);
    assert_int_equal(report.nlinks, 5); /* two ports each way, and the link */
    tutti_sim_report_fini(&report);
    /* On a torus, too: here the pair that is two hops apart. */
    play_pairs("torus 4; level top latency 1us bandwidth 10GB/s; link 5GB/s; path 0 2 via 0", both,
               3, &report);
    assert_close(report.rank_seconds[1], 1e-6 + n_s);
    assert_close(report.rank_seconds[2], 1e-6 + 2 * n_s);
    tutti_sim_report_fini(&report);
}

/* ---- collectives ------------------------------------------------------------------------ */

static double ring_seconds(double round_s, double bytes, double bytes_per_s)
{
    return 6 * round_s + 1.5 * bytes / bytes_per_s;
}

/* The rings use each link once, both ways round: twice a link's rate. */
static void two_rings_on_a_mesh_take_what_the_textbook_says(void **state)
{
    (void)state;
    assert_close(seconds_of(mesh(4, "80GB/s", "ring 0 1 2 3; level node bandwidth 80GB/s"),
                            TUTTI_ALLREDUCE, "multi_ring", 256 * KIB),
                 ring_seconds(0, 256 * KIB, 160e9));
    assert_close(seconds_of(mesh(4, "80GB/s", "ring 0 1 2 3; level node latency 2us overhead 1us "
                                 "bandwidth 80GB/s"), TUTTI_ALLREDUCE, "multi_ring", 256 * KIB),
                 ring_seconds(3e-6, 256 * KIB, 160e9));
    assert_close(seconds_of(mesh(4, "80GB/s", "level node bandwidth 1GB/s"), TUTTI_ALLREDUCE,
                            "ring", 128 * KIB), ring_seconds(0, 128 * KIB, 80e9));
}

/* Each of the three orders leaves out one of the three pairings, so the six directed rings share
 * each link by two: three times a link's rate, which no schedule can beat. */
static void all_rings_of_a_mesh_reach_the_bound(void **state)
{
    char *machine = mesh(4, "80GB/s", "ring 0 1 2 3; ring 0 2 1 3; ring 0 1 3 2; "
                         "level node bandwidth 80GB/s");

    (void)state;
    assert_close(bound_of(machine, TUTTI_ALLREDUCE, 384 * KIB).bandwidth_s,
                 ring_seconds(0, 384 * KIB, 240e9));
    assert_close(seconds_of(machine, TUTTI_ALLREDUCE, "multi_ring", 384 * KIB),
                 ring_seconds(0, 384 * KIB, 240e9));
}

/* Rings on the same two links per rank share them. */
static void on_a_switch_two_rings_are_no_faster_than_one(void **state)
{
    const char *lines = "ring 0 1 2 3; ring 0 2 1 3; level node bandwidth 80GB/s";

    (void)state;
    assert_close(seconds_of(star(4, "80GB/s", lines), TUTTI_ALLREDUCE, "ring", 256 * KIB),
                 ring_seconds(0, 256 * KIB, 80e9));
    assert_close(seconds_of(star(4, "80GB/s", lines), TUTTI_ALLREDUCE, "multi_ring", 256 * KIB),
                 ring_seconds(0, 256 * KIB, 80e9));
}

/* The tuner's price of rings, which knows what links they share. */
static void rings_are_priced_by_their_links(void **state)
{
    char *machine = mesh(4, "80GB/s", "ring 0 1 2 3; ring 0 2 1 3; ring 0 1 3 2; "
                         "level node latency 0.2us overhead 0.1us bandwidth 80GB/s");
    const struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE,
                                            .block_bytes = 24 * MIB};
    struct tutti_tuner_view view = {.nranks = 4};
    struct tutti_choice choice = {
        .algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "multi_ring"),
    };
    struct stage stage;

    (void)state;
    stage_open(&stage, machine, 0);
    view.machine = stage.machine;
    view.places = &stage.machine->places;
    for (uint32_t channels = 0; channels <= 6; channels++) {
        struct tutti_sim_report report;
        double price;

        choice.options.value[TUTTI_CHANNELS] = channels;
        stage.options = choice.options;
        stage_play(&stage, TUTTI_ALLREDUCE, "multi_ring", 24 * MIB, &report);
        price = tutti_price(&view, &query, &choice);
        if (fabs(price - report.seconds) > 0.02 * report.seconds)
            fail_msg("%u rings take %g us, but cost %g", channels, report.seconds * 1e6,
                     price * 1e6);
        tutti_sim_report_fini(&report);
    }
    stage_close(&stage);
    free(machine);
}

static void one_sided_steps_cross_the_same_links(void **state)
{
    const char *node = "level node latency 1us overhead 2us bandwidth 10GB/s";

    (void)state;
    /* A mesh's links are used by one access each, a switch's by those of all three peers. */
    assert_close(seconds_of(mesh(4, "10GB/s", node), TUTTI_ALLREDUCE, "one_shot", MIB),
                 3e-6 + n_s);
    assert_close(seconds_of(star(4, "10GB/s", node), TUTTI_ALLREDUCE, "one_shot", MIB),
                 3e-6 + 3 * n_s);
    assert_close(seconds_of(mesh(4, "10GB/s", node), TUTTI_ALLREDUCE, "two_shot", MIB),
                 6e-6 + 0.25 * n_s + 0.25 * 3 * n_s);
    assert_close(seconds_of(star(4, "10GB/s", node), TUTTI_ALLREDUCE, "mapped", MIB),
                 6e-6 + 1.5 * n_s);
    assert_close(seconds_of(mesh(4, "10GB/s", node), TUTTI_ALLREDUCE, "mapped", MIB),
                 6e-6 + 0.5 * n_s);
    assert_close(seconds_of(mesh(4, "10GB/s", node), TUTTI_ALLGATHER, "stored", MIB), 6e-6 + n_s);
    assert_close(seconds_of(star(4, "10GB/s", node), TUTTI_ALLGATHER, "stored", MIB),
                 6e-6 + 3 * n_s);
    /* A rank that loads more slowly than its links carry, and stores to its window likewise. */
    assert_close(seconds_of(mesh(4, "10GB/s", "load 20GB/s; level node bandwidth 10GB/s"),
                            TUTTI_ALLREDUCE, "one_shot", MIB), 0.5 * n_s + 1.5 * n_s);
}

/* Rank 0 loads from rank 1: bytes go from 1 to 0. */
static int emit_get(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_needs(build, TUTTI_NEEDS_PEER_READ);
    if (shape->rank != 0)
        return TUTTI_OK;
    return tutti_build_get(build, 1, tutti_span(TUTTI_BUF_INPUT, 0, 1),
                           tutti_span(TUTTI_BUF_OUTPUT, 1, 1));
}

static void a_load_goes_the_way_of_its_bytes(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, "ranks 2; node 2; level node bandwidth 1GB/s; link 5GB/s 10GB/s;"
               "path 0 1 via 0; path 1 0 via 1", 0);
    stage.emit = emit_get;
    stage_play(&stage, TUTTI_ALLGATHER, NULL, MIB, &report);
    assert_close(report.seconds, n_s);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    /* Both on one device: as fast as the rank loads. */
    stage_open(&stage, "ranks 2; node 2; level node bandwidth 10GB/s; path 1 0 via", 0);
    stage.emit = emit_get;
    stage_play(&stage, TUTTI_ALLGATHER, NULL, MIB, &report);
    assert_close(report.seconds, n_s);
    assert_int_equal(report.nlinks, 0);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

/* ---- bounds ------------------------------------------------------------------------------ */

static void cuts_count_distinct_links(void **state)
{
    char *switched = star(4, "10GB/s", "level node bandwidth 1GB/s");
    /* Nodes of 2 behind one card each; within them, ports. */
    const char *nodes = "ranks 4; node 2; level node bandwidth 90GB/s; level top latency 4us "
                        "overhead 1us bandwidth 1GB/s; link 5GB/s 5GB/s 40GB/s 40GB/s;"
                        "path 0 2 via 2 0 1 3; path 0 3 via 2 0 1 3; path 1 2 via 2 0 1 3;"
                        "path 1 3 via 2 0 1 3; path 2 0 via 3 1 0 2; path 2 1 via 3 1 0 2;"
                        "path 3 0 via 3 1 0 2; path 3 1 via 3 1 0 2 latency 3us";
    const struct tutti_sim_bound bound = bound_of(nodes, TUTTI_ALLTOALL, MIB);

    (void)state;
    assert_close(bound_of(switched, TUTTI_ALLGATHER, MIB).bandwidth_s, 3 * n_s);
    assert_close(bound_of(switched, TUTTI_ALLREDUCE, MIB).bandwidth_s, 1.5 * n_s);
    free(switched);
    assert_close(bound.bandwidth_s, 4.0 * MIB / 5e9);
    assert_close(bound.latency_s, 4e-6);
    /* Weights count: a byte takes two of its link. */
    assert_close(bound_of("ranks 2; level top bandwidth 1GB/s; link 10GB/s; path 0 1 via 0x2;"
                          "path 1 0 via 0x4", TUTTI_ALLGATHER, MIB).bandwidth_s, 2 * n_s);
    /* Nothing bounds what crosses no link. */
    assert_true(bound_of("ranks 2; level top bandwidth 1GB/s; path 0 1 via; path 1 0 via",
                         TUTTI_ALLGATHER, MIB).bandwidth_s == 0);
}

/* Numbers that are the same everywhere. */
static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void draw_path(FILE *out, uint32_t *seed, uint32_t from, uint32_t to, uint32_t nlinks)
{
    uint32_t count = draw(seed, 4), link = draw(seed, nlinks);

    fprintf(out, "path %u %u via", from, to);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, " %u", (link + 3 * i) % nlinks); /* nlinks is no multiple of 3 */
        if (draw(seed, 3) == 0)
            fprintf(out, "x%u.5", draw(seed, 3));
    }
    if (draw(seed, 2) == 0)
        fprintf(out, " latency %uns", draw(seed, 4000));
    fputs("\n", out);
}

static char *draw_machine(uint32_t seed)
{
    static const char *const places[] = {"node 7;", "node 3;", "node 2; group 2; trunk 3GB/s;", "",
                                         "node 7; memory 20GB/s; cores 3;", "group 3; nics 1;",
                                         ""};
    static const char *const more[] = {"", "load 9GB/s;", "reduce 8GB/s; copy 9GB/s;",
                                       "signal 2us;"};
    uint32_t nlinks = 4 + 3 * draw(&seed, 4), often = 1 + draw(&seed, 4);
    uint32_t nranks = 2 + draw(&seed, 6), place = draw(&seed, 7), extra = draw(&seed, 4);
    uint32_t latency_ns = draw(&seed, 3000), overhead_ns = draw(&seed, 2) * 700;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    fprintf(out, "ranks %u; %s%s level node latency %uns overhead %uns bandwidth 12GB/s%s;"
            "level top latency 3us overhead 1us bandwidth 5GB/s\n", nranks, places[place],
            more[extra], latency_ns, overhead_ns, draw(&seed, 4) == 0 ? " core 10GB/s" : "");
    if (place == 6)
        fprintf(out, "torus %u\n", nranks);
    for (uint32_t i = 0; i < nlinks; i++)
        fprintf(out, "link %uGB/s\n", 1 + draw(&seed, 30));
    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++)
            if (from != to && draw(&seed, 5) <= often)
                draw_path(out, &seed, from, to, nlinks);
    fclose(out);
    return text;
}

static void check_algorithm(struct stage *stage, const struct tutti_algorithm *algorithm,
                            const char *machine)
{
    static const size_t sizes[] = {0, 1000, 3 * MIB};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tutti_sim_report report;
        struct tutti_sim_bound bound;

        stage_play(stage, algorithm->collective, algorithm->name, sizes[i], &report);
        assert_int_equal(tutti_sim_bound(stage->machine, algorithm->collective, stage->root,
                                         (double)sizes[i], &bound), TUTTI_OK);
        if (report.seconds < bound.latency_s * (1 - 1e-9) ||
            report.seconds < bound.bandwidth_s * (1 - 1e-9))
            fail_msg("%s %s of %zu bytes takes %g us, less than the bounds %g and %g us, on\n%s",
                     tutti_collective_name(algorithm->collective), algorithm->name, sizes[i],
                     report.seconds * 1e6, bound.latency_s * 1e6, bound.bandwidth_s * 1e6, machine);
        for (size_t link = 0; link < report.nlinks; link++)
            if (report.links[link].bytes >
                report.links[link].bytes_per_s * report.links[link].busy_s * (1 + 1e-6))
                fail_msg("%s carries more than it can on\n%s", report.links[link].name, machine);
        tutti_sim_report_fini(&report);
    }
}

static void no_algorithm_beats_the_bounds_of_any_graph(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        char *machine = draw_machine(seed);
        struct stage stage;

        stage_open(&stage, machine, 0);
        for (size_t i = 0; i < tutti_algorithm_count(); i++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(i);
            const struct tutti_placement *places = &stage.machine->places;

            if (algorithm->needs != 0 && (places->node == NULL || places->nnodes > 1))
                continue;
            stage.root = tutti_collective_has_root(algorithm->collective) ? places->nranks / 2 : 0;
            check_algorithm(&stage, algorithm, machine);
        }
        stage_close(&stage);
        free(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_shares_a_link_shares_its_rate),
        cmocka_unit_test(the_narrowest_link_bounds_and_leaves_the_rest_to_others),
        cmocka_unit_test(a_byte_takes_its_weight_of_a_link),
        cmocka_unit_test(a_path_has_its_latency_and_the_overhead_of_its_level),
        cmocka_unit_test(pairs_without_a_path_go_by_the_levels),
        cmocka_unit_test(two_rings_on_a_mesh_take_what_the_textbook_says),
        cmocka_unit_test(all_rings_of_a_mesh_reach_the_bound),
        cmocka_unit_test(on_a_switch_two_rings_are_no_faster_than_one),
        cmocka_unit_test(rings_are_priced_by_their_links),
        cmocka_unit_test(one_sided_steps_cross_the_same_links),
        cmocka_unit_test(a_load_goes_the_way_of_its_bytes),
        cmocka_unit_test(cuts_count_distinct_links),
        cmocka_unit_test(no_algorithm_beats_the_bounds_of_any_graph),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
