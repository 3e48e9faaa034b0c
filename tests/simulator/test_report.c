/* SPDX-License-Identifier: Apache-2.0
 * A report is consistent: the longest path has no gap, shares add up, links carried all bytes that
 * were sent, no time is below the bounds, and the same run gives the same report. */
#include "base/result.h"
#include "simulator/stage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static const char *const machines[] = {
    "ranks 4; level top latency 1us overhead 2us bandwidth 10GB/s; reduce 15GB/s; copy 20GB/s",
    "ranks 4; level top latency 1us bandwidth 10GB/s; reduce 5GB/s",
    "ranks 4; node 4; group 2; nics 2; trunk 15GB/s; level node latency 1us bandwidth 100GB/s;"
    "level group latency 2us overhead 1us bandwidth 20GB/s;"
    "level top overhead 3us bandwidth 10GB/s",
    "ranks 4; node 64; cores 3; memory 30GB/s; copy 10GB/s; reduce 8GB/s;"
    "level node latency 1us overhead 1us bandwidth 12GB/s",
    "ranks 4; node 3 1 2; place cyclic; level node bandwidth 50GB/s;"
    "level top latency 3us overhead 1us bandwidth 5GB/s",
};

static const char torus[] = "torus 3 4; ranks 12;"
                            "level top latency 1us overhead 1us bandwidth 9GB/s";

static bool can_play(const struct stage *stage, const struct tutti_algorithm *algorithm)
{
    const struct tutti_placement *places = &stage->machine->places;

    return algorithm->needs == 0 || (places->node != NULL && places->nnodes == 1);
}

/* Whatever the machine and the algorithm. */
static void check_report(const struct tutti_sim_report *report, uint32_t nranks, const char *what)
{
    double at_s = report->seconds, latest = 0;
    double shares = report->latency_share + report->wire_share + report->work_share +
                    report->wait_share;

    for (uint32_t rank = 0; rank < nranks; rank++)
        latest = report->rank_seconds[rank] > latest ? report->rank_seconds[rank] : latest;
    if (latest != report->seconds)
        fail_msg("%s: the last rank is done at %g, not %g", what, latest, report->seconds);
    for (size_t i = 0; i < report->nhops; i++) {
        const struct tutti_sim_hop *hop = &report->hops[i];

        if (hop->end_s != at_s || !(hop->begin_s < hop->end_s) || hop->rank >= nranks)
            fail_msg("%s: hop %zu goes from %g to %g, after %g", what, i, hop->begin_s, hop->end_s,
                     at_s);
        at_s = hop->begin_s;
    }
    if (at_s != 0)
        fail_msg("%s: the longest path begins at %g", what, at_s);
    if (report->seconds > 0 && fabs(shares - 1) > 1e-9)
        fail_msg("%s: shares add up to %g", what, shares);
    for (size_t i = 0; i < report->nlinks; i++) {
        const struct tutti_sim_link *link = &report->links[i];

        if (!(link->busy_s <= report->seconds * (1 + 1e-9)) ||
            link->bytes > link->bytes_per_s * link->busy_s * (1 + 1e-6))
            fail_msg("%s: %s carried %g in %g s", what, link->name, link->bytes, link->busy_s);
        if (i > 0 && report->links[i - 1].bytes / report->links[i - 1].bytes_per_s <
                         link->bytes / link->bytes_per_s)
            fail_msg("%s: %s is busier than %s", what, link->name, report->links[i - 1].name);
    }
}

static void check_bounds(const struct stage *stage, const struct tutti_algorithm *algorithm,
                         size_t bytes, const struct tutti_sim_report *report, const char *what)
{
    struct tutti_sim_bound bound;

    assert_int_equal(tutti_sim_bound(stage->machine, algorithm->collective, stage->root,
                                     (double)bytes, &bound), TUTTI_OK);
    if (report->seconds < bound.latency_s * (1 - 1e-9) ||
        report->seconds < bound.bandwidth_s * (1 - 1e-9))
        fail_msg("%s takes %g us, less than the bounds %g and %g us", what, report->seconds * 1e6,
                 bound.latency_s * 1e6, bound.bandwidth_s * 1e6);
    assert_true(bound.sum_s == bound.latency_s + bound.bandwidth_s);
}

static void check_algorithm(struct stage *stage, const struct tutti_algorithm *algorithm,
                            const char *machine, size_t bytes)
{
    struct tutti_sim_report report;
    char what[400];

    snprintf(what, sizeof(what), "%s %s, %zu bytes on \"%s\", %u ranks",
             tutti_collective_name(algorithm->collective), algorithm->name, bytes, machine,
             stage->machine->places.nranks);
    stage_play(stage, algorithm->collective, algorithm->name, bytes, &report);
    check_report(&report, stage->machine->places.nranks, what);
    check_bounds(stage, algorithm, bytes, &report, what);
    tutti_sim_report_fini(&report);
}

static void check_machine(const char *machine, uint32_t nranks)
{
    static const size_t sizes[] = {0, 100, 64 * KIB, 3 * MIB};
    struct stage stage;

    stage_open(&stage, machine, nranks);
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);

        stage.root = tutti_collective_has_root(algorithm->collective) ? nranks / 2 : 0;
        if (!can_play(&stage, algorithm))
            continue;
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            check_algorithm(&stage, algorithm, machine, sizes[s]);
    }
    stage_close(&stage);
}

