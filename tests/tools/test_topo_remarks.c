/* SPDX-License-Identifier: Apache-2.0
 * Runs the tools on descriptions that need a remark: hosts of one NVLink domain, values that are
 * left out, links that are degraded, and rates that cannot be. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GPU(bus, dev, target)                                                                      \
    "<pci busid=\"000" bus                                                                         \
    ":01:00.0\" class=\"0x030200\" link_speed=\"32 GT/s\" link_width=\"16\">"                      \
    "<gpu dev=\"" dev "\" sm=\"100\"><nvlink target=\"" target "\" count=\"18\" "                  \
    "tclass=\"0x068000\"/></gpu></pci>"
#define TRAY(hash)                                                                                 \
    "<cpu host_hash=\"" hash "\" numaid=\"0\" arch=\"arm64\">" GPU("1", "0", "fffffff:ff:ff.0")    \
        GPU("2", "1", "fffffff:ff:ff.0") "<pci busid=\"0009:01:00.0\" "                            \
                                         "class=\"0x020000\"><nic><net name=\"bond0\" dev=\"0\" "  \
                                         "speed=\"100000\" guid=\"0xREDACTED\" "                   \
                                         "maxconn=\"0xREDACTED\"/></nic></pci></cpu>"
#define DOMAIN_NOTE "note: the hosts are taken for one NVLink domain"

static int write_machines(void **state)
{
    int rc = running_begin(state);

    running_write("trays.xml",
                  "<system version=\"1\">" TRAY("0xHASH_A") TRAY("0xHASH_B") "</system>");
    running_write(
        "degraded.xml",
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"><gpu dev=\"0\" "
        "sm=\"80\"><nvlink target=\"0000:02:00.0\" count=\"12\"/></gpu></pci>"
        "<pci busid=\"0000:02:00.0\"><gpu dev=\"1\" sm=\"80\"><nvlink "
        "target=\"0000:01:00.0\" count=\"1\"/></gpu></pci></cpu></system>");
    running_write(
        "unit.xml",
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\">"
        "<gpu dev=\"0\"/></pci><nic><net name=\"eth0\" dev=\"0\" speed=\"200000000\"/></nic>"
        "</cpu></system>");
    return rc;
}

static void run(const char *program, const char *arguments)
{
    int status = running_run(program, "%s", arguments);

    if (status != 0)
        fail_msg("%s: %d\n%s", arguments, status, running.err);
}

static void hosts_of_one_domain_are_searched_by_nvlinks(void **state)
{
    static char first[RUNNING_TEXT];

    (void)state;
    run(TUTTI_TOPO, "search --from trays.xml --pattern ring");
    running_says("all hosts together, ring of 4 gpus: 1 channel of 722 GB/s");
    running_says("\nhost 0, ring of 2 gpus: 1 channel of 722 GB/s");
    running_says(DOMAIN_NOTE);
    running_says("maxconn=\"0xREDACTED\" is no number, such as 8; it is not needed and is ignored, "
                 "with 1 more such values\n");
    assert_null(strstr(running.out, "to nets"));
    /* A user can ask for a search with ports. */
    run(TUTTI_TOPO, "search --from trays.xml --pattern ring --peers");
    running_says("to nets");
    /* The file that is exported says what was assumed, and gives the same. */
    run(TUTTI_TOPO, "search --from trays.xml");
    strcpy(first, running.out);
    *strstr(first, "note: ") = '\0';
    run(TUTTI_TOPO, "export --from trays.xml --xml again.xml");
    assert_non_null(strstr(running.err, DOMAIN_NOTE));
    run(TUTTI_TOPO, "search --from again.xml");
    assert_string_equal(running.out, first);
}

