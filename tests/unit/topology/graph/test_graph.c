/* SPDX-License-Identifier: Apache-2.0
 * Makes nodes and links from devices: the connections, the rates, and the parts that belong
 * together. */
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
#include "topology/formats/nccl_xml.h"
#include "topology/graph/paths.h"

static struct tutti_graph *graph_of_xml(const char *text)
{
    struct tutti_inventory *inventory = NULL;
    struct tutti_graph *graph = NULL;

    if (tutti_xml_read_nccl("xml", text, strlen(text), TUTTI_SOURCE_FILE, &inventory) != 0 ||
        tutti_graph_build(inventory, &graph) != 0)
        fail_msg("%s", tutti_message_last());
    tutti_inventory_destroy(inventory);
    return graph;
}

/* The link between two nodes, by their names; NULL: none. */
static const struct tutti_graph_link *find_link(const struct tutti_graph *graph, const char *from,
                                                const char *to)
{
    for (uint32_t i = 0; i < graph->nlinks; i++) {
        char a[128], b[128];

        tutti_graph_node_name(graph, graph->links[i].from, a, sizeof a);
        tutti_graph_node_name(graph, graph->links[i].to, b, sizeof b);
        if (strcmp(a, from) == 0 && strcmp(b, to) == 0)
            return &graph->links[i];
    }
    return NULL;
}

static void check_link(const struct tutti_graph *graph, const char *from, const char *to,
                       double gb_per_s, enum tutti_source source)
{
    const struct tutti_graph_link *link = find_link(graph, from, to), *back;

    if (link == NULL)
        fail_msg("no link from %s to %s", from, to);
    if (link->bytes_per_s < gb_per_s * 1e9 * 0.9999 || link->bytes_per_s > gb_per_s * 1e9 * 1.0001)
        fail_msg("%s to %s carries %g GB/s, not %g", from, to, link->bytes_per_s / 1e9, gb_per_s);
    assert_int_equal(link->found_by, source);
    back = &graph->links[link->reverse];
    assert_ptr_equal(&graph->links[back->reverse], link);
    assert_int_equal(back->from, link->to);
    assert_int_equal(back->to, link->from);
}

static void check_reached(const struct tutti_graph *graph, const char *from, const char *to,
                          double gb_per_s)
{
    const struct tutti_graph_link *link = find_link(graph, from, to);

    if (link == NULL || fabs(link->reached_bytes_per_s - gb_per_s * 1e9) > 1e5 ||
        fabs(graph->links[link->reverse].reached_bytes_per_s - gb_per_s * 1e9) > 1e5)
        fail_msg("%s to %s does not reach %g GB/s", from, to, gb_per_s);
}

#define GPU(bus, dev, links) \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" " \
    "link_width=\"16\"><gpu dev=\"" dev "\" sm=\"80\">" links "</gpu></pci>"

static void nvlinks_lead_to_gpus_switches_and_cpus_and_others_are_left_out(void **state)
{
    struct tutti_graph *graph = graph_of_xml(
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"ppc64\">"
        /* The second leads to itself, the third to one that is not there. */
        GPU("01", "0", "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"0000:01:00.0\" count=\"8\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"0000:99:00.0\" count=\"8\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"0004:05:00.0\" count=\"3\" tclass=\"0x068001\"/>")
        GPU("02", "1", "<nvlink target=\"0000:01:00.0\" count=\"4\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"0000:c1:00.0\" count=\"2\" tclass=\"0x068000\"/>"
                       "<nvlink target=\"0000:c2:00.0\" count=\"2\" tclass=\"0x068000\"/>")
        /* The second is listed at this end alone. */
        GPU("03", "2", "<nvlink target=\"fffffff:ff:ff.0\" count=\"6\" tclass=\"0x068000\"/>"
                       "<nvlink target=\"0000:01:00.0\" count=\"1\"/>")
        "</cpu></system>");

    (void)state;
    assert_int_equal(graph->count[TUTTI_NODE_NVSWITCH], 1);
    check_link(graph, "gpu 0", "gpu 1", 80, TUTTI_SOURCE_PRODUCT);
    check_link(graph, "gpu 0", "cpu 0", 60, TUTTI_SOURCE_PRODUCT);
    check_link(graph, "gpu 1", "nvswitch", 80, TUTTI_SOURCE_PRODUCT);
    check_link(graph, "gpu 2", "nvswitch", 120, TUTTI_SOURCE_PRODUCT);
    check_link(graph, "gpu 2", "gpu 0", 20, TUTTI_SOURCE_PRODUCT);
    assert_null(find_link(graph, "gpu 0", "gpu 0"));
    assert_null(find_link(graph, "gpu 0", "nvswitch"));
    tutti_graph_destroy(graph);
}

