/* SPDX-License-Identifier: Apache-2.0
 * Tests rings and trees: how much they carry, that links can carry it, and that nothing carries
 * more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "support/machines.h"
#include "topology/search/search.h"

#define RING TUTTI_PATTERN_RING
#define TREE TUTTI_PATTERN_TREE
#define CAST TUTTI_PATTERN_BROADCAST

static const struct {
    const char *line;
    enum tutti_pattern pattern;
    bool has_peers;
    double gb_per_s, bound_gb_per_s;
} known[] = {
    /* Each gpu sends and receives all it can. A tree's inner gpus send twice: n / (2 n - 2). */
    {"8 gpus h100 nvswitch 18, 2 cpus", RING, false, 370.8, 370.8},
    {"8 gpus h100 nvswitch 18, 2 cpus", TREE, false, 370.8 * 8 / 14, 370.8 * 8 / 14},
    {"16 gpus v100 nvswitch 6, 2 cpus", RING, false, 120, 120},
    {"72 gpus b200 nvswitch 18, 2 cpus", RING, false, 721.8, 721.8},
    /* Twelve directed edges of 80; three for each tree, four for each ring. */
    {"4 gpus a100 mesh 4, 4 cpus milan", RING, false, 240, 240},
    {"4 gpus a100 mesh 4, 4 cpus milan", TREE, false, 160, 160},
    {"4 gpus a100 mesh 4, 4 cpus milan", CAST, false, 320, 320},
    {"8 gpus mi300x mesh 1, 2 cpus", RING, false, 336, 336},
    /* One ring, both ways round. */
    {"4 gpus mi50 ring, 1 cpu", RING, false, 48, 48},
    {"4 gpus mi50 ring, 1 cpu", TREE, false, 32, 32},
    /* A DGX-1 of V100: six links of 20 at each gpu, all used. */
    {"8 gpus v100 cube-mesh, 2 cpus broadwell", RING, false, 120, 120},
    /* The link between the CPUs, crossed once each way. */
    {"4 gpus a6000 pcie, 2 cpus skylake", RING, false, 10, 10},
    {"8 gpus rtx4090 pcie, 2 cpus rome", RING, false, 16, 16},
    /* Two hives, joined by PCI alone. */
    {"8 gpus mi100 mesh 1 hives 2, 1 cpu rome", RING, false, 96, 96},
    /* One gpu needs no link. Two have one edge, both ways. */
    {"1 gpus h100 pcie, 1 cpu", RING, false, INFINITY, INFINITY},
    {"2 gpus a100 pairs 12, 2 cpus", RING, false, 240, 240},
    {"2 gpus a100 pairs 12, 2 cpus", TREE, false, 240, 240},
    /* Hosts: all nets, each with its own gpu; one net for all; a slow one beside. */
    {"8 gpus h100 nvswitch 18, 8 switches gen5, 8 nics 400G gen5, 2 cpus sapphire", RING, true,
     370.8, 370.8},
    {"8 gpus h200 nvswitch 18, 8 switches gen5, 8 nics 200G gen5, 2 cpus sapphire", RING, true,
     200, 200},
    /* In at the near gpu, out by several, whose CPUs' links to the net's carry 16 each. */
    {"4 gpus a100 mesh 4, 4 cpus milan, 1 nics 200G gen4", RING, true, 24, 24},
    {"1 gpus a100 pcie, 2 cpus rome, 1 nics 200G near gpu 0, 1 nics 25G on cpu 1", RING, true, 24,
     24},
};

static bool is_near(double a, double b)
{
    return (isinf(a) && isinf(b)) || fabs(a - b) <= 1e-4 * b;
}

static void machines_whose_best_is_known_get_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct machine machine = open_machine(known[i].line);
        struct tutti_search_options options = {.has_peers = known[i].has_peers};
        struct tutti_channels *plan;

        if (tutti_search(machine.paths, known[i].pattern, &options, &plan) != 0)
            fail_msg("%s: %s", known[i].line, tutti_message_last());
        if (!is_near(plan->bytes_per_s / 1e9, known[i].gb_per_s) ||
            !is_near(plan->bound_bytes_per_s / 1e9, known[i].bound_gb_per_s))
            fail_msg("%s: %s of %g GB/s, bound %g; %g, bound %g, are known", known[i].line,
                     tutti_pattern_name(known[i].pattern), plan->bytes_per_s / 1e9,
                     plan->bound_bytes_per_s / 1e9, known[i].gb_per_s, known[i].bound_gb_per_s);
        tutti_channels_destroy(plan);
        close_machine(&machine);
    }
}

/* ---- what plans promise ---------------------------------------------------------------------- */

