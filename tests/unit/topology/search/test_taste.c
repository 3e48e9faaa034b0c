/* SPDX-License-Identifier: Apache-2.0
 * Tests the choice among plans that carry about the same: few channels, near ports, ports that are
 * used evenly, and ports that are left out. */
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
#include "topology/formats/known.h"
#include "topology/formats/nccl_xml.h"
#include "topology/graph/ports.h"
#include "topology/search/search.h"

#define RING TUTTI_PATTERN_RING
#define TREE TUTTI_PATTERN_TREE
#define CAST TUTTI_PATTERN_BROADCAST

static struct tutti_channels *search(const struct machine *machine, enum tutti_pattern pattern,
                                     bool has_peers, bool for_rate_only)
{
    struct tutti_search_options options = {.has_peers = has_peers, .for_rate_only = for_rate_only};
    struct tutti_channels *plan;

    if (tutti_search(machine->paths, pattern, &options, &plan) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    check_channels("the machine", machine->paths, plan);
    return plan;
}

/* ---- what taste costs ------------------------------------------------------------------------ */

static void taste_costs_at_most_two_percent_on_every_known_machine(void **state)
{
    const struct tutti_known_machine *known;

    (void)state;
    for (size_t i = 0; (known = tutti_known_machine(i)) != NULL; i++) {
        struct machine machine = open_machine(known->line);
        bool has_nets = machine.graph->count[TUTTI_NODE_NET] > 0;

        for (int pattern = 0; pattern < TUTTI_PATTERN_COUNT; pattern++)
            for (int has_peers = 0; has_peers <= has_nets; has_peers++) {
                struct tutti_search_options options = {.has_peers = has_peers};
                struct tutti_channels *plan;

                if (machine.graph->count[TUTTI_NODE_GPU] == 0)
                    continue;
                if (tutti_search(machine.paths, pattern, &options, &plan) != TUTTI_OK)
                    fail_msg("%s: %s", known->name, tutti_message_last());
                check_taste(known->name, machine.paths, pattern, options, plan);
                tutti_channels_destroy(plan);
            }
        close_machine(&machine);
    }
}

/* ---- the order of preferences ---------------------------------------------------------------- */

static void few_channels_are_preferred(void **state)
{
    static const struct {
        const char *line;
        enum tutti_pattern pattern;
        bool has_peers;
        uint32_t nchannels; /* that carry at least 98 % */
    } cases[] = {
        {"8 gpus h100 nvswitch 18, 2 cpus", RING, false, 1},
        {"8 gpus v100 cube-mesh, 2 cpus broadwell", RING, false, 12},
        {"4 gpus a100 pairs 12, 1 nic 200G, 2 cpus milan", CAST, true, 2},
        {"8 gpus mi50 ring 1 hives 2, 2 nics 100G, 2 cpus naples cores 32, 4 switches", CAST, false,
         2},
        {"8 gpus mi100 mesh 1 hives 2, 1 nic 200G, 2 cpus rome cores 64, 4 switches", TREE, true,
         1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine machine = open_machine(cases[i].line);
        struct tutti_channels *plan = search(&machine, cases[i].pattern, cases[i].has_peers, false);

        if (plan->nchannels != cases[i].nchannels)
            fail_msg("%s: %u channels, where %u are enough", cases[i].line, plan->nchannels,
                     cases[i].nchannels);
        tutti_channels_destroy(plan);
        close_machine(&machine);
    }
}

/* Returns the worst class of the paths of a plan, to nets or between gpus. */
static enum tutti_path_class worst_of(const struct tutti_channels *plan, bool to_nets)
{
    enum tutti_path_class worst = TUTTI_PATH_LOC;

    for (uint32_t c = 0; c < plan->nchannels; c++) {
        enum tutti_path_class class = to_nets ? plan->channel[c].inter : plan->channel[c].intra;

        worst = class > worst ? class : worst;
    }
    return worst;
}

/* Searches with and without preferences, and compares the worst classes. */
static void expect_classes(const char *line, enum tutti_pattern pattern, bool to_nets,
                           enum tutti_path_class with, enum tutti_path_class without)
{
    struct machine machine = open_machine(line);
    struct tutti_channels *plan = search(&machine, pattern, true, false);
    struct tutti_channels *other = search(&machine, pattern, true, true);

    if (worst_of(plan, to_nets) != with || worst_of(other, to_nets) != without)
        fail_msg("%s: %s, and %s without preferences", line,
                 tutti_path_class_name(worst_of(plan, to_nets)),
                 tutti_path_class_name(worst_of(other, to_nets)));
    tutti_channels_destroy(plan);
    tutti_channels_destroy(other);
    close_machine(&machine);
}

#define MI250X                                                                                     \
    "8 gpus mi250x on cpu 3 1 0 2 links 0-1:4 0-2:1 0-6:2 1-3:1 1-5:1 2-3:4 2-4:2 3-7:1 4-5:4 "    \
    "4-6:1 5-7:1 6-7:4, 4 nics 200G slingshot near gpu 0 2 4 6, "                                  \
    "1 cpu milan cores 64 threads 2 nodes 4"

static void near_ports_are_preferred(void **state)
{
    (void)state;
    expect_classes(MI250X, RING, true, TUTTI_PATH_PHB, TUTTI_PATH_SYS);
    expect_classes(MI250X, CAST, true, TUTTI_PATH_PHB, TUTTI_PATH_SYS);
    expect_classes("4 gpus a100 pairs 12, 1 nic 200G, 2 cpus milan", RING, true, TUTTI_PATH_PHB,
                   TUTTI_PATH_SYS);
    expect_classes("8 gpus v100 cube-mesh, 4 nics 100G, 2 cpus broadwell, 4 switches", TREE, true,
                   TUTTI_PATH_PIX, TUTTI_PATH_PXN);
}

static void direct_links_between_gpus_are_preferred(void **state)
{
    (void)state;
    expect_classes(MI250X, RING, false, TUTTI_PATH_NVL, TUTTI_PATH_NVB);
    expect_classes("8 gpus v100 cube-mesh, 4 nics 100G, 2 cpus broadwell, 4 switches", RING, false,
                   TUTTI_PATH_NVL, TUTTI_PATH_NVB);
}

/* Stores the least and the greatest number of channels that enter by a port. */
static void count_ports(const struct machine *machine, const struct tutti_channels *plan,
                        uint32_t *ret_least, uint32_t *ret_most)
{
    *ret_least = UINT32_MAX;
    *ret_most = 0;
    for (uint32_t net = 0; net < machine->graph->count[TUTTI_NODE_NET]; net++) {
        uint32_t count = 0;

        for (uint32_t c = 0; c < plan->nchannels; c++)
            count += plan->channel[c].net_in == net;
        *ret_least = count < *ret_least ? count : *ret_least;
        *ret_most = count > *ret_most ? count : *ret_most;
    }
}

static void channels_are_spread_over_equal_ports(void **state)
{
    static const char *const lines[] = {
        MI250X,
        "8 gpus mi50 ring 1 hives 2, 2 nics 100G, 2 cpus naples cores 32, 4 switches",
        "8 gpus v100 cube-mesh, 4 nics 100G, 2 cpus broadwell, 4 switches",
        "16 gpus v100 nvswitch 6, 8 nics 100G, 2 cpus skylake, 8 switches under 4",
        "8 gpus a100 nvswitch 12, 4 nics 100G efa, 2 cpus skylake cores 24 threads 2, 4 switches",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int pattern = 0; pattern < TUTTI_PATTERN_COUNT; pattern++) {
            struct machine machine = open_machine(lines[i]);
            struct tutti_channels *plan = search(&machine, pattern, true, false);
            uint32_t least, most;

            count_ports(&machine, plan, &least, &most);
            if (least != most)
                fail_msg("%s: %s: %u to %u channels enter by a port", lines[i],
                         tutti_pattern_name(pattern), least, most);
            tutti_channels_destroy(plan);
            close_machine(&machine);
        }
}

/* ---- ports that are left out ----------------------------------------------------------------- */

static void weak_ports_are_left_out(void **state)
{
    static const struct {
        const char *line;
        uint32_t nleft_out;
    } cases[] = {
        {"4 gpus a100 mesh 4, 4 nics 100G, 1 nics 1G, 2 cpus milan", 1},
        {"4 gpus a100 mesh 4, 4 nics 100G, 2 nics 1G, 2 cpus milan", 2},
        /* Each of many equal ports adds little, but none is weak beside the others. */
        {"8 gpus h100 nvswitch 18, 32 nics 10G efa, 2 cpus sapphire", 0},
        /* Together these weak ports would add a tenth. */
        {"4 gpus a100 mesh 4, 1 nics 100G, 1 nics 10G, 2 cpus milan", 0},
        /* The only port is used, however slow it is. */
        {"4 gpus a100 mesh 4, 1 nics 1G, 2 cpus milan", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine machine = open_machine(cases[i].line);
        struct tutti_channels *plan = search(&machine, RING, true, false);

        if (plan->nleft_out != cases[i].nleft_out)
            fail_msg("%s: %u ports are left out, not %u", cases[i].line, plan->nleft_out,
                     cases[i].nleft_out);
        for (uint32_t p = 0; p < plan->nleft_out; p++) {
            assert_false(plan->left_out[p].is_virtual);
            for (uint32_t c = 0; c < plan->nchannels; c++) {
                assert_true(plan->channel[c].net_in != plan->left_out[p].net);
                assert_true(plan->channel[c].net_out != plan->left_out[p].net);
            }
        }
        tutti_channels_destroy(plan);
        close_machine(&machine);
    }
}

/* A host with two gpus, and a port of each of these names. */
static struct machine machine_with_ports(const char *const *names, uint32_t count)
{
    struct machine machine = {0};
    char text[4096];
    size_t length;

    length = (size_t)snprintf(
        text, sizeof text,
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
        "familyid=\"6\" modelid=\"85\">"
        "<pci busid=\"0000:10:00.0\" class=\"0x030000\" link_speed=\"8 GT/s\" link_width=\"16\">"
        "<gpu dev=\"0\" sm=\"70\"/></pci>"
        "<pci busid=\"0000:11:00.0\" class=\"0x030000\" link_speed=\"8 GT/s\" link_width=\"16\">"
        "<gpu dev=\"1\" sm=\"70\"/></pci><nic>");
    for (uint32_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "<net name=\"%s\" dev=\"%u\" speed=\"10000\" port=\"0\" "
                                   "guid=\"0x%x\"/>",
                                   names[i], i, i + 1);
    length += (size_t)snprintf(text + length, sizeof text - length, "</nic></cpu></system>");
    assert_int_equal(
        tutti_xml_read_nccl("text", text, length, TUTTI_SOURCE_FILE, &machine.inventory), TUTTI_OK);
    assert_int_equal(tutti_graph_build(machine.inventory, &machine.graph), TUTTI_OK);
    assert_int_equal(tutti_paths_find(machine.graph, &machine.paths), TUTTI_OK);
    return machine;
}

static const char *const virtual_names[] = {
    "lo",      "tunl0",  "br-3c276cd5dbc3", "docker0",      "cali1a2b3",
    "veth268", "virbr0", "flannel.1",       "vxlan.calico", "wg0"};

#define VIRTUAL (sizeof virtual_names / sizeof virtual_names[0])

static void virtual_ports_are_always_left_out(void **state)
{
    static const char *const real_names[] = {"eth0",   "enp3s0f0", "br0",   "bond0",
                                             "tunnel", "hsi0",     "vlan5", "mlx5_bond_0"};
    const char *names[VIRTUAL + 1];
    struct tutti_ports *dealt;

    (void)state;
    memcpy(names, virtual_names, sizeof virtual_names);
    for (size_t i = 0; i < sizeof real_names / sizeof real_names[0]; i++) {
        struct machine machine;
        struct tutti_channels *plan;

        names[VIRTUAL] = real_names[i];
        machine = machine_with_ports(names, VIRTUAL + 1);
        plan = search(&machine, RING, true, false);
        assert_int_equal(plan->nleft_out, VIRTUAL);
        for (uint32_t p = 0; p < plan->nleft_out; p++)
            assert_true(plan->left_out[p].is_virtual && plan->left_out[p].net != VIRTUAL);
        for (uint32_t c = 0; c < plan->nchannels; c++)
            assert_true(plan->channel[c].net_in == VIRTUAL && plan->channel[c].net_out == VIRTUAL);
        assert_int_equal(tutti_ports_deal(machine.paths, &dealt), TUTTI_OK);
        for (uint32_t gpu = 0; gpu < 2; gpu++)
            assert_int_equal(dealt->of_gpu[gpu], tutti_graph_net(machine.graph, VIRTUAL));
        tutti_ports_destroy(dealt);
        tutti_channels_destroy(plan);
        close_machine(&machine);
    }
}

static void a_host_with_virtual_ports_only_is_refused(void **state)
{
    struct machine machine = machine_with_ports(virtual_names, 3);
    struct tutti_search_options options = {.has_peers = true};
    struct tutti_channels *plan = NULL;

    (void)state;
    assert_int_equal(tutti_search(machine.paths, RING, &options, &plan), TUTTI_ERR_ARGUMENT);
    assert_null(plan);
    assert_non_null(strstr(tutti_message_last(), "no network port but virtual ones"));
    /* Within the host no port is needed, and none is listed. */
    options.has_peers = false;
    assert_int_equal(tutti_search(machine.paths, RING, &options, &plan), TUTTI_OK);
    assert_int_equal(plan->nleft_out, 0);
    tutti_channels_destroy(plan);
    close_machine(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taste_costs_at_most_two_percent_on_every_known_machine),
        cmocka_unit_test(few_channels_are_preferred),
        cmocka_unit_test(near_ports_are_preferred),
        cmocka_unit_test(direct_links_between_gpus_are_preferred),
        cmocka_unit_test(channels_are_spread_over_equal_ports),
        cmocka_unit_test(weak_ports_are_left_out),
        cmocka_unit_test(virtual_ports_are_always_left_out),
        cmocka_unit_test(a_host_with_virtual_ports_only_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