static void every_algorithm_is_told_without_gaps_and_above_the_bounds(void **state)
{
    static const uint32_t nranks[] = {1, 2, 3, 5, 8, 12, 17};

    (void)state;
    for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++)
        for (size_t i = 0; i < sizeof(nranks) / sizeof(nranks[0]); i++)
            check_machine(machines[m], nranks[i]);
    check_machine(torus, 12);
}

/* ---- bounds in closed form ------------------------------------------------------------- */

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

static void bounds_of_a_flat_machine_are_those_of_the_textbook(void **state)
{
    const char *flat = "ranks 1000; level top overhead 5us bandwidth 50GB/s";
    const double alpha = 5e-6, beta = 1 / 50e9;
    struct tutti_sim_bound bound;

    (void)state;
    bound = bound_of(flat, TUTTI_ALLREDUCE, MIB);
    assert_close(bound.latency_s, 10 * alpha);
    assert_close(bound.bandwidth_s, 2 * 0.999 * MIB * beta);
    assert_close(bound.sum_s, 10 * alpha + 2 * 0.999 * MIB * beta);
    assert_close(bound_of(flat, TUTTI_BROADCAST, MIB).bandwidth_s, MIB * beta);
    assert_close(bound_of(flat, TUTTI_ALLGATHER, MIB).bandwidth_s, 999.0 * MIB * beta);
    assert_close(bound_of(flat, TUTTI_SCATTER, MIB).bandwidth_s, 999.0 * MIB * beta);
    assert_close(bound_of(flat, TUTTI_ALLTOALL, MIB).bandwidth_s, 999.0 * MIB * beta);
    assert_true(bound_of(flat, TUTTI_BARRIER, 0).bandwidth_s == 0);
}

static void the_narrowest_cut_bounds(void **state)
{
    /* 4 nodes of 8: their 2 network ports, or their ranks' own, or the trunks between 2 groups. */
    const char *two_ports = "ranks 32; node 8; nics 2; level node bandwidth 300GB/s;"
                            "level top bandwidth 50GB/s";
    const char *tapered = "ranks 32; node 8; group 2; trunk 100GB/s;"
                          "level node bandwidth 300GB/s; level top bandwidth 50GB/s";

    (void)state;
    assert_close(bound_of(two_ports, TUTTI_ALLREDUCE, MIB).bandwidth_s, 1.5 * MIB / 100e9);
    assert_close(bound_of(two_ports, TUTTI_ALLGATHER, MIB).bandwidth_s, 24.0 * MIB / 100e9);
    assert_close(bound_of(tapered, TUTTI_ALLTOALL, MIB).bandwidth_s, 256.0 * MIB / 100e9);
    assert_close(bound_of("torus 8 4; ranks 32; level top bandwidth 10GB/s", TUTTI_ALLTOALL,
                          MIB).bandwidth_s, 256.0 * MIB / 80e9);
    assert_close(bound_of("node 8; ranks 8; memory 40GB/s; level node bandwidth 900GB/s",
                          TUTTI_ALLREDUCE, MIB).bandwidth_s, 16.0 * MIB / 40e9);
}

/* ---- the same again ----------------------------------------------------------------------- */

static void two_runs_give_the_same_report_bit_for_bit(void **state)
{
    struct tutti_sim_report a, b;
    struct stage stage;

    (void)state;
    stage_open(&stage, machines[2], 37);
    stage_play(&stage, TUTTI_ALLREDUCE, "circulant", 777 * KIB, &a);
    stage_play(&stage, TUTTI_ALLREDUCE, "circulant", 777 * KIB, &b);
    assert_true(a.seconds == b.seconds && a.nmessages == b.nmessages && a.bytes == b.bytes);
    assert_true(a.nhops > 10 && a.nlinks > 37);
    assert_int_equal(a.nhops, b.nhops);
    assert_int_equal(a.nlinks, b.nlinks);
    assert_memory_equal(a.rank_seconds, b.rank_seconds, 37 * sizeof(double));
    assert_memory_equal(a.hops, b.hops, a.nhops * sizeof(*a.hops));
    assert_memory_equal(a.links, b.links, a.nlinks * sizeof(*a.links));
    tutti_sim_report_fini(&a);
    tutti_sim_report_fini(&b);
    stage_close(&stage);
}

static void messages_and_bytes_are_counted(void **state)
{
    struct tutti_sim_report report;
    struct stage stage;

    (void)state;
    stage_open(&stage, machines[0], 6);
    stage_play(&stage, TUTTI_ALLGATHER, "ring", 10000, &report);
    assert_int_equal(report.nmessages, 30);
    assert_true(report.bytes == 300000);
    assert_int_equal(report.nlinks, 12);
    for (size_t i = 0; i < report.nlinks; i++) {
        assert_true(report.links[i].bytes == 50000);
        assert_true(report.links[i].bytes_per_s == 10e9);
    }
    assert_string_equal(report.links[0].name, "rank 0 out");
    assert_string_equal(report.links[1].name, "rank 0 in");
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_told_without_gaps_and_above_the_bounds),
        cmocka_unit_test(bounds_of_a_flat_machine_are_those_of_the_textbook),
        cmocka_unit_test(the_narrowest_cut_bounds),
        cmocka_unit_test(two_runs_give_the_same_report_bit_for_bit),
        cmocka_unit_test(messages_and_bytes_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
