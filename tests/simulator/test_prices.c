/* SPDX-License-Identifier: Apache-2.0
 * Compares prices (tuner/price.h) with the simulator where the places of ranks matter: on nodes of
 * eight, on groups of nodes, and on hosts whose ranks share memory. It also tests the choices that
 * follow from the prices. */
#include "simulator/stage.h"
#include "tuner/candidates.h"
#include "tuner/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NODES                                                                         \
    "node 8; level node overhead 1us bandwidth 350GB/s; level top overhead 5us bandwidth 50GB/s"

#define GROUPS                                                                        \
    "node 4; group 2; level node overhead 1us bandwidth 350GB/s;"                      \
    "level group overhead 3us bandwidth 80GB/s; level top overhead 5us bandwidth 50GB/s"

/* Two ports for eight ranks. */
#define SHARED_PORTS                                                                  \
    "node 8; nics 2; level node overhead 1us bandwidth 10GB/s;"                        \
    "level top overhead 5us bandwidth 12GB/s"

/* A core moves all messages of its rank, whether they stay in the node or leave it. */
#define CORES                                                                         \
    "node 8; level node overhead 0.3us bandwidth 9GB/s core 10GB/s;"                   \
    "level top overhead 5us bandwidth 10GB/s core 8GB/s"

static struct tutti_tuner_view view_of(const struct stage *stage)
{
    return (struct tutti_tuner_view){.nranks = stage->machine->places.nranks,
                                     .places = &stage->machine->places,
                                     .machine = stage->machine};
}

static double play(struct stage *stage, const struct tutti_choice *choice, size_t block_bytes)
{
    struct tutti_sim_report report;
    double seconds;

    stage->options = choice->options;
    stage_play(stage, choice->algorithm->collective, choice->algorithm->name, block_bytes, &report);
    seconds = report.seconds;
    tutti_sim_report_fini(&report);
    return seconds;
}

/* `bytes` of the larger buffer. */
static size_t block_of(enum tutti_collective collective, uint32_t nranks, size_t bytes)
{
    bool has_one = tutti_input_blocks(collective, nranks) == 1 &&
                   tutti_output_blocks(collective, nranks) == 1;

    return has_one ? bytes : bytes / nranks;
}

struct range {
    double least, most;
};

/* Played time over price, at three sizes. */
static void hold(const char *machine, uint32_t nranks, const struct tutti_algorithm *algorithm,
                 struct range range)
{
    static const size_t sizes[] = {4 << 10, 256 << 10, 4 << 20};
    struct tutti_choice choice = {.algorithm = algorithm};
    struct stage stage;

    stage_open(&stage, machine, nranks);
    assert_non_null(algorithm);
    assert_int_equal(tutti_algorithm_options(algorithm, &choice.options, &choice.options), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t block = block_of(algorithm->collective, nranks, sizes[i]);
        struct tutti_tuner_query query = {.collective = algorithm->collective,
                                          .block_bytes = block};
        struct tutti_tuner_view view = view_of(&stage);
        double ratio = play(&stage, &choice, block) / tutti_price(&view, &query, &choice);

        if (ratio < range.least || ratio > range.most)
            fail_msg("%s, %u ranks: %s %s of %zu bytes takes %.3f times its price", machine, nranks,
                     tutti_collective_name(algorithm->collective), algorithm->name, sizes[i],
                     ratio);
    }
    stage_close(&stage);
}

/* ---- nodes ------------------------------------------------------------------------------- */

static const struct range close_by = {0.97, 1.03};

/* Flat algorithms whose rounds partly stay in a node. In the all-gather of circulant, whose ranks
 * have no rounds in common, those that are ahead come before others at a port. */
static const struct {
    enum tutti_collective collective;
    const char *name;
    struct range on_nodes, on_groups;
} flat[] = {
    {TUTTI_ALLREDUCE, "recursive_doubling", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_ALLREDUCE, "rabenseifner", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_ALLREDUCE, "hybrid", {0.97, 1.03}, {0.97, 1.2}},
    {TUTTI_ALLREDUCE, "ring", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_ALLREDUCE, "multi_ring", {0.97, 1.07}, {0.97, 1.03}},
    {TUTTI_ALLREDUCE, "circulant", {0.97, 1.1}, {0.97, 1.15}},
    {TUTTI_ALLGATHER, "recursive_doubling", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_ALLGATHER, "ring", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_REDUCE_SCATTER, "recursive_halving", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_REDUCE_SCATTER, "circulant", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_BROADCAST, "knomial", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_REDUCE, "knomial", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_GATHER, "knomial", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_SCATTER, "knomial", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_REDUCE, "linear", {0.97, 1.03}, {0.97, 1.03}},
    {TUTTI_BROADCAST, "chain", {0.5, 1.03}, {0.5, 1.03}}, /* slices run ahead of segments */
};

static void rounds_within_a_node_have_its_price(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) {
        const struct tutti_algorithm *algorithm =
            tutti_algorithm_find(flat[i].collective, flat[i].name);

        for (uint32_t nranks = 16; nranks <= 64; nranks *= 2) {
            hold(NODES, nranks, algorithm, flat[i].on_nodes);
            hold(GROUPS, nranks, algorithm, flat[i].on_groups);
        }
    }
}

