/* SPDX-License-Identifier: Apache-2.0
 * Tests tutti-topo's views of machines that are given in one line: trees, matrices, searches,
 * pictures, files. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAIR "\"2 gpus a100 pairs 12, 1 nic 200G, 2 cpus milan cores 2\""
#define BUS "\"4 gpus a6000, 2 cpus icelake cores 2\""
#define WEAK "\"4 gpus a100 mesh 4, 4 nics 100G, 1 nics 1G, 2 cpus milan cores 2\""
#define HOSTS "\"2 hosts: 2 gpus a100 pairs 12, 1 nic 200G, 1 cpu milan cores 2\""

static void assert_text(const char *text, const char *expected)
{
    if (strcmp(text, expected) != 0)
        fail_msg("is:\n%s\nshould be:\n%s", text, expected);
}

static void run(const char *arguments)
{
    int status = running_run(TUTTI_TOPO, "%s", arguments);

    /* Of the machine that runs the test, some rates may have to be guessed. */
    if (status != 0 ||
        (*running.err != '\0' && (strstr(arguments, "--from") != NULL ||
                                  strstr(running.err, ": guessed rates: ") == NULL)))
        fail_msg("tutti-topo %s: exit status %d\n%s", arguments, status, running.err);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void a_machine_is_shown_as_a_tree(void **state)
{
    (void)state;
    run("--from " PAIR);
    assert_text(
        running.out,
        "device            bus id        link up        carries     description\n"
        "cpu 0                           to other cpus  16 GB/s  p  Milan, package 0, CPUs 0-1\n"
        "  gpu 0           0000:01:00.0  gen4 x16       24 GB/s     A100, sm 80, 12 NVLinks to "
        "gpu 1: 240 GB/s\n"
        "  nic             0000:02:00.0  gen4 x16       24 GB/s     \n"
        "    net 0 mlx5_0                200 Gbit/s     25 GB/s     infiniband\n"
        "cpu 1                           to other cpus  16 GB/s  p  Milan, package 1, CPUs 2-3\n"
        "  gpu 1           0000:03:00.0  gen4 x16       24 GB/s     A100, sm 80, 12 NVLinks to "
        "gpu 0: 240 GB/s\n"
        "\n"
        "2 gpus a100 pairs 12, 1 nic 200G, 2 cpus milan cores 2: 1 host, 2 cpus, 2 gpus, 1 nic, "
        "1 net\n"
        "p known by the product: a PCI id or a name tells the rate\n");
}

static void hosts_that_are_alike_are_shown_once(void **state)
{
    (void)state;
    run("--from \"3 hosts: 2 gpus h100, 1 cpu; 1 host: 1 gpu t4, 1 cpu\"");
    assert_int_equal(running_count(running.out, " alike: see host 0\n"), 2);
    running_says("4 hosts, 4 cpus, 7 gpus\n");
    assert_int_equal(running_count(running.out, "H100"), 2);
    assert_int_equal(running_count(running.out, "T4"), 1);
}

static void links_of_one_form_are_told_of_together(void **state)
{
    (void)state;
    run("--from dgx-1v");
    running_says("V100, sm 70, 1 NVLink to each of gpu 1 2: 20 GB/s, 2 NVLinks to each of gpu 3 4: "
                 "40 GB/s\n");
    run("--from mi250x-node");
    running_says("MI250X, gcn 910, 4 xGMI links to gpu 1: 144 GB/s");
    run("--from dgx-2");
    running_says("6 NVLinks to nvswitch: 120 GB/s");
    run("--from gh200");
    running_says("C2C to cpu 0: 450 GB/s");
}

static void who_said_what_is_shown(void **state)
{
    (void)state;
    run("--sources --from " PAIR);
    running_says("file: dev gdr name speed port guid layer\n");
    running_says("source\n");
}

