/* SPDX-License-Identifier: Apache-2.0
 * Makes a machine from a graph: every pair of gpus has its path, and plans become orders of all
 * gpus. */
#include "base/result.h"
#include "topology/graph/parts.h"
#include "topology/graph/ports.h"
#include "topology/search/costs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/machines.h"

static const char *const lines[] = {
    "2 gpus, 1 cpu",
    "4 gpus a6000, 1 nic 10G ethernet, 2 cpus icelake cores 2",
    "8 gpus v100 cube-mesh, 4 nics 100G, 2 cpus cores 2, 4 switches",
    "16 gpus v100 nvswitch 6, 8 nics 100G, 2 cpus cores 2, 8 switches under 4",
    "3 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 2",
    "4 hosts: 2 gpus gb200 nvswitch 18 fabric 1 c2c 225GB/s, 2 nics 400G, 1 cpu grace cores 2",
    "1 host: 1 gpu t4, 1 nic 25G; 1 host: 3 gpus t4, 1 nic 50G",
};

#define LINES (sizeof lines / sizeof lines[0])

static struct tutti_channels *search(const struct tutti_paths *paths, enum tutti_pattern pattern)
{
    const struct tutti_search_options options = {.has_peers = paths->graph->nhosts > 1};
    struct tutti_channels *plan;

