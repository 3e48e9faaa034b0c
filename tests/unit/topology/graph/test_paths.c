/* SPDX-License-Identifier: Apache-2.0
 * Tests paths between gpus, nets and cpus: their classes and their rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "support/machines.h"
#include "topology/formats/line.h"

/* "gpu 3", "net 0", "cpu 1" by number. */
static uint32_t node_named(const struct tutti_graph *graph, const char *name)
{
    uint32_t number;
    char kind[16];

    assert_int_equal(sscanf(name, "%15s %u", kind, &number), 2);
    for (uint32_t i = 0; i < graph->nnodes; i++)
        if (strcmp(tutti_graph_node_kind_name(graph->nodes[i].kind), kind) == 0 &&
            graph->nodes[i].number == number)
            return i;
    fail_msg("no %s", name);
    return 0;
}

static const struct {
    const char *line, *from, *to, *class;
    double gb_per_s;
} ways[] = {
    /* NVSwitch: as wide as a gpu's links, whoever it is. */
    {"8 gpus h100 nvswitch 18, 2 cpus sapphire", "gpu 0", "gpu 7", "NVL", 370.8},
    {"8 gpus b200 nvswitch 18, 2 cpus emerald", "gpu 3", "gpu 2", "NVL", 721.8},
    /* Direct links: as many as there are. */
    {"4 gpus a100 mesh 4, 4 cpus milan", "gpu 0", "gpu 3", "NVL", 80},
    {"8 gpus v100 cube-mesh, 2 cpus broadwell", "gpu 0", "gpu 3", "NVL", 40},
    {"8 gpus v100 cube-mesh, 2 cpus broadwell", "gpu 0", "gpu 1", "NVL", 20},
    /* No direct one in the cube: through a gpu that has one to both. */
    {"8 gpus v100 cube-mesh, 2 cpus broadwell", "gpu 0", "gpu 5", "NVB", 20},
    {"4 gpus mi50 ring, 1 cpu rome", "gpu 0", "gpu 2", "NVB", 24},
    /* A ring of 6: three links are too many, so PCI. */
    {"6 gpus mi50 ring, 1 cpu rome", "gpu 0", "gpu 3", "PHB", 24},
    /* PCI: below one switch, below two, through a CPU, between CPUs. */
    {"4 gpus a6000 pcie, 2 switches, 1 cpu rome", "gpu 0", "gpu 1", "PIX", 24},
    {"4 gpus a6000 pcie, 2 switches under 1, 1 cpu rome", "gpu 0", "gpu 2", "PXB", 24},
    {"4 gpus a6000 pcie, 1 cpu rome", "gpu 0", "gpu 1", "PHB", 24},
    {"4 gpus a6000 pcie, 2 cpus rome", "gpu 0", "gpu 3", "SYS", 16},
    {"4 gpus a6000 pcie, 2 cpus skylake", "gpu 0", "gpu 3", "SYS", 10},
    /* Intel's root complex transfers 6 bytes for 5. */
    {"4 gpus a6000 pcie, 1 cpu skylake", "gpu 0", "gpu 1", "PHB", 20},
    /* Nets: below the same switch, through a CPU, by a gpu that is near. */
    {"2 gpus a100 pcie, 1 switches, 1 nics 200G", "gpu 0", "net 0", "PIX", 24},
    {"2 gpus a100 pcie, 2 cpus rome, 2 nics 200G", "gpu 0", "net 0", "PHB", 24},
    {"2 gpus a100 pcie, 2 cpus rome, 2 nics 200G", "gpu 0", "net 1", "SYS", 16},
    {"4 gpus a100 nvswitch, 4 switches, 2 cpus rome, 4 nics 200G", "gpu 0", "net 3", "PXN", 24},
    {"4 gpus a100 nvswitch, 4 switches, 2 cpus rome, 4 nics 200G", "net 3", "gpu 0", "PXN", 24},
    {"4 gpus a100 nvswitch, 4 switches, 2 cpus rome, 4 nics 100G", "gpu 0", "net 0", "PIX", 12},
    /* Without direct access through the CPU, though there is a switch. */
    {"2 gpus a100 pcie no-gdr, 1 switches, 1 nics 200G", "gpu 0", "net 0", "PHB", 24},
    /* Coherent links. */
    {"1 gpus gh200 c2c 450GB/s, 1 cpu grace", "gpu 0", "cpu 0", "C2C", 450},
    {"1 gpus gh200 c2c 450GB/s, 1 cpu grace, 1 nics 400G on cpu 0", "gpu 0", "net 0", "P2C", 48},
    {"4 gpus v100 mesh 1 hives 2 cpu-links 3, 2 cpus power9", "gpu 0", "cpu 0", "NVL", 60},
    {"4 gpus v100 pcie cpu-links 3, 2 cpus power9", "gpu 0", "gpu 1", "PHB", 60},
    {"4 gpus v100 pcie cpu-links 3, 2 cpus power9", "gpu 0", "gpu 2", "SYS", 32},
    {"4 gpus v100 pcie, 2 cpus rome", "gpu 0", "cpu 0", "PHB", 12},
    {"4 gpus v100 pcie, 2 cpus rome", "cpu 0", "cpu 1", "SYS", 16},
    /* Between hosts: by the network, or by an NVSwitch that they share. */
    {"2 hosts: 2 gpus a100 pcie, 1 switches, 1 nics 100G gen4", "gpu 0", "gpu 3", "NET", 12.5},
    {"2 hosts: 4 gpus gb200 nvswitch 18 fabric, 2 cpus grace", "gpu 0", "gpu 7", "NVL", 721.8},
    /* Itself. */
    {"2 gpus a100 pcie", "gpu 1", "gpu 1", "LOC", 0},
    {"2 hosts: 1 gpus a100 pcie", "gpu 0", "gpu 1", "DIS", 0},
};

