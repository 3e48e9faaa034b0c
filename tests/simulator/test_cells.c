/* SPDX-License-Identifier: Apache-2.0
 * Tests cells of a node. Data between cells shares the rate of a cell's bridge, and arrives later.
 * The cases are small enough to compute their times by hand. */
#include "base/result.h"
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1024 * 1024 };

/* A rank alone does 10 GB/s, and the two of a cell together 10 GB/s between the cells. */
#define CELLS "ranks 4; node 4; cell 2; level node latency 1us bandwidth 10GB/s; "
#define BRIDGE "bridge latency 3us bandwidth 10GB/s; "

static const double n_s = MIB / 10e9;

/* The steps of each rank: the peers and the kinds. */
enum move { NOTHING, SEND, GET, PUT, SIGNAL, WAIT };

struct part {
    enum move move;
    int32_t peer;
};

static const struct part *parts;

static int emit_parts(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, shape->rank, 1);
    struct part part = parts[shape->rank];
    uint32_t peer = (uint32_t)part.peer;

    tutti_build_needs(build, TUTTI_NEEDS_PEER_STORE);
    tutti_build_signals(build, 1);
    for (uint32_t rank = 0; rank < shape->nranks; rank++)
        if (parts[rank].move == SEND && parts[rank].peer == (int32_t)shape->rank)
            TUTTI_TRY(tutti_build_recv(build, rank, tutti_span(TUTTI_BUF_OUTPUT, rank, 1)));
    switch (part.move) {
    case SEND: return tutti_build_send(build, peer, own);
    case GET:
        return tutti_build_get(build, peer, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1));
    case PUT:
        return tutti_build_put(build, peer, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1));
    case SIGNAL: return tutti_build_signal(build);
    case WAIT: return tutti_build_wait(build, part.peer, 1);
    default: return TUTTI_OK;
    }
}

static double play(const char *machine, const struct part *ranks, double *ret_rank_seconds)
{
    struct tutti_sim_report report;
    struct stage stage;
    double seconds;

    parts = ranks;
    stage_open(&stage, machine, 0);
    stage.emit = emit_parts;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, &report);
    seconds = report.seconds;
    for (uint32_t rank = 0; rank < 4 && ret_rank_seconds != NULL; rank++)
        ret_rank_seconds[rank] = report.rank_seconds[rank];
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return seconds;
}

static void messages_share_the_bridge_and_arrive_later(void **state)
{
    static const struct part within[4] = {{SEND, 1}, {0}, {SEND, 3}, {0}};
    static const struct part one_over[4] = {{SEND, 2}, {0}, {0}, {0}};
    static const struct part two_over[4] = {{SEND, 2}, {SEND, 3}, {0}, {0}};
    static const struct part both_ways[4] = {{SEND, 2}, {0}, {0}, {SEND, 1}};

    (void)state;
    assert_close(play(CELLS BRIDGE, within, NULL), n_s + 1e-6);
    assert_close(play(CELLS BRIDGE, one_over, NULL), n_s + 4e-6);
    assert_close(play(CELLS BRIDGE, two_over, NULL), 2 * n_s + 4e-6);
    assert_close(play(CELLS BRIDGE, both_ways, NULL), n_s + 4e-6);
    /* Without a bridge cells change nothing. */
    assert_close(play(CELLS, two_over, NULL), n_s + 1e-6);
}

static void a_narrow_bridge_holds_one_that_is_alone(void **state)
{
    static const struct part one_over[4] = {{SEND, 2}, {0}, {0}, {0}};

    (void)state;
    assert_close(play(CELLS "bridge bandwidth 5GB/s", one_over, NULL), 2 * n_s + 1e-6);
}

static void loads_and_stores_cross_it_in_the_direction_of_their_bytes(void **state)
{
    static const struct part two_loads[4] = {{GET, 2}, {GET, 3}, {0}, {0}};
    static const struct part two_stores[4] = {{PUT, 2}, {PUT, 3}, {0}, {0}};
    /* Both bring bytes to the second cell, or one of them to each. */
    static const struct part same_way[4] = {{PUT, 2}, {0}, {0}, {GET, 1}};
    static const struct part other_way[4] = {{GET, 2}, {0}, {0}, {GET, 1}};
    static const struct part within[4] = {{GET, 1}, {0}, {PUT, 3}, {0}};

    (void)state;
    for (int has_memory = 0; has_memory < 2; has_memory++) {
        const char *machine = has_memory ? CELLS BRIDGE "memory 1TB/s" : CELLS BRIDGE;

        assert_close(play(machine, two_loads, NULL), 2 * n_s);
        assert_close(play(machine, two_stores, NULL), 2 * n_s);
        assert_close(play(machine, same_way, NULL), 2 * n_s);
        assert_close(play(machine, other_way, NULL), n_s);
        assert_close(play(machine, within, NULL), n_s);
    }
}

static void signals_are_seen_within_a_cell_first(void **state)
{
    static const struct part one[4] = {{SIGNAL, 0}, {WAIT, 0}, {WAIT, 0}, {WAIT, 0}};
    double seconds[4];

    (void)state;
    play(CELLS BRIDGE, one, seconds);
    assert_close(seconds[1], 1e-6);
    assert_close(seconds[2], 4e-6);
    assert_close(seconds[3], 4e-6);
    play(CELLS "signal 2us; " BRIDGE, one, seconds);
    assert_close(seconds[1], 2e-6);
    assert_close(seconds[2], 5e-6);
}