static void what_is_not_known_of_pci_is_assumed_by_what_is_there(void **state)
{
    struct tutti_graph *graph = graph_of_xml(
        "<system version=\"1\"><cpu numaid=\"1\" vendor=\"AuthenticAMD\" arch=\"x86_64\">"
        "<pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"0\">"
        "<pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"Unknown\" link_width=\"0\">"
        "<gpu dev=\"0\" sm=\"90\"/></pci>"
        "<pci busid=\"0000:12:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"a\" dev=\"0\" speed=\"200000\"/><net name=\"b\" dev=\"1\"/></nic></pci>"
        "<pci busid=\"0000:13:00.0\" class=\"0x020000\" link_speed=\"8.0 GT/s PCIe\" "
        "link_width=\"8\"><nic><net name=\"c\" dev=\"2\" speed=\"0\"/></nic></pci>"
        "</pci></cpu><cpu numaid=\"0\" vendor=\"AuthenticAMD\" arch=\"x86_64\">"
        "<nic><net name=\"d\" dev=\"3\" speed=\"1000\" latency=\"7.5\"/></nic></cpu></system>");

    (void)state;
    check_link(graph, "gpu 0", "pci 0000:10:00.0", 48, TUTTI_SOURCE_PRODUCT);
    check_link(graph, "pci 0000:10:00.0", "cpu 1", 48, TUTTI_SOURCE_ASSUMED);
    check_link(graph, "nic 0000:12:00.0", "net 0 (a)", 25, TUTTI_SOURCE_FILE);
    check_link(graph, "nic 0000:12:00.0", "net 1 (b)", 50, TUTTI_SOURCE_ASSUMED);
    check_link(graph, "nic 0000:12:00.0", "pci 0000:10:00.0", 24, TUTTI_SOURCE_ASSUMED);
    check_link(graph, "nic 0000:13:00.0", "pci 0000:10:00.0", 6, TUTTI_SOURCE_FILE);
    check_link(graph, "nic 0000:13:00.0", "net 2 (c)", 1.25, TUTTI_SOURCE_ASSUMED);
    check_link(graph, "nic ", "net 3 (d)", 0.125, TUTTI_SOURCE_FILE);
    check_link(graph, "cpu 0", "cpu 1", 16, TUTTI_SOURCE_PRODUCT);
    assert_true(find_link(graph, "nic ", "net 3 (d)")->latency_s > 7.4e-6);
    tutti_graph_destroy(graph);
}

static void what_was_measured_counts_and_what_is_nominal_stays(void **state)
{
    struct tutti_graph *graph = graph_of_xml(
        "<system version=\"1\"><cpu numaid=\"0\">"
        GPU("01", "0", "<nvlink target=\"0000:02:00.0\" count=\"4\" measured=\"7.2e10\"/>")
        GPU("02", "1", "<nvlink target=\"0000:01:00.0\" count=\"4\"/>")
        "<pci busid=\"0000:12:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"a\" dev=\"0\" speed=\"200000\" measured=\"2.3e10\"/></nic></pci>"
        "</cpu></system>");

    (void)state;
    check_link(graph, "gpu 0", "gpu 1", 72, TUTTI_SOURCE_MEASURED);
    assert_true(find_link(graph, "gpu 0", "gpu 1")->nominal_bytes_per_s > 79e9);
    check_link(graph, "nic 0000:12:00.0", "net 0 (a)", 23, TUTTI_SOURCE_MEASURED);
    check_reached(graph, "gpu 0", "gpu 1", 72);
    check_reached(graph, "nic 0000:12:00.0", "net 0 (a)", 23);
    tutti_graph_destroy(graph);
}

