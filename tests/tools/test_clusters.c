/* SPDX-License-Identifier: Apache-2.0
 * Runs the tools on clusters of thousands of gpus, which are described by a few of their hosts. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void many_hosts_are_searched_as_two(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "search --from '2048 hosts: dgx-h100' --pattern ring"),
                     0);
    running_says("host 0, ring of 8 gpus: 8 channels of 46.4 GB/s, together 371 GB/s");
    running_says("host 1 as host 0, with its own gpus and nets\n"
                 "host 1 stands for 2,047 like hosts\n");
}

static void a_picture_counts_all_hosts(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "--from '2048 hosts: dgx-h100'"), 0);
    running_says("host 1 stands for 2,047 like hosts\n");
    assert_int_equal(running_run(TUTTI_TOPO, "draw --from '2048 hosts: dgx-h100' --svg 2048.svg"),
                     0);
    assert_true(running_is_svg("2048.svg"));
    running_read("2048.svg", text, sizeof text);
    assert_non_null(strstr(text, "host 0, and 2047 more like it"));
}

static void many_racks_are_searched_as_two(void **state)
{
    (void)state;
    assert_int_equal(
        running_run(TUTTI_TOPO, "search --pattern ring --from '32 racks of 2 hosts: 4 gpus gb200 "
                                "nvswitch, 4 nics 400G, 2 cpus grace'"),
        0);
    running_says("hosts 0-1, ring of 8 gpus");
    running_says("hosts 2-3 stand for 31 like racks\n");
    assert_null(strstr(running.out, "host 1 as host 0"));
    assert_int_equal(running_run(TUTTI_TOPO, "explain --pattern ring --from '32 racks of 2 hosts: "
                                             "4 gpus gb200 nvswitch, 4 nics 400G, 2 cpus grace'"),
                     0);
    running_says("hosts 0-1, ring of 8 gpus");
}

/* Returns the bus rate that the last run printed for its algorithm. */
static double bus_rate(void)
{
    const char *at = strstr(running.out, " GB/s");

    assert_non_null(at);
    while (at > running.out && at[-1] != ' ')
        at--;
    return atof(at);
}

/* Ranks of a rack share the work before data crosses the network, not only those of a host. */
static void racks_are_nodes(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "machine --from '8 racks of 3 hosts: 4 gpus gb200 "
                                             "nvswitch, 4 nics 400G, 2 cpus grace'"),
                     0);
    running_says("\nnode 12\n");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo '8 racks of 3 hosts: 4 gpus gb200 "
                                            "nvswitch, 4 nics 400G, 2 cpus grace' --size 1G "
                                            "--algorithm hierarchical"),
                     0);
    assert_true(bus_rate() > 300);
}

static void the_file_of_many_hosts_is_short_and_whole(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "machine --from '200 hosts: 4 gpus a100 mesh 4, 2 "
                                             "nics 200G, 1 cpu' -o 200.machine"),
                     0);
    running_read("200.machine", text, sizeof text);
    assert_non_null(strstr(text, "ranks 800\n"));
    assert_non_null(strstr(text, "node 4\n"));
    assert_non_null(strstr(text, "parts 200 ranks 4 links "));
    assert_true(running_count(text, "\npath ") < 200);
    assert_int_equal(running_run(TUTTI_SIM, "allgather --topo 200.machine --size 64M --algorithm "
                                            "multi_ring"),
                     0);
    running_says("allgather, 800 ranks");
    assert_null(strstr(running.out, "left out"));
}

/* Rings of large calls have one rate, however many hosts they go through. */
static void more_hosts_play_as_few(void **state)
{
    double rate[2];
    static const char *const clusters[2] = {
        "4 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus",
        "64 hosts: 8 gpus h100 nvswitch, 8 nics 400G, 2 cpus",
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo '%s' --size 16G --algorithm "
                                                "multi_ring", clusters[i]),
                         0);
        rate[i] = bus_rate();
    }
    if (!(rate[1] > 0.95 * rate[0] && rate[1] < 1.05 * rate[0]))
        fail_msg("4 hosts: %g GB/s, 64 hosts: %g GB/s", rate[0], rate[1]);
}

/* The matrix, the search and the machine file say the same of the ports. */
static void the_matrix_has_the_ports_between_hosts(void **state)
{
    static const struct {
        const char *line, *row, *link;
    } cases[] = {
        /* A PCIe switch for each port: data goes to the gpu beside the port of the same rail. */
        {"2 hosts: 4 gpus h100 nvswitch, 4 nics 400G rails, 2 cpus, 4 switches",
         "GPU0  0>4   1>5   2>6   3>7", "host0gpu0>host0nvswitch"},
        /* All ports of a CPU are equally near: a gpu has one of its own. */
        {"2 hosts: 4 gpus h100 nvswitch, 4 nics 400G, 1 cpu",
         "GPU3  0>4   1>5   2>6   3>7", "host0gpu3>host0cpu0"},
        /* Two gpus share a port. */
        {"2 hosts: 4 gpus h100 nvswitch, 2 nics 400G, 1 cpu", "GPU0  0>2   1>3   0>2   1>3",
         "host0gpu0>host0cpu0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(running_run(TUTTI_TOPO, "matrix --from '%s'", cases[i].line), 0);
        running_says("Between hosts, from the gpu of the row to that of the column");
        running_says(cases[i].row);
        assert_int_equal(running_run(TUTTI_TOPO, "machine --from '%s'", cases[i].line), 0);
        running_says(cases[i].link);
    }
    assert_int_equal(running_run(TUTTI_TOPO, "matrix --from dgx-h100"), 0);
    assert_null(strstr(running.out, "Between hosts"));
    assert_int_equal(running_run(TUTTI_TOPO, "explain --from '2 hosts: 4 gpus h100 nvswitch, 4 nics "
                                             "400G, 1 cpu'"),
                     0);
    running_says("channels  in     order");
}

static void too_many_gpus_are_a_mistake(void **state)
{
    (void)state;
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo '1048576 hosts: dgx-h100'"),
                       "tutti-sim", "the cluster has 8388608 gpus; there may be 1048576");
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo '5 hosts: dgx-h100' --ranks 16"),
                       "tutti-sim", "has a rank for each of its 40 gpus");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_hosts_are_searched_as_two),
        cmocka_unit_test(a_picture_counts_all_hosts),
        cmocka_unit_test(many_racks_are_searched_as_two),
        cmocka_unit_test(racks_are_nodes),
        cmocka_unit_test(the_file_of_many_hosts_is_short_and_whole),
        cmocka_unit_test(more_hosts_play_as_few),
        cmocka_unit_test(the_matrix_has_the_ports_between_hosts),
        cmocka_unit_test(too_many_gpus_are_a_mistake),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