/* One rank of a node at a time leaves it, and has the network port for itself. */
static void who_is_alone_at_a_port_does_not_share_it(void **state)
{
    static const enum tutti_collective trees[] = {TUTTI_BROADCAST, TUTTI_REDUCE, TUTTI_GATHER,
                                                  TUTTI_SCATTER};

    (void)state;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        hold(SHARED_PORTS, 64, tutti_algorithm_find(trees[i], "knomial"), close_by);
    hold(SHARED_PORTS, 64, tutti_algorithm_find(TUTTI_ALLREDUCE, "ring"), close_by);
    hold(SHARED_PORTS, 64, tutti_algorithm_find(TUTTI_REDUCE, "linear"), close_by);
}

/* Levels whose segments overlap on ports do not overlap on a core, which works for one at a time. */
static void a_core_works_for_one_level_at_a_time(void **state)
{
    static const char *const names[] = {"hierarchical", "multi_ring"};
    const size_t bytes = (size_t)64 << 20;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = bytes};
        struct tutti_choice choice;
        struct tutti_tuner_view view;
        struct stage stage;
        double price, ratio;

        stage_open(&stage, CORES, 32);
        view = view_of(&stage);
        tutti_candidate_cheapest_variant(&view, &query,
                                         tutti_algorithm_find(TUTTI_ALLREDUCE, names[i]), &choice,
                                         &price);
        ratio = play(&stage, &choice, bytes) / price;
        print_message("%s on cores: %.3f times its price\n", names[i], ratio);
        assert_true(ratio > 0.95 && ratio < 1.2);
        stage_close(&stage);
    }
}

/* Rings whose orders are not given leave a node by all of its ports. The directed rings together
 * have eight times the bandwidth of one port, as users of NCCL expect. */
static void rings_use_all_ports_of_a_node(void **state)
{
#define PORTS                                                                         \
    "node 8; level node latency 1us bandwidth 370GB/s;"                                \
    "level top latency 5us bandwidth 50GB/s"
    static const char *const machines[] = {PORTS, PORTS "; place cyclic", PORTS "; nics 8",
                                           PORTS "; group 2; trunk 1000GB/s"};
    const size_t bytes = (size_t)1 << 30;

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (uint32_t nranks = 16; nranks <= 64; nranks += 8) {
            struct tutti_choice choice = {
                .algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "multi_ring")};
            struct stage stage;
            double busbw;

            stage_open(&stage, machines[i], nranks);
            busbw = 2 * (nranks - 1.0) / nranks * (double)bytes / play(&stage, &choice, bytes);
            stage_close(&stage);
            if (busbw < 0.97 * 8 * 50e9)
                fail_msg("%s, %u ranks: %.1f GB/s", machines[i], nranks, busbw / 1e9);
        }
#undef PORTS
}

/* The chosen algorithm takes its price, and no flat all-reduce would have been faster. */
static void what_is_chosen_on_nodes_is_the_fastest(void **state)
{
    static const size_t sizes[] = {8 << 10, 256 << 10, 1 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = sizes[i]};
        struct tutti_tuner_view view;
        struct tutti_choice choice;
        struct stage stage;
        double price, played;

        stage_open(&stage, NODES, 64);
        view = view_of(&stage);
        assert_true(tutti_candidate_cheapest(&view, &query, &choice, &price));
        played = play(&stage, &choice, sizes[i]);
        print_message("%zu bytes: %s, price %.2f us, played %.2f us\n", sizes[i],
                      choice.algorithm->name, price * 1e6, played * 1e6);
        assert_true(played < 1.1 * price);
        for (size_t f = 0; flat[f].collective == TUTTI_ALLREDUCE; f++) {
            struct tutti_choice other = {
                .algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, flat[f].name)};
            double seconds;

            tutti_candidate_cheapest_variant(&view, &query, other.algorithm, &other, &seconds);
            if (played > 1.05 * play(&stage, &other, sizes[i]))
                fail_msg("%zu bytes: %s is chosen, %s is faster", sizes[i], choice.algorithm->name,
                         other.algorithm->name);
        }
        stage_close(&stage);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static void ranks_that_share_memory_have_no_ports_to_it(void **state)
{
    static const char *const machines[] = {
        "node 64; level node overhead 5us bandwidth 50GB/s; memory 150GB/s",
        "node 64; level node overhead 5us bandwidth 50GB/s; memory 1000GB/s",
        "node 64; level node overhead 1us bandwidth 10GB/s; memory 40GB/s; copy 10GB/s",
    };

    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(a);
        /* Data that goes through windows is first copied there, which memory limits, and loaded
         * later, which a port limits. A price has only the slower of both. Likewise a mapped scan
         * combines what it has loaded, and the root of a shared broadcast copies to itself the data
         * that it has given to all. */
        bool has_phases = (algorithm->needs & TUTTI_NEEDS_WINDOW) || algorithm->sums_in_stages;
        struct range range = {0.8, has_phases                                  ? 1.7
                                   : algorithm->needs & TUTTI_NEEDS_PEER_STORE ? 1.3 : 1.2};

        for (size_t m = 0; algorithm->needs != 0 && m < sizeof machines / sizeof *machines; m++) {
            hold(machines[m], 4, algorithm, range);
            hold(machines[m], 64, algorithm, range);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_within_a_node_have_its_price),
        cmocka_unit_test(who_is_alone_at_a_port_does_not_share_it),
        cmocka_unit_test(a_core_works_for_one_level_at_a_time),
        cmocka_unit_test(rings_use_all_ports_of_a_node),
        cmocka_unit_test(what_is_chosen_on_nodes_is_the_fastest),
        cmocka_unit_test(ranks_that_share_memory_have_no_ports_to_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
