/* SPDX-License-Identifier: Apache-2.0
 * Tests that ports are dealt out to gpus, and the ways between gpus of different hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/result.h"
#include "support/machines.h"
#include "topology/graph/ports.h"

static struct tutti_ports *deal(const struct machine *machine)
{
    struct tutti_ports *ports;

    if (tutti_ports_deal(machine->paths, &ports) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return ports;
}

static void close_ports(struct machine *machine, struct tutti_ports *ports)
{
    tutti_ports_destroy(ports);
    close_machine(machine);
}

/* Every gpu has a port of its host, and no port has more gpus than another. */
static void gpus_share_the_ports_evenly(void **state)
{
    static const struct {
        const char *line;
        uint32_t gpus_per_port;
    } cases[] = {
        {"2 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus", 1},
        {"2 hosts: 8 gpus h100 nvswitch 18, 8 nics 400G rails, 2 cpus, 8 switches", 1},
        {"2 hosts: 8 gpus a100 nvswitch 12, 8 nics 200G, 2 cpus rome nodes 4, 4 switches", 1},
        {"2 hosts: 8 gpus h100 nvswitch, 4 nics 400G, 2 cpus", 2},
        {"3 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 2", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine machine = open_machine(cases[i].line);
        struct tutti_ports *ports = deal(&machine);
        const struct tutti_graph *graph = machine.graph;
        uint32_t nnets = graph->count[TUTTI_NODE_NET];
        uint32_t *ngpus = calloc(nnets, sizeof *ngpus);

        assert_non_null(ngpus);
        for (uint32_t gpu = 0; gpu < graph->count[TUTTI_NODE_GPU]; gpu++) {
            uint32_t port = ports->of_gpu[gpu];

            assert_int_equal(graph->nodes[port].kind, TUTTI_NODE_NET);
            assert_int_equal(graph->nodes[port].host,
                             graph->nodes[tutti_graph_gpu(graph, gpu)].host);
            ngpus[port - tutti_graph_net(graph, 0)]++;
        }
        for (uint32_t net = 0; net < nnets; net++)
            assert_int_equal(ngpus[net], cases[i].gpus_per_port);
        free(ngpus);
        close_ports(&machine, ports);
    }
}

/* Ports that are equally near are dealt in their order, to the gpus of the same numbers. */
static void equal_ports_are_dealt_in_order(void **state)
{
    struct machine machine = open_machine("2 hosts: 4 gpus a100 nvswitch, 4 nics 200G, 1 cpu");
    struct tutti_ports *ports = deal(&machine);

    (void)state;
    for (uint32_t gpu = 0; gpu < 8; gpu++)
        assert_int_equal(ports->of_gpu[gpu], tutti_graph_net(machine.graph, gpu));
    close_ports(&machine, ports);
}

/* A gpu takes a port that only it is near to, and leaves the port that both are near to. */
static void a_port_is_given_up_for_a_gpu_that_has_no_other(void **state)
{
    struct machine machine =
        open_machine("2 hosts: 4 gpus h100 nvswitch 18, 4 nics 400G rails, 2 cpus, 4 switches");
    struct tutti_ports *ports = deal(&machine);

    (void)state;
    for (uint32_t gpu = 0; gpu < 8; gpu++)
        assert_int_equal(ports->of_gpu[gpu], tutti_graph_net(machine.graph, gpu));
    close_ports(&machine, ports);
}

/* From gpu 0 of host 0 to gpu 6 of host 1: over NVLinks to gpu 6, and then along rail 6. */
static void data_goes_along_the_rail_of_its_target(void **state)
{
    struct machine machine =
        open_machine("2 hosts: 8 gpus h100 nvswitch 18, 8 nics 400G rails, 2 cpus, 8 switches");
    const struct tutti_graph *graph = machine.graph;
    struct tutti_ports *ports = deal(&machine);
    const struct tutti_path *parts[TUTTI_PORTS_PARTS];
    bool passes_gpu_6 = false;

    (void)state;
    assert_int_equal(tutti_ports_way(ports, 0, 14, parts), 3);
    assert_int_equal(parts[0]->class, TUTTI_PATH_PXN);
    for (uint32_t i = 0; i < parts[0]->nhops; i++)
        passes_gpu_6 |= graph->links[machine.paths->hop[parts[0]->first + i].link].to ==
                        tutti_graph_gpu(graph, 6);
    assert_true(passes_gpu_6);
    assert_ptr_equal(parts[1], tutti_paths_between(machine.paths, tutti_graph_net(graph, 6),
                                                   tutti_graph_net(graph, 14)));
    assert_ptr_equal(parts[2], tutti_paths_between(machine.paths, tutti_graph_net(graph, 14),
                                                   tutti_graph_gpu(graph, 14)));
    close_ports(&machine, ports);
}

/* To a port of another socket a gpu goes from its own port, since its path to the port of that rail
 * would cross the sockets. */
static void data_leaves_by_the_own_port_if_the_rail_is_far(void **state)
{
    struct machine machine = open_machine("2 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus");
    const struct tutti_graph *graph = machine.graph;
    struct tutti_ports *ports = deal(&machine);
    const struct tutti_path *parts[TUTTI_PORTS_PARTS];

    (void)state;
    assert_int_equal(tutti_ports_way(ports, 0, 8 + 7, parts), 3);
    assert_ptr_equal(parts[1],
                     tutti_paths_between(machine.paths, ports->of_gpu[0], ports->of_gpu[8 + 7]));
    assert_int_equal(graph->nodes[ports->of_gpu[8 + 7]].host, 1);
    close_ports(&machine, ports);
}

static void gpus_that_need_no_port_have_one_path(void **state)
{
    static const char *const lines[] = {
        "4 gpus a6000 pcie, 1 cpu rome", /* no port */
        "4 hosts: 2 gpus gb200 nvswitch 18 fabric 1 c2c 225GB/s, 2 nics 400G, 1 cpu grace cores 2",
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct machine machine = open_machine(lines[i]);
        struct tutti_ports *ports = deal(&machine);
        const struct tutti_path *parts[TUTTI_PORTS_PARTS];
        uint32_t last = machine.graph->count[TUTTI_NODE_GPU] - 1;

        assert_int_equal(tutti_ports_way(ports, 0, last, parts), 1);
        assert_int_equal(ports->of_gpu[0] == TUTTI_NO_NODE, i == 0);
        close_ports(&machine, ports);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_share_the_ports_evenly),
        cmocka_unit_test(equal_ports_are_dealt_in_order),
        cmocka_unit_test(a_port_is_given_up_for_a_gpu_that_has_no_other),
        cmocka_unit_test(data_goes_along_the_rail_of_its_target),
        cmocka_unit_test(data_leaves_by_the_own_port_if_the_rail_is_far),
        cmocka_unit_test(gpus_that_need_no_port_have_one_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