static void a_machine_of_a_domain_has_its_nvlinks(void **state)
{
    (void)state;
    run(TUTTI_TOPO, "machine --from trays.xml -o trays.txt");
    assert_string_equal(running.out, "");
    assert_non_null(strstr(running.err, DOMAIN_NOTE));
    run("cat", "trays.txt");
    running_says("link host0nvswitch>host1gpu2 695GB/s");
    running_says("\nlevel top   latency 1us overhead 0s bandwidth 695GB/s\n");
    assert_null(strstr(running.out, "net"));
    run(TUTTI_SIM, "allreduce --topo trays.xml --size 1M --algorithm ring");
    assert_non_null(strstr(running.err, DOMAIN_NOTE));
}

/* Other hosts are reached over ports, and the domain is still one of NVLinks. */
static void a_domain_and_another_host_are_searched_one_by_one(void **state)
{
    (void)state;
    run(TUTTI_TOPO, "search --pattern ring --from '2 hosts: 2 gpus gb200 nvswitch fabric, 1 nics "
                    "400G, 1 cpu; 1 hosts: 2 gpus a100 pcie, 1 nics 100G, 1 cpu'");
    running_says("hosts 0-1, ring of 4 gpus");
    running_says("host 2, ring of 2 gpus");
    running_says("to nets");
    assert_null(strstr(running.out, "host 1 as host 0"));
    run(TUTTI_TOPO, "machine --from '2 hosts: 2 gpus gb200 nvswitch fabric, 1 nics 400G, 1 cpu; "
                    "1 hosts: 2 gpus a100 pcie, 1 nics 100G, 1 cpu'");
    running_says("link host0nvswitch>host1gpu2 695GB/s");
}

/* Fewer than 8 gpus gain nothing, and nobody has measured gpus of Volta. */
static void reductions_in_nvswitches_are_told(void **state)
{
    (void)state;
    run(TUTTI_TOPO, "search --pattern ring --from '8 gpus b300 nvswitch, 1 cpu'");
    running_says("busbw of about 695 GB/s by rings, and of 845 GB/s if the\n"
                 "  nvswitch reduces (NVLS)");
    run(TUTTI_TOPO, "search --pattern ring --from '4 gpus b300 nvswitch, 1 cpu'");
    assert_null(strstr(running.out, "NVLS"));
    run(TUTTI_TOPO, "search --pattern ring --from '8 gpus v100 nvswitch, 1 cpu'");
    assert_null(strstr(running.out, "NVLS"));
    run(TUTTI_TOPO, "search --pattern tree --from '8 gpus b300 nvswitch, 1 cpu'");
    assert_null(strstr(running.out, "NVLS"));
}

static void hosts_of_a_line_are_no_domain_in_its_file_either(void **state)
{
    (void)state;
    run(TUTTI_TOPO,
        "export --from '2 hosts: 2 gpus h100 nvswitch, 2 nics 400G, 1 cpu' --xml l.xml");
    run(TUTTI_TOPO, "search --from l.xml --pattern ring");
    assert_null(strstr(running.out, "all hosts together"));
    assert_null(strstr(running.out, "note: "));
    running_says("to nets");
}

static void a_link_that_two_gpus_describe_differently_is_told(void **state)
{
    static const char note[] = "note: gpu 0 lists 12 links to gpu 1 (240 GB/s), which lists 1 back "
                               "(20 GB/s); the lower is used, and a link may be degraded\n";

    (void)state;
    run(TUTTI_TOPO, "--from degraded.xml");
    running_says("1 NVLink to gpu 1: 20 GB/s");
    running_says(note);
    run(TUTTI_TOPO, "search --from degraded.xml");
    running_says(note);
    run(TUTTI_TOPO, "explain --from degraded.xml");
    running_says(note);
    run(TUTTI_TOPO, "machine --from degraded.xml");
    assert_non_null(strstr(running.err, note));
    assert_null(strstr(running.out, "note"));
}

static void a_rate_that_cannot_be_is_told(void **state)
{
    (void)state;
    run(TUTTI_TOPO, "--from unit.xml");
    running_says("note: net 0 (eth0) is said to carry 25 TB/s, more than the 400 GB/s of any port; "
                 "correct speed (Mbit/s), or give <net> measured=\"BYTES_PER_S\"\n");
    running_write("measured.xml",
                  "<system version=\"1\"><cpu numaid=\"0\"><nic><net name=\"eth0\" "
                  "dev=\"0\" speed=\"200000000\" measured=\"25e9\"/></nic></cpu></system>");
    run(TUTTI_TOPO, "--from measured.xml");
    running_says("25 GB/s");
    assert_null(strstr(running.out, "note: "));
}

