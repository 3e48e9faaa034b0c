/* SPDX-License-Identifier: Apache-2.0
 * On a torus bucket and swing use all ports of a rank at the same time. Large calls come near the
 * bound, and prices are near the time of the simulator. */
#include "simulator/stage.h"
#include "tuner/candidates.h"
#include "tuner/price.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LINKS "; level top latency 500ns bandwidth 12.5GB/s"
#define SQUARE "torus 16 16" LINKS
#define CUBE "torus 8 8 8" LINKS

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct tutti_tuner_view view_of(const struct stage *stage)
{
    return (struct tutti_tuner_view){.nranks = stage->machine->places.nranks,
                                     .places = &stage->machine->places,
                                     .machine = stage->machine};
}

/* The blocks of a call whose larger buffer has `bytes`. */
static size_t block_of(enum tutti_collective collective, uint32_t nranks, size_t bytes)
{
    return collective == TUTTI_ALLREDUCE ? bytes : bytes / nranks;
}

/* The bound over the time, and the time over the price. */
struct outcome {
    double efficiency, ratio;
};

static struct outcome play(const char *machine, enum tutti_collective collective, const char *name,
                           size_t bytes)
{
    struct tutti_choice choice = {.algorithm = tutti_algorithm_find(collective, name)};
    struct tutti_tuner_query query = {.collective = collective};
    struct tutti_sim_report report;
    struct tutti_tuner_view view;
    struct tutti_sim_bound bound;
    struct outcome outcome;
    struct stage stage;

    stage_open(&stage, machine, 0);
    view = view_of(&stage);
    query.block_bytes = block_of(collective, view.nranks, bytes);
    stage_play(&stage, collective, name, query.block_bytes, &report);
    assert_int_equal(tutti_sim_bound(stage.machine, collective, 0, (double)query.block_bytes,
                                     &bound), TUTTI_OK);
    outcome.efficiency = (bound.latency_s > bound.bandwidth_s ? bound.latency_s
                                                              : bound.bandwidth_s) / report.seconds;
    outcome.ratio = report.seconds / tutti_price(&view, &query, &choice);
    print_message("%s %s, %zu MiB, %s: %.1f %% of the bound, %.2f times the price\n",
                  tutti_collective_name(collective), name, bytes / MIB, machine,
                  100 * outcome.efficiency, outcome.ratio);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return outcome;
}

static void bucket_reaches_four_fifths_of_the_bound(void **state)
{
    static const enum tutti_collective collectives[] = {TUTTI_ALLREDUCE, TUTTI_ALLGATHER,
                                                        TUTTI_REDUCE_SCATTER};
    static const char *const machines[] = {SQUARE, CUBE, "torus 5 7" LINKS, "torus 4 16" LINKS,
                                           "torus 6 8 5" LINKS};

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
            assert_true(play(machines[m], collectives[c], "bucket", 16 * MIB).efficiency >= 0.8);
    assert_true(play(SQUARE, TUTTI_ALLREDUCE, "bucket", 64 * MIB).efficiency >= 0.95);
    assert_true(play(CUBE, TUTTI_ALLREDUCE, "bucket", 64 * MIB).efficiency >= 0.9);
}

/* With all parts in step, links carry 1.14 times the least on 16 x 16 (De Sensi et al.). */
static void swing_reaches_four_fifths_of_the_bound(void **state)
{
    (void)state;
    assert_true(play(SQUARE, TUTTI_ALLREDUCE, "swing", 16 * MIB).efficiency >= 0.8);
    assert_true(play(CUBE, TUTTI_ALLREDUCE, "swing", 48 * MIB).efficiency >= 0.9);
}

static void each_port_adds_its_bandwidth(void **state)
{
    static const char *const names[] = {"bucket", "swing"};
    struct tutti_sim_report report;
    struct stage stage;
    double one;

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        stage_open(&stage, "torus 8 8; level top bandwidth 12.5GB/s", 0);
        stage.options.value[TUTTI_CHANNELS] = 1;
        stage_play(&stage, TUTTI_ALLREDUCE, names[n], 16 * MIB, &report);
        one = report.seconds;
        tutti_sim_report_fini(&report);
        stage.options.value[TUTTI_CHANNELS] = 4;
        stage_play(&stage, TUTTI_ALLREDUCE, names[n], 16 * MIB, &report);
        assert_true(report.seconds < one / 3.5);
        tutti_sim_report_fini(&report);
        stage_close(&stage);
    }
}

/* Powers of two: all parts are in step. Where they are not, swing's parts share links. */
static void prices_are_near_the_time(void **state)
{
    static const struct {
        const char *machine, *name;
        double most;
    } rows[] = {
        {SQUARE, "bucket", 1.05},             {SQUARE, "swing", 1.05},
        {"torus 4 16" LINKS, "bucket", 1.05}, {"torus 4 16" LINKS, "swing", 1.05},
        {"torus 6 8 5" LINKS, "bucket", 1.15}, {"torus 2 2 2 2" LINKS, "bucket", 1.05},
        {"torus 2 2 2 2" LINKS, "swing", 1.05}, {"torus 5 5" LINKS, "bucket", 1.05},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t bytes = 64 * KIB; bytes <= 16 * MIB; bytes *= 16) {
            double ratio = play(rows[i].machine, TUTTI_ALLREDUCE, rows[i].name, bytes).ratio;

            if (ratio < 0.95 || ratio > rows[i].most)
                fail_msg("%s, %s, %zu bytes: %.3f times the price", rows[i].machine, rows[i].name,
                         bytes, ratio);
        }
}

/* The short paths of swing are best for medium sizes, and neighbors only for large ones. */
static void the_tuner_chooses_them(void **state)
{
    static const struct {
        const char *machine;
        size_t bytes;
        const char *name;
    } rows[] = {
        {SQUARE, 1 * MIB, "swing"},  {SQUARE, 64 * MIB, "bucket"},
        {CUBE, 256 * KIB, "swing"},  {CUBE, 64 * MIB, "bucket"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE,
                                          .block_bytes = rows[i].bytes};
        struct tutti_tuner_view view;
        struct tutti_choice choice;
        struct stage stage;
        double price;

        stage_open(&stage, rows[i].machine, 0);
        view = view_of(&stage);
        assert_true(tutti_candidate_cheapest(&view, &query, &choice, &price));
        assert_string_equal(choice.algorithm->name, rows[i].name);
        assert_int_equal(choice.options.value[TUTTI_CHANNELS], 0);
        stage_close(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_reaches_four_fifths_of_the_bound),
        cmocka_unit_test(swing_reaches_four_fifths_of_the_bound),
        cmocka_unit_test(each_port_adds_its_bandwidth),
        cmocka_unit_test(prices_are_near_the_time),
        cmocka_unit_test(the_tuner_chooses_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