    if (tutti_search(paths, pattern, &options, &plan) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return plan;
}

static struct tutti_machine *describe(const struct machine *of, const struct tutti_channels *ring,
                                      const struct tutti_channels *tree)
{
    struct tutti_machine *machine;

    if (tutti_search_machine(of->paths, ring, tree, TUTTI_RATES_NOMINAL, &machine) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return machine;
}

/* ---- links and paths ------------------------------------------------------------------------- */

static void assert_pair(const struct tutti_graph_parts *domains, const struct tutti_ports *ports,
                        const struct tutti_machine *machine, uint32_t from, uint32_t to)
{
    const struct tutti_path *parts[TUTTI_PORTS_PARTS];
    uint32_t nparts = tutti_ports_way(ports, from, to, parts), nhops = 0;
    const struct tutti_machine_path *way = tutti_machine_path(machine, from, to);
    double bytes_per_s = INFINITY, latency_s = 0;
    bool is_apart =
        tutti_graph_part_of_gpu(domains, from) != tutti_graph_part_of_gpu(domains, to);

    for (uint32_t i = 0; i < nparts; i++) {
        nhops += parts[i]->nhops;
        bytes_per_s = fmin(bytes_per_s, parts[i]->bytes_per_s);
        latency_s += parts[i]->latency_s;
    }
    assert_non_null(way);
    assert_int_equal(way->count, nhops);
    assert_true(fabs(tutti_machine_path_rate(machine, way) - bytes_per_s) <= 1e-6 * bytes_per_s);
    assert_true(fabs(tutti_machine_path_latency_s(machine, way, from, to) - latency_s) < 2e-12);
    assert_int_equal(tutti_machine_level(machine, from, to) > 0, is_apart);
    /* A level is what its slowest pair has. */
    assert_true(machine->level[is_apart ? 2 : 0].bytes_per_s <= bytes_per_s * 1.000001);
    assert_true(machine->level[is_apart ? 2 : 0].latency_s >= latency_s - 2e-12);
}

static void every_pair_of_gpus_has_the_path_of_the_graph(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINES; i++) {
        struct machine of = open_machine(lines[i]);
        struct tutti_machine *machine = describe(&of, NULL, NULL);
        uint32_t n = of.graph->count[TUTTI_NODE_GPU];
        struct tutti_graph_parts domains;
        struct tutti_ports *ports;

        assert_int_equal(tutti_ports_deal(of.paths, &ports), TUTTI_OK);
        assert_int_equal(tutti_graph_parts_find(of.graph, &domains), TUTTI_OK);
        assert_int_equal(machine->places.nranks, n);
        assert_int_equal(machine->links.npaths, n * (n - 1));
        for (uint32_t from = 0; from < n; from++)
            for (uint32_t to = 0; to < n; to++)
                if (from != to)
                    assert_pair(&domains, ports, machine, from, to);
        tutti_graph_parts_fini(&domains);
        tutti_ports_destroy(ports);
        tutti_machine_destroy(machine);
        close_machine(&of);
    }
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINES; i++) {
        struct machine of = open_machine(lines[i]);
        struct tutti_channels *ring = search(of.paths, TUTTI_PATTERN_RING);
        struct tutti_channels *tree = search(of.paths, TUTTI_PATTERN_TREE);
        struct tutti_machine *machine = describe(&of, ring, tree), *again;
        char *text, *second;

        assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
        if (tutti_machine_parse("written", text, 0, &again) != TUTTI_OK)
            fail_msg("%s:\n%s", tutti_message_last(), text);
        assert_int_equal(tutti_machine_write(again, &second), TUTTI_OK);
        assert_string_equal(text, second);
        free(text);
        free(second);
        tutti_machine_destroy(machine);
        tutti_machine_destroy(again);
        tutti_channels_destroy(ring);
        tutti_channels_destroy(tree);
        close_machine(&of);
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void a_ring_goes_on_from_host_to_host(void **state)
{
    struct machine of = open_machine(lines[4]);
    struct tutti_channels *ring = search(of.paths, TUTTI_PATTERN_RING);
    struct tutti_machine *machine = describe(&of, ring, NULL);

    (void)state;
    assert_int_equal(machine->places.nnodes, 3);
    assert_int_equal(machine->places.nrings, ring->nchannels);
    assert_int_equal(machine->places.ntrees, 0);
    for (uint32_t c = 0; c < ring->nchannels; c++)
        for (uint32_t i = 0; i < 12; i++)
            assert_int_equal(machine->places.rings[c * 12 + i],
                             i / 4 * 4 + ring->channel[c].gpu[i % 4]);
    tutti_machine_destroy(machine);
    tutti_channels_destroy(ring);
    close_machine(&of);
}

static void trees_of_hosts_hang_below_each_other(void **state)
{
    struct machine of = open_machine(lines[4]);
    struct tutti_channels *tree = search(of.paths, TUTTI_PATTERN_TREE);
    struct tutti_machine *machine = describe(&of, NULL, tree);
    const uint32_t *gpu = tree->channel[0].gpu;
    uint32_t root = 0;

    (void)state;
    while (gpu[root] != TUTTI_NO_NODE)
        root++;
    /* Each tree joins the hosts twice: hosts 1 and 2 are below host 0, or hosts 0 and 1 are below
     * host 2. */
    assert_int_equal(machine->places.ntrees, 2 * tree->nchannels);
    for (uint32_t which = 0; which < 2; which++)
        for (uint32_t rank = 0; rank < 12; rank++) {
            uint32_t top = which == 0 ? 0 : 2;
            int32_t parent = rank % 4 != root   ? (int32_t)(rank / 4 * 4 + gpu[rank % 4])
                             : rank / 4 == top ? -1
                                                : (int32_t)(top * 4 + root);

            assert_int_equal(machine->places.trees[which * 12 + rank], parent);
        }
    tutti_machine_destroy(machine);
    tutti_channels_destroy(tree);
    close_machine(&of);
}

/* Hosts with unequal numbers of gpus have no orders in common; all together they have. */
static void plans_that_fit_not_all_are_left_out(void **state)
{
    struct machine of = open_machine(lines[6]);
    struct tutti_channels *ring = search(of.paths, TUTTI_PATTERN_RING);
    struct tutti_machine *machine = describe(&of, ring, NULL);

    (void)state;
    assert_int_equal(machine->places.nranks, 4);
    assert_int_equal(machine->places.nnodes, 2);
    assert_int_equal(machine->places.nrings, 0);
    tutti_machine_destroy(machine);
    tutti_channels_destroy(ring);
    close_machine(&of);
}

static void a_plan_of_all_hosts_is_taken_as_it_is(void **state)
{
    const struct tutti_search_options options = {.host = TUTTI_ALL_HOSTS};
    struct machine of = open_machine(lines[5]);
    struct tutti_channels *ring;
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(tutti_search(of.paths, TUTTI_PATTERN_RING, &options, &ring), TUTTI_OK);
    machine = describe(&of, ring, NULL);
    assert_int_equal(machine->places.nrings, ring->nchannels);
    assert_memory_equal(machine->places.rings, ring->channel[0].gpu, 8 * sizeof(uint32_t));
    tutti_machine_destroy(machine);
    tutti_channels_destroy(ring);
    close_machine(&of);
}

/* Plans cannot be repeated where ports differ, or where a host has no gpu. */
static void hosts_need_not_be_alike(void **state)
{
    static const char *const unlike[] = {
        "1 host: 1 gpu t4, 1 nic 25G; 1 host: 1 gpu t4, 1 cpu",
        "1 host: 2 cpus, 1 nic 100G; 2 hosts: 2 gpus t4, 1 nic 100G",
        "1 host: 2 gpus t4, 2 nics 25G; 1 host: 2 gpus t4, 1 nic 25G",
    };

    (void)state;
    for (size_t i = 0; i < sizeof unlike / sizeof *unlike; i++) {
        struct machine of = open_machine(unlike[i]);
        struct tutti_search_options options = {
            .host = of.graph->nodes[tutti_graph_gpu(of.graph, 0)].host, .has_peers = true};
        struct tutti_channels *ring;
        struct tutti_machine *machine = NULL;

        assert_int_equal(tutti_search(of.paths, TUTTI_PATTERN_RING, &options, &ring), TUTTI_OK);
        /* A cluster in which a host has no port has no path, which is an error. */
        assert_int_equal(tutti_search_machine(of.paths, ring, NULL, TUTTI_RATES_NOMINAL,
                                              &machine),
                         i == 0 ? TUTTI_ERR_ARGUMENT : TUTTI_OK);
        tutti_machine_destroy(machine);
        tutti_channels_destroy(ring);
        close_machine(&of);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void a_gpu_alone_is_a_machine(void **state)
{
    struct machine of = open_machine("1 gpu t4, 1 cpu");
    struct tutti_channels *ring = search(of.paths, TUTTI_PATTERN_RING);
    struct tutti_machine *machine = describe(&of, ring, NULL);

    (void)state;
    assert_int_equal(machine->places.nranks, 1);
    assert_int_equal(machine->links.npaths, 0);
    tutti_machine_destroy(machine);
    tutti_channels_destroy(ring);
    close_machine(&of);
}

static void without_gpus_there_is_none(void **state)
{
    struct machine of = open_machine("2 cpus, 1 nic 100G");
    struct tutti_machine *machine = NULL;

    (void)state;
    assert_int_equal(tutti_search_machine(of.paths, NULL, NULL, TUTTI_RATES_NOMINAL, &machine),
                     TUTTI_ERR_ARGUMENT);
    assert_null(machine);
    assert_non_null(strstr(tutti_message_last(), "no gpus"));
    close_machine(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_gpus_has_the_path_of_the_graph),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_ring_goes_on_from_host_to_host),
        cmocka_unit_test(trees_of_hosts_hang_below_each_other),
        cmocka_unit_test(plans_that_fit_not_all_are_left_out),
        cmocka_unit_test(a_plan_of_all_hosts_is_taken_as_it_is),
        cmocka_unit_test(hosts_need_not_be_alike),
        cmocka_unit_test(a_gpu_alone_is_a_machine),
        cmocka_unit_test(without_gpus_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