/* Rank r signals, and waits for all: the others of its cell, then those of other cells. */
static int emit_meeting(const struct tutti_shape *shape, struct tutti_build *build)
{
    (void)shape;
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 1);
}

static void who_waits_for_all_waits_for_those_afar(void **state)
{
    static const struct {
        const char *machine;
        double first, last; /* ranks */
    } cases[] = {
        {CELLS BRIDGE, 4e-6, 4e-6},
        {CELLS "bridge bandwidth 1GB/s", 1e-6, 1e-6},
        {"ranks 5; node 5; cell 2; level node latency 1us bandwidth 1GB/s; bridge latency 1us",
         2e-6, 2e-6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_sim_report report;
        struct stage stage;

        stage_open(&stage, cases[i].machine, 0);
        stage.emit = emit_meeting;
        stage_play(&stage, TUTTI_BARRIER, NULL, 0, &report);
        assert_close(report.rank_seconds[0], cases[i].first);
        assert_close(report.seconds, cases[i].last);
        tutti_sim_report_fini(&report);
        stage_close(&stage);
    }
}

/* Each rank loads what the other three have: two of them from the other cell. */
static void an_all_shot_crosses_for_every_pair(void **state)
{
    double memory = stage_seconds(CELLS "bridge bandwidth 1GB/s; memory 1TB/s; signal 1ns", 0,
                                  TUTTI_ALLREDUCE, "one_shot", MIB);
    double bridge = 4.0 * MIB / 1e9;

    (void)state;
    /* Two ranks load two vectors each over it; laying out takes memory alone. */
    assert_true(memory > bridge && memory < bridge * 1.01);
}

/* Two sockets of 16 with 40 GB/s each way between them; a core loads 20 GB/s. */
#define SOCKETS "ranks 32; node 32; cell 16; level node overhead 0.3us bandwidth 20GB/s; " \
    "bridge latency 100ns bandwidth 40GB/s; memory 1TB/s; copy 20GB/s; reduce 20GB/s"

/* Without cells, a call takes as long as what crosses: half of all vectors, or blocks, each way. */
static void by_cells_large_calls_are_not_bound_by_the_bridge(void **state)
{
    static const struct {
        enum tutti_collective collective;
        const char *flat;
        double flat_crosses; /* blocks, each way */
        double faster;       /* at least */
    } cases[] = {
        {TUTTI_ALLREDUCE, "two_shot", 2 * 16 * 16 / 32.0, 2.3},
        {TUTTI_REDUCE_SCATTER, "direct", 16 * 16, 2.1},
        {TUTTI_ALLGATHER, "direct", 16 * 16, 2.6},
        {TUTTI_BROADCAST, "direct", 16, 3.3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_shared = cases[i].collective == TUTTI_ALLREDUCE ||
                         cases[i].collective == TUTTI_BROADCAST;
        double bytes = is_shared ? 32.0 * MIB : MIB;
        double flat = stage_seconds(SOCKETS, 0, cases[i].collective, cases[i].flat, (size_t)bytes);
        double cells = stage_seconds(SOCKETS, 0, cases[i].collective, "cells", (size_t)bytes);

        assert_true(flat >= cases[i].flat_crosses * bytes / 40e9 * (1 - 1e-6));
        if (cells * cases[i].faster > flat)
            fail_msg("%s: %g s by cells, %g s without",
                     tutti_collective_name(cases[i].collective), cells, flat);
    }
}

/* In small calls two lines cross instead of 16 per rank, at the cost of one more round within the
 * cells. */
static void by_cells_small_calls_wait_for_the_bridge_once(void **state)
{
    static const char machine[] = "ranks 16; node 16; cell 8; signal 100ns; memory 1TB/s; "
        "level node latency 100ns bandwidth 1TB/s; bridge latency 1us";
    double cells = stage_seconds(machine, 0, TUTTI_ALLREDUCE, "cells_one_shot", 8);
    double meeting = stage_seconds(machine, 0, TUTTI_BARRIER, "cells", 0);

    (void)state;
    assert_true(cells > 1.3e-6 && cells < 1.31e-6);
    assert_close(meeting, 1.3e-6);
}

static void the_report_names_cells(void **state)
{
    static const struct part two_over[4] = {{SEND, 2}, {SEND, 3}, {0}, {0}};
    struct tutti_sim_report report;
    struct stage stage;
    bool has_out = false, has_in = false;

    (void)state;
    parts = two_over;
    stage_open(&stage, CELLS BRIDGE, 0);
    stage.emit = emit_parts;
    stage_play(&stage, TUTTI_ALLTOALL, NULL, MIB, &report);
    for (size_t i = 0; i < report.nlinks; i++) {
        bool is_full = report.links[i].bytes == 2.0 * MIB;

        has_out = has_out || (is_full && strcmp(report.links[i].name, "cell 0 out") == 0);
        has_in = has_in || (is_full && strcmp(report.links[i].name, "cell 1 in") == 0);
    }
    assert_true(has_out && has_in);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_share_the_bridge_and_arrive_later),
        cmocka_unit_test(a_narrow_bridge_holds_one_that_is_alone),
        cmocka_unit_test(loads_and_stores_cross_it_in_the_direction_of_their_bytes),
        cmocka_unit_test(signals_are_seen_within_a_cell_first),
        cmocka_unit_test(who_waits_for_all_waits_for_those_afar),
        cmocka_unit_test(an_all_shot_crosses_for_every_pair),
        cmocka_unit_test(by_cells_large_calls_are_not_bound_by_the_bridge),
        cmocka_unit_test(by_cells_small_calls_wait_for_the_bridge_once),
        cmocka_unit_test(the_report_names_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
