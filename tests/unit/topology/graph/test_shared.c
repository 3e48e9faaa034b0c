/* SPDX-License-Identifier: Apache-2.0
 * Tests devices with several gpus: ranks that use one GPU, and partitions of a GPU. */
#include "base/result.h"
#include "support/machines.h"
#include "topology/formats/load.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SYSTEM(inside)                                                                             \
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x060400\" "      \
    "link_speed=\"32 GT/s\" link_width=\"16\">" inside                                             \
    "<pci busid=\"0000:09:00.0\" class=\"0x020700\" link_speed=\"32 GT/s\" "                       \
    "link_width=\"16\"><nic>"                                                                      \
    "<net name=\"a\" dev=\"0\" speed=\"400000\"/></nic></pci></pci></cpu></system>"
#define PCI(bus, inside)                                                                           \
    "<pci busid=\"0000:0" bus ":00.0\" class=\"0x030200\" link_speed=\"32 GT/s\" "                 \
    "link_width=\"16\">" inside "</pci>"
#define RANK(dev, rank, links) "<gpu dev=\"" dev "\" sm=\"90\" rank=\"" rank "\">" links "</gpu>"
#define SWITCH "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>"
#define LINK(bus) "<nvlink target=\"0000:0" bus ":00.0\" count=\"4\" tclass=\"0x030200\"/>"

static struct machine open_text(const char *text)
{
    struct machine machine = {.inventory = NULL};

    if (tutti_formats_parse("t", text, strlen(text), &machine.inventory) != TUTTI_OK ||
        tutti_graph_build(machine.inventory, &machine.graph) != TUTTI_OK ||
        tutti_paths_find(machine.graph, &machine.paths) != TUTTI_OK)
        fail_msg("%s\n%s", text, tutti_message_last());
    return machine;
}

static const struct tutti_path *path_of(const struct machine *machine, uint32_t from, uint32_t to)
{
    return tutti_paths_between(machine->paths, tutti_graph_gpu(machine->graph, from),
                               tutti_graph_gpu(machine->graph, to));
}

/* Returns the sum of the rates at which data leaves for an NVSwitch. */
static double rate_to_switch(const struct machine *machine)
{
    double sum = 0;

    for (uint32_t i = 0; i < machine->graph->nlinks; i++)
        if (machine->graph->nodes[machine->graph->links[i].to].kind == TUTTI_NODE_NVSWITCH)
            sum += machine->graph->links[i].bytes_per_s;
    return sum;
}

/* Two ranks on GPU 0, one on GPU 1: as two gpus of one pci, and as two pci of one bus id. */
static void ranks_on_one_gpu_share_its_links(void **state)
{
    static const char *const texts[] = {
        SYSTEM(PCI("2", RANK("0", "0", SWITCH) RANK("0", "1", SWITCH))
                   PCI("3", RANK("1", "2", SWITCH))),
        SYSTEM(PCI("2", RANK("0", "0", SWITCH)) PCI("2", RANK("0", "1", SWITCH))
                   PCI("3", RANK("1", "2", SWITCH))),
        /* One of them may have no links listed. */
        SYSTEM(PCI("2", RANK("0", "0", "") RANK("0", "1", SWITCH))
                   PCI("3", RANK("1", "2", SWITCH))),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct machine machine = open_text(texts[i]);
        const struct tutti_graph *graph = machine.graph;
        struct tutti_search_options options = {.has_peers = false};
        struct tutti_channels *tree, *ring;

        assert_string_equal(
            machine.inventory->remarks,
            "1 gpu is on the device of another gpu, as a rank or a partition of it; "
            "the gpus of a device share its links\n");
        assert_int_equal(graph->count[TUTTI_NODE_GPU], 3);
        assert_true(rate_to_switch(&machine) < 2 * 18 * 20.6e9 * 1.001);
        assert_int_equal(path_of(&machine, 0, 2)->class, TUTTI_PATH_NVL);
        assert_true(path_of(&machine, 1, 2)->bytes_per_s < 18 * 20.6e9 * 1.001);
        assert_true(path_of(&machine, 0, 1)->bytes_per_s > 1e12);
        /* The device is no switch on the way to the port. */
        assert_int_equal(
            tutti_paths_between(machine.paths, tutti_graph_gpu(graph, 1), tutti_graph_net(graph, 0))
                ->class,
            TUTTI_PATH_PIX);
        /* A ring enters and leaves the device once, so it has the full rate of its links. */
        assert_int_equal(tutti_search(machine.paths, TUTTI_PATTERN_RING, &options, &ring), 0);
        check_channels("ring", machine.paths, ring);
        assert_true(ring->bytes_per_s > 18 * 20.6e9 * 0.999 &&
                    ring->bytes_per_s < 18 * 20.6e9 * 1.001);
        assert_int_equal(tutti_search(machine.paths, TUTTI_PATTERN_TREE, &options, &tree), 0);
        check_channels("tree", machine.paths, tree);
        tutti_channels_destroy(ring);
        tutti_channels_destroy(tree);
        close_machine(&machine);
    }
}