static const char *const machines[] = {
    "8 gpus h100 nvswitch 18, 8 switches gen5, 8 nics 400G gen5, 2 cpus sapphire",
    "8 gpus v100 cube-mesh, 4 switches, 4 nics 100G, 2 cpus broadwell",
    ("8 gpus mi250x links 0-1:4 2-3:4 4-5:4 6-7:4 0-2 1-3 4-6 5-7 0-4:2 3-7:2, 4 cpus milan, "
     "4 nics 200G slingshot"),
    "4 gpus a6000 pcie, 2 switches under 1, 2 nics 100G ports 2, 2 cpus skylake",
    "5 gpus a100 links 0-1 1-2 2-3 3-4 0-4 0-2 1-3, 2 cpus rome, 3 nics 100G",
    "3 gpus mi100 pcie, 2 cpus rome, 1 nics 100G",
    "7 gpus mi100 ring 2, 3 nics 50G, 1 cpu rome",
    "16 gpus mi100 mesh 1 hives 4, 4 nics 100G, 2 cpus rome",
    "2 gpus a100 pairs 12, 1 nics 25G, 2 cpus",
    "1 gpus a100 pcie, 1 nics 25G, 1 cpu",
};

#define MACHINES (sizeof(machines) / sizeof(machines[0]))

static void links_carry_what_plans_put_on_them(void **state)
{
    (void)state;
    for (size_t m = 0; m < MACHINES; m++) {
        struct machine machine = open_machine(machines[m]);

        for (int pattern = 0; pattern < TUTTI_PATTERN_COUNT; pattern++)
            for (int way = 0; way < 4; way++) {
                struct tutti_search_options options = {
                    .has_peers = way > 0, .may_cross = way == 2,
                    .nchannels = way == 3 ? 2 : 0, .channel_bytes_per_s = way == 2 ? 5e9 : 0};
                struct tutti_channels *plan;

                if (tutti_search(machine.paths, pattern, &options, &plan) != 0)
                    fail_msg("%s: %s", machines[m], tutti_message_last());
                check_channels(machines[m], machine.paths, plan);
                assert_true(plan->nchannels <= (way == 3 ? 2 : 32));
                /* Channels of one width lose little against shares of any. */
                if (way < 3 && plan->bytes_per_s < 0.9 * plan->bound_bytes_per_s)
                    fail_msg("%s: %s, way %d: %g GB/s, bound %g", machines[m],
                             tutti_pattern_name(pattern), way, plan->bytes_per_s / 1e9,
                             plan->bound_bytes_per_s / 1e9);
                tutti_channels_destroy(plan);
            }
        close_machine(&machine);
    }
}

/* ---- the proof, looked at independently ------------------------------------------------------ */

/* The bound's shares are prices of links: per byte, share * bound / capacity. */
static double *prices_of(const struct tutti_graph *graph, const struct tutti_channels *plan)
{
    double *price = calloc(graph->nlinks + 1, sizeof *price);

    for (uint32_t i = 0; i < plan->nbounds; i++)
        price[plan->bound_link[i]] = plan->bound_share[i] * plan->bound_bytes_per_s /
                                     graph->links[plan->bound_link[i]].bytes_per_s;
    return price;
}

static double price_path(const struct tutti_paths *paths, const double *price, uint32_t a,
                         uint32_t b)
{
    const struct tutti_path *path = tutti_paths_between(paths, paths->end[a], paths->end[b]);
    double sum = 0;

    for (uint32_t h = 0; h < path->nhops; h++)
        sum += paths->hop[path->first + h].demand * price[paths->hop[path->first + h].link];
    return sum;
}

/* Of all orders of gpus 0 .. n-1, of which `count` are chosen; gpus are the first ends. */
static double cheapest_ring(const struct tutti_paths *paths, const double *price, uint32_t *order,
                            uint32_t count, uint32_t n, double so_far)
{
    double best = INFINITY;

    if (count >= n)
        return so_far + price_path(paths, price, order[n - 1], order[0]);
    for (uint32_t gpu = 1; gpu < n; gpu++) {
        bool is_new = true;
        double cost;

        for (uint32_t i = 0; i < count; i++)
            is_new = is_new && order[i] != gpu;
        if (!is_new)
            continue;
        order[count] = gpu;
        cost = cheapest_ring(paths, price, order, count + 1, n,
                             so_far + price_path(paths, price, order[count - 1], gpu));
        best = cost < best ? cost : best;
    }
    return best;
}

/* Of all n^(n-2) trees, by their Pruefer codes. */
static double cheapest_tree(const struct tutti_paths *paths, const double *price, uint32_t n)
{
    uint32_t ncodes = 1;
    double best = INFINITY;

    for (uint32_t i = 2; i < n; i++)
        ncodes *= n;
    for (uint32_t code = 0; code < ncodes; code++) {
        uint32_t degree[8], rest = code;
        double cost = 0;

        for (uint32_t i = 0; i < n; i++)
            degree[i] = 1;
        for (uint32_t i = 2; i < n; i++, rest /= n)
            degree[rest % n]++;
        rest = code;
        for (uint32_t i = 1; i < n; i++) {
            uint32_t leaf = 0, other = 0;

            while (degree[leaf] != 1)
                leaf++;
            if (i + 1 < n)
                other = rest % n;
            else
                for (other = leaf + 1; degree[other] != 1; other++)
                    continue;
            rest /= n;
            cost += price_path(paths, price, leaf, other) + price_path(paths, price, other, leaf);
            degree[leaf]--;
            degree[other]--;
        }
        best = cost < best ? cost : best;
    }
    return best;
}