static void ranks_on_one_gpu_are_shown_on_their_device(void **state)
{
    static const char note[] =
        "note: 1 gpu is on the device of another gpu, as a rank or a partition "
        "of it; the gpus of a device share its links\n";

    (void)state;
    running_write("ranks.xml",
                  "<system version=\"1\"><cpu numaid=\"0\">" GPU("1", "0", "fffffff:ff:ff.0")
                      GPU("1", "0", "fffffff:ff:ff.0")
                          GPU("2", "1", "fffffff:ff:ff.0") "</cpu></system>");
    run(TUTTI_TOPO, "--from ranks.xml");
    running_says("18 NVLinks to nvswitch: 722 GB/s\n    gpu 0");
    running_says("same device");
    running_says("ranks.xml: 1 host, 1 cpu, 3 gpus, 1 nvswitch\n");
    running_says(note);
    run(TUTTI_TOPO, "matrix --from ranks.xml");
    running_says("GPU1  NVL   X     NV18");
    run(TUTTI_TOPO, "search --from ranks.xml --pattern ring");
    running_says("ring of 3 gpus: 1 channel of 722 GB/s");
    run(TUTTI_TOPO, "draw --from ranks.xml --svg ranks.svg --dot ranks.dot");
    assert_true(running_is_svg("ranks.svg"));
    assert_non_null(strstr(running.err, note));
}

static void write_modules(const char *name, const char *model, const char *nvlink, bool has_two)
{
    char text[2048];

    snprintf(text, sizeof text,
             "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\">"
             "<gpu dev=\"0\" sm=\"70\" model=\"%s\">%s</gpu></pci>%s</cpu></system>",
             model, nvlink,
             has_two ? "<pci busid=\"0000:02:00.0\"><gpu dev=\"1\" sm=\"70\"/></pci>" : "");
    running_write(name, text);
    run(TUTTI_TOPO, has_two ? "--from modules.xml" : "--from module.xml");
}

static void sxm_gpus_without_nvlinks_are_doubted(void **state)
{
    static const char note[] = "note: SXM gpus without NVLinks: 1,";

    (void)state;
    write_modules("modules.xml", "Tesla V100-SXM2-16GB", "", true);
    running_says(note);
    running_says("add <nvlink target=\"BUSID\" count=\"LINKS\"/> to each <gpu>");
    /* The cure that the note gives works. */
    write_modules("modules.xml", "Tesla V100-SXM2-16GB",
                  "<nvlink target=\"0000:02:00.0\" count=\"2\"/>", true);
    assert_null(strstr(running.out, "SXM gpus"));
    write_modules("modules.xml", "Tesla V100-PCIE-16GB", "", true);
    assert_null(strstr(running.out, "SXM gpus"));
    /* A gpu alone in its host has no other gpu to link to. */
    write_modules("module.xml", "Tesla V100-SXM2-16GB", "", false);
    assert_null(strstr(running.out, "SXM gpus"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_one_domain_are_searched_by_nvlinks),
        cmocka_unit_test(a_machine_of_a_domain_has_its_nvlinks),
        cmocka_unit_test(a_domain_and_another_host_are_searched_one_by_one),
        cmocka_unit_test(reductions_in_nvswitches_are_told),
        cmocka_unit_test(hosts_of_a_line_are_no_domain_in_its_file_either),
        cmocka_unit_test(a_link_that_two_gpus_describe_differently_is_told),
        cmocka_unit_test(a_rate_that_cannot_be_is_told),
        cmocka_unit_test(ranks_on_one_gpu_are_shown_on_their_device),
        cmocka_unit_test(sxm_gpus_without_nvlinks_are_doubted),
    };

    return cmocka_run_group_tests(tests, write_machines, running_end);
}