static void links_reach_what_was_measured_elsewhere(void **state)
{
    struct tutti_graph *graph = graph_of_xml(
        "<system version=\"1\"><cpu numaid=\"0\">"
        GPU("01", "0", "<nvlink target=\"0000:02:00.0\" count=\"4\"/>"
                       "<nvlink target=\"0000:03:00.0\" count=\"4\"/>")
        GPU("02", "1", "<nvlink target=\"0000:01:00.0\" count=\"4\"/>")
        "<pci busid=\"0000:03:00.0\" class=\"0x030200\"><gpu dev=\"2\" sm=\"70\"/></pci>"
        "<pci busid=\"0000:12:00.0\" class=\"0x020700\"><nic>"
        "<net name=\"a\" dev=\"0\" speed=\"200000\"/><net name=\"b\" dev=\"1\" speed=\"25000\"/>"
        "<net name=\"c\" dev=\"2\" speed=\"800000\"/>"
        "<net name=\"d\" dev=\"3\" speed=\"400000\" layer=\"ethernet\"/>"
        "<net name=\"e\" dev=\"4\" speed=\"400000\" layer=\"infiniband\"/>"
        "</nic></pci></cpu></system>");

    (void)state;
    check_link(graph, "gpu 0", "gpu 1", 80, TUTTI_SOURCE_PRODUCT);
    check_reached(graph, "gpu 0", "gpu 1", 4 * 230.0 / 12);
    check_reached(graph, "gpu 0", "gpu 2", 4 * 230.0 / 12); /* the end that reaches less counts */
    check_reached(graph, "nic 0000:12:00.0", "net 0 (a)", 24);
    check_reached(graph, "nic 0000:12:00.0", "net 1 (b)", 3.125); /* nothing is known */
    check_reached(graph, "nic 0000:12:00.0", "net 2 (c)", 94);
    check_reached(graph, "nic 0000:12:00.0", "net 3 (d)", 43.8);
    check_reached(graph, "nic 0000:12:00.0", "net 4 (e)", 47);
    tutti_graph_destroy(graph);
}

static void gpus_and_nets_are_numbered_as_their_drivers_do_host_by_host(void **state)
{
    struct tutti_graph *graph = graph_of_xml(
        "<system version=\"1\">"
        "<cpu numaid=\"0\" host_hash=\"0x2\">" GPU("01", "1", "") GPU("02", "0", "") "</cpu>"
        "<cpu numaid=\"0\" host_hash=\"0x1\">" GPU("01", "0", "") "</cpu></system>");

    (void)state;
    assert_int_equal(graph->nhosts, 2);
    assert_int_equal(graph->count[TUTTI_NODE_FABRIC], 1);
    assert_int_equal(graph->nodes[tutti_graph_gpu(graph, 2)].host, 1);
    assert_int_equal(tutti_device_number(graph->inventory,
                                         graph->nodes[tutti_graph_gpu(graph, 0)].device,
                                         TUTTI_PROPERTY_DEV, -1), 0);
    tutti_graph_destroy(graph);
}

static void gpus_that_refuse_peers_reach_them_through_the_cpu(void **state)
{
    struct machine machine = open_machine("2 gpus rtx4090 pcie, 1 switches, 1 cpu rome");
    uint32_t gpu = machine.graph->nodes[tutti_graph_gpu(machine.graph, 1)].device;
    uint32_t a = tutti_graph_gpu(machine.graph, 0), b = tutti_graph_gpu(machine.graph, 1);

    (void)state;
    assert_int_equal(tutti_paths_between(machine.paths, a, b)->class, TUTTI_PATH_PIX);
    tutti_device_set_number(machine.graph->inventory, gpu, TUTTI_PROPERTY_P2P, TUTTI_SOURCE_NVML,
                            0);
    tutti_paths_destroy(machine.paths);
    assert_int_equal(tutti_paths_find(machine.graph, &machine.paths), 0);
    assert_int_equal(tutti_paths_between(machine.paths, a, b)->class, TUTTI_PATH_PHB);
    close_machine(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvlinks_lead_to_gpus_switches_and_cpus_and_others_are_left_out),
        cmocka_unit_test(what_is_not_known_of_pci_is_assumed_by_what_is_there),
        cmocka_unit_test(what_was_measured_counts_and_what_is_nominal_stays),
        cmocka_unit_test(links_reach_what_was_measured_elsewhere),
        cmocka_unit_test(gpus_and_nets_are_numbered_as_their_drivers_do_host_by_host),
        cmocka_unit_test(gpus_that_refuse_peers_reach_them_through_the_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