static const char *const small[] = {
    "4 gpus a100 mesh 4, 4 cpus milan",
    "5 gpus a100 links 0-1 1-2 2-3 3-4 0-4 0-2 1-3, 2 cpus rome",
    "6 gpus mi100 ring 2, 2 cpus rome",
    "6 gpus a100 links 0-1:4 1-2 2-3:2 3-4 4-5:3 0-5 0-3 1-4:2, 3 cpus skylake",
    "6 gpus h100 nvswitch 18, 2 cpus",
    "4 gpus a6000 pcie, 2 switches under 1, 2 cpus skylake",
};

static void no_ring_and_no_tree_is_cheaper_than_the_proof_says(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(small) / sizeof(small[0]); m++) {
        struct machine machine = open_machine(small[m]);
    uint32_t n = machine.graph->count[TUTTI_NODE_GPU], order[64] = {0};

        for (int pattern = RING; pattern <= TREE; pattern++) {
            struct tutti_search_options options = {0};
            struct tutti_channels *plan;
            double *price, least;

            assert_int_equal(tutti_search(machine.paths, pattern, &options, &plan), 0);
            price = prices_of(machine.graph, plan);
            least = pattern == RING ? cheapest_ring(machine.paths, price, order, 1, n, 0)
                                    : cheapest_tree(machine.paths, price, n);
            if (least < 1 - 1e-5)
                fail_msg("%s: a %s costs %g", small[m], tutti_pattern_name(pattern), least);
            free(price);
            tutti_channels_destroy(plan);
        }
        close_machine(&machine);
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void the_same_machine_gets_the_same_plan(void **state)
{
    (void)state;
    for (size_t m = 0; m < MACHINES; m++) {
        struct tutti_search_options options = {.has_peers = true};
        struct tutti_channels *plan[2];

        for (int i = 0; i < 2; i++) {
            struct machine machine = open_machine(machines[m]);

            assert_int_equal(tutti_search(machine.paths, RING, &options, &plan[i]), 0);
            close_machine(&machine);
        }
        assert_int_equal(plan[0]->nchannels, plan[1]->nchannels);
        assert_memory_equal(&plan[0]->bytes_per_s, &plan[1]->bytes_per_s, sizeof(double));
        for (uint32_t c = 0; c < plan[0]->nchannels; c++)
            assert_memory_equal(plan[0]->channel[c].gpu, plan[1]->channel[c].gpu,
                                plan[0]->ngpus * sizeof(uint32_t));
        tutti_channels_destroy(plan[0]);
        tutti_channels_destroy(plan[1]);
    }
}

static void some_gpus_of_a_host_may_be_left_out(void **state)
{
    static const uint32_t gpus[] = {0, 2, 3, 7};
    struct machine machine = open_machine("8 gpus h100 nvswitch 18, 2 cpus");
    struct tutti_search_options options = {.gpus = gpus, .ngpus = 4};
    struct tutti_channels *plan;

    (void)state;
    assert_int_equal(tutti_search(machine.paths, RING, &options, &plan), 0);
    assert_int_equal(plan->ngpus, 4);
    assert_memory_equal(plan->gpus, gpus, sizeof gpus);
    assert_true(is_near(plan->bytes_per_s, 370.8e9));
    check_channels("4 of 8", machine.paths, plan);
    tutti_channels_destroy(plan);
    close_machine(&machine);
}

static const struct {
    const char *line;
    struct tutti_search_options options;
    const char *message;
} refused[] = {
    {"2 cpus, 1 nics 100G", {0}, "host 0 has no gpus"},
    {"2 gpus a100 pcie, 2 cpus", {.has_peers = true}, "host 0 has no network port"},
    {"2 gpus a100 pcie, 2 cpus", {.gpus = (const uint32_t[]){0, 2}, .ngpus = 2},
     "gpu 2 is none of host 0"},
    {"2 hosts: 2 gpus a100 pcie", {.host = 2}, "host 2 has no gpus"},
};

static void what_cannot_be_searched_is_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct machine machine = open_machine(refused[i].line);
        struct tutti_channels *plan = NULL;

        assert_int_equal(tutti_search(machine.paths, RING, &refused[i].options, &plan),
                         TUTTI_ERR_ARGUMENT);
        assert_null(plan);
        if (strstr(tutti_message_last(), refused[i].message) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", tutti_message_last(), refused[i].message);
        close_machine(&machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_whose_best_is_known_get_it),
        cmocka_unit_test(links_carry_what_plans_put_on_them),
        cmocka_unit_test(no_ring_and_no_tree_is_cheaper_than_the_proof_says),
        cmocka_unit_test(the_same_machine_gets_the_same_plan),
        cmocka_unit_test(some_gpus_of_a_host_may_be_left_out),
        cmocka_unit_test(what_cannot_be_searched_is_refused_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