static void ways_have_the_best_class_and_then_the_greatest_width(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct machine machine = open_machine(ways[i].line);
        const struct tutti_path *path =
            tutti_paths_between(machine.paths, node_named(machine.graph, ways[i].from),
                                node_named(machine.graph, ways[i].to));
        double rate = path->bytes_per_s / 1e9;

        if (strcmp(tutti_path_class_name(path->class), ways[i].class) != 0 ||
            rate < ways[i].gb_per_s * (1 - 1e-9) || rate > ways[i].gb_per_s * (1 + 1e-9))
            fail_msg("%s: %s to %s is %s of %g GB/s, not %s of %g", ways[i].line, ways[i].from,
                     ways[i].to, tutti_path_class_name(path->class), rate, ways[i].class,
                     ways[i].gb_per_s);
        close_machine(&machine);
    }
}

static const char *const machines[] = {
    "8 gpus h100 nvswitch, 4 switches, 8 nics 400G, 2 cpus sapphire",
    "8 gpus v100 cube-mesh, 4 switches, 4 nics 100G, 2 cpus broadwell",
    ("8 gpus mi250x links 0-1:4 2-3:4 4-5:4 6-7:4 0-2 1-3 4-6 5-7 0-4:2 3-7:2, 4 cpus milan, "
     "4 nics 200G slingshot"),
    "3 hosts: 4 gpus a6000 pcie, 2 switches under 1, 2 nics 100G ports 2, 2 cpus rome",
    "18 hosts: 4 gpus gb200 nvswitch 18 fabric, 2 cpus grace, 4 nics 400G",
    "2 cpus sapphire, 1 nics 25G ethernet",
};

static void links_of_a_way_follow_each_other_and_it_is_as_wide_as_the_narrowest(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
        struct machine machine = open_machine(machines[m]);
        const struct tutti_paths *paths = machine.paths;

        for (uint32_t i = 0; i < paths->nends * paths->nends; i++) {
            const struct tutti_path *path = &paths->path[i];
            uint32_t at = paths->end[i / paths->nends];
            double width = 0, latency_s = 0;

            for (uint32_t h = 0; h < path->nhops; h++) {
                const struct tutti_hop *hop = &paths->hop[path->first + h];
                const struct tutti_graph_link *link = &machine.graph->links[hop->link];
                double rate = link->bytes_per_s / hop->demand;

                assert_int_equal(link->from, at);
                at = link->to;
                width = h == 0 || rate < width ? rate : width;
                latency_s += link->latency_s;
            }
            if (path->class != TUTTI_PATH_DIS)
                assert_int_equal(at, paths->end[i % paths->nends]);
            assert_true(path->bytes_per_s >= width && path->bytes_per_s <= width);
            assert_true(path->latency_s >= latency_s && path->latency_s <= latency_s);
        }
        close_machine(&machine);
    }
}

static void there_and_back_are_of_one_class_and_width(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
        struct machine machine = open_machine(machines[m]);
        const struct tutti_paths *paths = machine.paths;

        for (uint32_t i = 0; i < paths->nends; i++)
            for (uint32_t j = 0; j < i; j++) {
                const struct tutti_path *there = &paths->path[i * paths->nends + j];
                const struct tutti_path *back = &paths->path[j * paths->nends + i];

                if (there->class != back->class)
                    fail_msg("%s: ends %u and %u: %s there, %s back", machines[m], i, j,
                             tutti_path_class_name(there->class),
                             tutti_path_class_name(back->class));
            }
        close_machine(&machine);
    }
}

static void too_many_ends_are_refused(void **state)
{
    struct tutti_inventory *inventory;
    struct tutti_graph *graph;

    (void)state;
    assert_int_equal(tutti_line_read("line", "120 hosts: 8 gpus h100 nvswitch fabric, 2 cpus",
                                     &inventory), 0);
    assert_int_equal(tutti_graph_build(inventory, &graph), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "1200 gpus, nets and cpus"));
    tutti_inventory_destroy(inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_have_the_best_class_and_then_the_greatest_width),
        cmocka_unit_test(links_of_a_way_follow_each_other_and_it_is_as_wide_as_the_narrowest),
        cmocka_unit_test(there_and_back_are_of_one_class_and_width),
        cmocka_unit_test(too_many_ends_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