/* Whatever it consists of: it has a cpu, and detection fails nowhere. */
static void this_machine_is_shown(void **state)
{
    (void)state;
    run("");
    running_says("cpu 0");
    running_says("\nthis machine: 1 host, ");
    run("matrix");
    running_says("CPU affinity");
    run("draw --plain --svg here.svg --dot here.dot");
    assert_true(running_is_svg("here.svg"));
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static void a_matrix_shows_classes(void **state)
{
    (void)state;
    run("matrix --cpus --from " PAIR);
    assert_text(running.out,
                "      GPU0  GPU1  NET0  CPU0  CPU1  CPU affinity  NUMA\n"
                "GPU0  X     NV12  PHB   PHB   SYS   0-1              0\n"
                "GPU1  NV12  X     SYS   SYS   PHB   2-3              1\n"
                "NET0  PHB   SYS   X     PHB   SYS   0-1              0\n"
                "CPU0  PHB   SYS   PHB   X     SYS   0-1              0\n"
                "CPU1  SYS   PHB   SYS   SYS   X     2-3              1\n"
                "\n"
                "NVn  so many NVLinks or xGMI links, direct or through NVSwitches\n"
                "PHB  a CPU's root complex\n"
                "SYS  between NUMA nodes\n"
                "NET0 mlx5_0\n");
}

static void a_matrix_shows_bandwidths(void **state)
{
    (void)state;
    run("matrix -b --from " PAIR);
    assert_text(running.out,
                "      GPU0  GPU1  NET0  CPU affinity  NUMA\n"
                "GPU0     X   240    24  0-1              0\n"
                "GPU1   240     X    16  2-3              1\n"
                "NET0    24    16     X  0-1              0\n"
                "\n"
                "GB/s of one flow alone, from the device of the row to that of the column\n"
                "NET0 mlx5_0\n");
}

static void a_matrix_of_several_hosts_says_which(void **state)
{
    (void)state;
    run("matrix --from " HOSTS);
    running_says("NUMA  host\n");
    running_says("GPU2  NET ");
    running_says("between hosts\n");
    run("matrix --from dgx-2");
    running_says("GPU15  NV6");
}

/* ---- searches -------------------------------------------------------------------------------- */

static void a_search_shows_channels_and_orders(void **state)
{
    (void)state;
    run("search --from " PAIR);
    assert_text(running.out,
                "ring of 2 gpus: 1 channel of 240 GB/s; no more can be (100 %)\n"
                "  channels  class  order  fullest link\n"
                "         1  NVL    0 1    gpu 0 -> gpu 1 (nvlink)\n"
                "  a large all-reduce among them: 240 GB/s of the buffer\n"
                "\n"
                "tree of 2 gpus: 1 channel of 240 GB/s; no more can be (100 %)\n"
                "  channels  class  order  fullest link\n"
                "         1  NVL    0(1)   gpu 0 -> gpu 1 (nvlink)\n"
                "  a large all-reduce among them: 240 GB/s of the buffer\n"
                "\n"
                "broadcast tree of 2 gpus: 2 channels of 240 GB/s, together 480 GB/s; no more can "
                "be (100 %)\n"
                "  channels  class  order  fullest link\n"
                "         1  NVL    0(1)   gpu 0 -> gpu 1 (nvlink)\n"
                "         1  NVL    1(0)   gpu 1 -> gpu 0 (nvlink)\n"
                "\n");
}

static void a_search_is_the_same_every_time(void **state)
{
    static char first[RUNNING_TEXT];

    (void)state;
    run("search --from mi250x-node --peers");
    strcpy(first, running.out);
    run("search --from mi250x-node --peers");
    assert_text(running.out, first);
}

static void a_search_keeps_to_what_is_asked(void **state)
{
    (void)state;
    run("search --pattern ring --gpus 0,2-3 --from dgx-1v");
    running_says("ring of 3 gpus: ");
    assert_int_equal(running_count(running.out, "tree"), 0);
    run("search --pattern tree --channels 1 --from dgx-1v");
    running_says("tree of 8 gpus: 1 channel of ");
    run("search --pattern ring --peers --from " PAIR);
    running_says("net 0");
    run("search --pattern ring --peers --cross --from dgx-h100");
    running_says("to nets");
}

static void a_search_says_why_ports_are_left_out(void **state)
{
    (void)state;
    run("search --pattern ring --peers --from " WEAK);
    running_says("  left out: net 4 (mlx5_4): would add 0.3 %\n");
    assert_int_equal(running_count(running.out, "  why\n"), 0);
    run("search --pattern ring --peers --explain --from " WEAK);
    running_says("  port                 rate  channels  why\n"
                 "  net 0 (mlx5_0)  12.5 GB/s         1  used\n");
    running_says("  net 4 (mlx5_4)   125 MB/s         0  weak: it would add 0.3 %, and all weak "
                 "ports add at most 4 %\n");
    /* One ring is all that the CPUs' link carries, so one port is enough. */
    run("search --pattern ring --peers --explain --from \"2 gpus a6000, 2 nics 200G, "
        "2 cpus icelake cores 2\"");
    running_says("  net 1 (mlx5_1)  25 GB/s         0  not needed: without it, 100.0 % of the bound "
                 "are reached\n");
    /* Without other hosts there are no ports to explain. */
    run("search --pattern ring --explain --from " PAIR);
    assert_int_equal(running_count(running.out, "  why\n"), 0);
}

static void hosts_are_searched_one_by_one(void **state)
{
    (void)state;
    run("search --pattern ring --from " HOSTS);
    running_says("host 0, ring of 2 gpus: ");
    running_says("\nhost 1 as host 0, with its own gpus and nets\n");
    run("search --pattern ring --gpus 2,3 --from " HOSTS);
    running_says("host 1, ring of 2 gpus: ");
    running_says("net 1");
    run("search --pattern ring --from gb200-nvl72");
    running_says("all hosts together, ring of 72 gpus: ");
    running_says("\nhosts 1-17 as host 0, each with its own gpus and nets\n");
}

static void a_gpu_alone_is_bounded_by_nothing(void **state)
{
    (void)state;
    run("search --pattern ring --from \"1 gpu t4, 1 cpu\"");
    running_says("ring of 1 gpu: 1 channel, which crosses no link, so none bounds it\n");
    run("explain --from \"1 gpu t4, 1 cpu\"");
    running_says("it crosses no link, so nothing bounds it\n");
}

/* ---- explanations ---------------------------------------------------------------------------- */

static void the_link_that_bounds_is_named_with_what_it_would_take(void **state)
{
    (void)state;
    run("explain --from " BUS);
    running_says("ring of 4 gpus: 1 channel, 10 GB/s of the 10 GB/s that can be (100.0 %)\n");
    running_says("(sys)  10 GB/s");
    running_says("0 % of the bound is told by the machine or the file, 100 % is\n"
                 "known by products, and 0 % is guessed.\n");
    running_says("20 GB/s could be (2.00 times); channels carry 20 GB/s\n");
}

static void links_that_are_alike_are_widened_together(void **state)
{
    (void)state;
    run("explain --from dgx-h100");
    running_says("with all 16 links like that: 742 GB/s could be (2.00 times); channels carry 742 "
                 "GB/s\n");
    running_says("100 % is\nknown by products, and 0 % is guessed.\n");
    run("explain --pattern all --from mi250x-node");
    assert_int_equal(running_count(running.out, "If they carried twice as much"), 3);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static const char *const drawn[] = {
    "dgx-1v", "dgx-2", "dgx-h100", "4xa6000-pcie", "mi250x-node", "4xa100-mesh", "cpu-2sockets",
    "cpu-nps4", "dual-port", "ac922", "gb200-nvl72", "unequal-vms", PAIR, BUS, HOSTS,
    "\"1 gpu t4, 1 cpu\"", "\"1 cpu\"",
    "\"64 gpus h100, 64 nics 400G, 8 cpus, 32 switches under 8\"",
};

static void assert_picture(const char *what)
{
    static char text[8 << 20];

    assert_true(running_is_svg("it.svg"));
    running_read("it.svg", text, sizeof text);
    if (strstr(text, "nan") != NULL || strstr(text, "inf\"") != NULL ||
        strstr(text, "=\"-") != NULL)
        fail_msg("%s: a place that is none, or outside of the picture", what);
    running_read("it.dot", text, sizeof text);
    assert_int_equal(strncmp(text, "digraph \"", 9), 0);
    assert_int_equal(running_count(text, "{"), running_count(text, "}"));
    assert_null(strstr(text, "nan"));
}

static void every_machine_can_be_drawn(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        int status = running_run(TUTTI_TOPO, "draw --from %s --svg it.svg --dot it.dot%s", drawn[i],
                                 strstr(drawn[i], "64 gpus") != NULL ? " --plain" : "");

        if (status != 0)
            fail_msg("%s: exit status %d, %s", drawn[i], status, running.err);
        assert_picture(drawn[i]);
    }
}

static void a_picture_shows_what_is_asked(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    run("draw --from dgx-1v --pattern all --svg it.svg");
    running_read("it.svg", text, sizeof text);
    assert_non_null(strstr(text, ">Rings<"));
    assert_non_null(strstr(text, ">Trees<"));
    assert_non_null(strstr(text, ">Broadcast trees<"));
    assert_non_null(strstr(text, ">Links between gpus<"));
    run("draw --from dgx-2 --plain --svg it.svg");
    running_read("it.svg", text, sizeof text);
    assert_null(strstr(text, ">Rings<"));
    assert_non_null(strstr(text, ">gpu 15<"));
    assert_non_null(strstr(text, ">net 7<"));
    assert_non_null(strstr(text, "NVSwitch: 6 NVLinks of each gpu"));
}

/* Names come from files. */
static void a_name_stays_text_in_a_picture(void **state)
{
    (void)state;
    running_write("odd.xml",
                  "<system version=\"1\"><cpu numaid=\"0\" model=\"&lt;b&gt; &amp; &quot;c\" "
                  "affinity=\"3\"><pci busid=\"0000:01:00.0\" class=\"0x020000\"><nic>"
                  "<net name=\"a&quot;\\b&lt;\" dev=\"0\" speed=\"1000\"/></nic></pci></cpu>"
                  "</system>");
    run("draw --from odd.xml --svg it.svg --dot it.dot");
    assert_picture("odd.xml");
}

/* ---- files of others ------------------------------------------------------------------------- */

static void an_exported_machine_is_the_same_machine(void **state)
{
    static char tree[RUNNING_TEXT];

    (void)state;
    run("--from dgx-h100");
    strcpy(tree, running.out);
    run("export --from dgx-h100 --xml dgx-h100");
    run("--from ./dgx-h100");
    assert_text(running.out, tree);
}

static void without_a_command_files_are_written_too(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    run("--from dgx-2 --svg it.svg --dot it.dot --xml it.xml --graph graph.xml --pattern tree");
    assert_string_equal(running.out, "");
    assert_picture("dgx-2");
    running_read("graph.xml", text, sizeof text);
    assert_non_null(strstr(text, "<graphs"));
    run("--from it.xml");
    running_says("16 gpus");
}

static void plans_are_exported_as_graphs(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    run("export --from 4xa100-mesh --peers --graph graph.xml");
    running_read("graph.xml", text, sizeof text);
    assert_non_null(strstr(text, "<graph id=\"0\" pattern=\"4\""));
    assert_non_null(strstr(text, "<graph id=\"1\" pattern=\"3\""));
    assert_non_null(strstr(text, "<net dev=\"0\"/>"));
    /* A channel has each gpu once, trees, too, which are chains there. */
    assert_int_equal(running_count(text, "<gpu "), 4 * running_count(text, "<channel>"));
    assert_int_equal(running_count(text, "<net "), 2 * running_count(text, "<channel>"));
    run("export --from " PAIR " --xml machine.xml --graph graph.xml");
    running_read("graph.xml", text, sizeof text);
    assert_int_equal(running_count(text, "<net "), 0);
    run("--from machine.xml");
}

static void a_described_machine_can_be_simulated(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    run("machine --from dgx-1v -o it.txt");
    running_read("it.txt", text, sizeof text);
    assert_non_null(strstr(text, "ranks 8\nnode 8\n"));
    assert_non_null(strstr(text, "\nring "));
    assert_non_null(strstr(text, "\ntree "));
    assert_non_null(strstr(text, "\nlink gpu0>gpu1 20GB/s\n"));
    assert_int_equal(running_count(text, "\npath "), 56);
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo it.txt -s 1M"), 0);
    run("machine --from " HOSTS " -o it.txt");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo it.txt -s 1M"), 0);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistakes_are_one_line_with_the_cure(void **state)
{
    static const struct {
        const char *arguments, *what;
    } cases[] = {
        {"--from no-such-machine", "no-such-machine"},
        {"--from \"8 geese\"", "geese"},
        {"--from \"garbage in\"", "line:1:1"},
        {"--from \"\"", "give"},
        {"matrix all", "one word too many"},
        {"search rings", "one word too many"},
        {"explain it", "one word too many"},
        {"draw it --svg it.svg", "one word too many"},
        {"export it --xml it.xml", "one word too many"},
        {"search --from dgx-2 --pattern mesh", "ring, tree, broadcast or all"},
        {"search --from dgx-2 --gpus 16", "numbered from 0"},
        {"search --from dgx-2 --gpus 1,1", "twice"},
        {"search --from dgx-2 --gpus 0-15,3", "twice"},
        {"search --from dgx-2 --gpus 3-1", "such as 0,1,4 or 0-3"},
        {"search --from dgx-2 --gpus ,", "such as 0,1,4 or 0-3"},
        {"search --from dgx-2 --gpus 4294967296", "such as 0,1,4 or 0-3"},
        {"search --gpus 1,2 --from " HOSTS, "give gpus of one host"},
        {"search --from dgx-2 --channels 0", "from 1 to 64"},
        {"search --from dgx-2 --channels 65", "from 1 to 64"},
        {"search --from dgx-2 --cross", "add --peers"},
        {"search --from cpu-2sockets", "no gpus"},
        {"search --peers --from \"1 gpu t4, 1 cpu\"", "no network port"},
        {"explain --from cpu-2sockets", "no gpus"},
        {"machine --from cpu-2sockets", "no gpus"},
        {"machine --from dgx-2 -n 4", "leave it out"},
        {"draw --from dgx-2", "--svg FILE"},
        {"draw --from dgx-2 --plain --pattern ring --svg it.svg", "--plain"},
        {"export --from dgx-2", "--xml FILE"},
        {"matrix --sources", "no option"},
        {"--bandwidth", "no option"},
        {"--plain", "add --svg FILE"},
        {"--pattern ring", "add --svg FILE"},
        {"--svg it.svg --sources", "leave out --sources"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        running_is_mistake(running_run(TUTTI_TOPO, "%s", cases[i].arguments), "tutti-topo",
                           cases[i].what);
}

static void files_that_are_no_machines_are_refused(void **state)
{
    static const struct {
        const char *text, *what;
    } files[] = {
        {"", "bad:1:1"},
        {"<system version=\"1\"><cpu", "bad:1:"},
        {"<html></html>", "begins with <html>"},
        {"\xff\xfe\x01garbage", "bad:1:1"},
        {"<system version=\"1\"><cpu numaid=\"x\"/></system>", "bad:1:"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        running_write("bad", files[i].text);
        running_is_mistake(running_run(TUTTI_TOPO, "--from ./bad"), "tutti-topo: ", files[i].what);
        running_is_mistake(running_run(TUTTI_TOPO, "matrix --from ./bad"), "tutti-topo matrix: ",
                           files[i].what);
    }
}

static void files_that_cannot_be_written_are_named(void **state)
{
    static const char *const cases[] = {
        "draw --from dgx-2 --svg no/such/place", "draw --from dgx-2 --dot no/such/place",
        "export --from dgx-2 --xml no/such/place", "export --from dgx-2 --graph no/such/place",
        "machine --from dgx-1v -o no/such/place",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(running_run(TUTTI_TOPO, "%s", cases[i]), 1);
        assert_string_equal(running.out, "");
        assert_non_null(strstr(running.err, "cannot write no/such/place: "));
    }
}

static void every_command_helps(void **state)
{
    static const char *const commands[] = {"", "matrix", "search", "explain", "draw", "export",
                                           "machine"};

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        assert_int_equal(running_run(TUTTI_TOPO, "%s --help", commands[i]), 0);
        running_says("usage: tutti-topo");
        running_says("--from WHAT");
        assert_string_equal(running.err, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_shown_as_a_tree),
        cmocka_unit_test(hosts_that_are_alike_are_shown_once),
        cmocka_unit_test(links_of_one_form_are_told_of_together),
        cmocka_unit_test(who_said_what_is_shown),
        cmocka_unit_test(this_machine_is_shown),
        cmocka_unit_test(a_matrix_shows_classes),
        cmocka_unit_test(a_matrix_shows_bandwidths),
        cmocka_unit_test(a_matrix_of_several_hosts_says_which),
        cmocka_unit_test(a_search_shows_channels_and_orders),
        cmocka_unit_test(a_search_is_the_same_every_time),
        cmocka_unit_test(a_search_keeps_to_what_is_asked),
        cmocka_unit_test(a_search_says_why_ports_are_left_out),
        cmocka_unit_test(hosts_are_searched_one_by_one),
        cmocka_unit_test(a_gpu_alone_is_bounded_by_nothing),
        cmocka_unit_test(the_link_that_bounds_is_named_with_what_it_would_take),
        cmocka_unit_test(links_that_are_alike_are_widened_together),
        cmocka_unit_test(every_machine_can_be_drawn),
        cmocka_unit_test(a_picture_shows_what_is_asked),
        cmocka_unit_test(a_name_stays_text_in_a_picture),
        cmocka_unit_test(an_exported_machine_is_the_same_machine),
        cmocka_unit_test(without_a_command_files_are_written_too),
        cmocka_unit_test(plans_are_exported_as_graphs),
        cmocka_unit_test(a_described_machine_can_be_simulated),
        cmocka_unit_test(mistakes_are_one_line_with_the_cure),
        cmocka_unit_test(files_that_are_no_machines_are_refused),
        cmocka_unit_test(files_that_cannot_be_written_are_named),
        cmocka_unit_test(every_command_helps),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