/* Gpus of two devices that are joined without a switch. */
static void partitions_share_the_links_between_their_devices(void **state)
{
    struct machine machine =
        open_text(SYSTEM(PCI("2", RANK("0", "0", LINK("3")) RANK("1", "1", LINK("3") LINK("2")))
                             PCI("3", RANK("2", "2", LINK("2")) RANK("3", "3", LINK("2")))));
    uint32_t nlinks = 0;

    (void)state;
    for (uint32_t i = 0; i < machine.graph->nlinks; i++) {
        const struct tutti_graph_link *link = &machine.graph->links[i];

        if (link->kind != TUTTI_LINK_NVLINK ||
            machine.graph->nodes[link->from].kind == TUTTI_NODE_GPU ||
            machine.graph->nodes[link->to].kind == TUTTI_NODE_GPU)
            continue;
        nlinks++;
        assert_int_equal(link->count, 4);
        assert_true(machine.graph->nodes[link->from].is_shared);
    }
    assert_int_equal(nlinks, 2); /* both directions */
    assert_int_equal(path_of(&machine, 0, 3)->class, TUTTI_PATH_NVL);
    assert_int_equal(path_of(&machine, 0, 3)->nhops, 3);
    close_machine(&machine);
}

/* Four devices of six partitions, joined in a mesh. A ring enters each device at least once, and
 * that bounds it, although it is free within a device. */
static void rings_of_many_partitions_have_a_proof(void **state)
{
    static char text[16384];
    struct tutti_search_options options = {.has_peers = false};
    struct tutti_channels *ring;
    struct machine machine;

    (void)state;
    strcpy(text, "<system version=\"2\"><cpu numaid=\"0\">");
    for (int device = 0; device < 4; device++) {
        sprintf(text + strlen(text), "<pci busid=\"0000:%02x:00.0\" class=\"0x120000\">", device);
        for (int part = 0; part < 6; part++) {
            sprintf(text + strlen(text), "<gpu dev=\"%d\" gcn=\"gfx942\">", 6 * device + part);
            for (int other = 0; other < 4; other++)
                if (other != device)
                    sprintf(text + strlen(text), "<xgmi target=\"0000:%02x:00.0\" count=\"1\"/>",
                            other);
            strcat(text, "</gpu>");
        }
        strcat(text, "</pci>");
    }
    strcat(text, "</cpu></system>");
    machine = open_text(text);
    assert_int_equal(machine.graph->count[TUTTI_NODE_GPU], 24);
    assert_int_equal(tutti_search(machine.paths, TUTTI_PATTERN_RING, &options, &ring), 0);
    check_channels("ring", machine.paths, ring);
    /* Each device has three links of 48 GB/s. */
    assert_true(ring->bound_bytes_per_s > 143e9 && ring->bound_bytes_per_s < 145e9);
    assert_true(ring->bytes_per_s > 0.99 * ring->bound_bytes_per_s);
    tutti_channels_destroy(ring);
    close_machine(&machine);
}

static void what_is_written_reads_as_the_same_devices(void **state)
{
    struct machine machine = open_text(
                       SYSTEM(PCI("2", RANK("0", "0", SWITCH)) PCI("2", RANK("0", "1", SWITCH)))),
                   again;
    char *text;

    (void)state;
    assert_int_equal(tutti_xml_write_nccl(machine.inventory, &text), TUTTI_OK);
    again = open_text(text);
    assert_int_equal(again.graph->nnodes, machine.graph->nnodes);
    assert_int_equal(again.graph->nlinks, machine.graph->nlinks);
    for (uint32_t i = 0; i < again.graph->nlinks; i++)
        assert_true(again.graph->links[i].bytes_per_s >= machine.graph->links[i].bytes_per_s &&
                    again.graph->links[i].bytes_per_s <= machine.graph->links[i].bytes_per_s);
    free(text);
    close_machine(&machine);
    close_machine(&again);
}

/* Gpus with one bus id on two hosts are two devices. */
static void equal_bus_ids_of_two_hosts_are_two_devices(void **state)
{
    struct machine machine =
        open_text("<system version=\"1\"><cpu host_hash=\"0x1\" numaid=\"0\">" PCI(
            "2",
            RANK("0", "0",
                 "")) "</cpu><cpu host_hash=\"0x2\" numaid=\"0\">" PCI("2",
                                                                       RANK("0", "1",
                                                                            "")) "</cpu></system>");

    (void)state;
    assert_null(machine.inventory->remarks);
    assert_int_equal(machine.graph->count[TUTTI_NODE_PCI], 0);
    assert_int_equal(machine.graph->nhosts, 2);
    close_machine(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_on_one_gpu_share_its_links),
        cmocka_unit_test(partitions_share_the_links_between_their_devices),
        cmocka_unit_test(rings_of_many_partitions_have_a_proof),
        cmocka_unit_test(what_is_written_reads_as_the_same_devices),
        cmocka_unit_test(equal_bus_ids_of_two_hosts_are_two_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
