/* SPDX-License-Identifier: Apache-2.0
 * Reads hwloc's XML in its three forms, and refuses wrong files with their position. */
#include "base/result.h"
#include "topology/formats/hwloc_xml.h"
#include "topology/inventory/cpu_mask.h"
#include "topology/inventory/pci_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BRIDGE(busid, speed)                                                                    \
    "<object type='Bridge' bridge_type='1-1' pci_busid='" busid "' pci_link_speed='" speed      \
    "' pci_type='0604 [10b5:8796] [10b5:8796] ab'>"
#define PCI(busid, type, speed)                                                                 \
    "<object type='PCIDev' pci_busid='" busid "' pci_type='" type " [0001:0002] 00'"            \
    " pci_link_speed='" speed "'>"
#define HOST "<object type='Bridge' bridge_type='0-1'>"
#define END "</object>"

static struct tutti_inventory *read_xml(const char *text)
{
    struct tutti_inventory *inventory = NULL;

    if (tutti_hwloc_xml_read("x", text, strlen(text), TUTTI_SOURCE_HWLOC, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return inventory;
}

/* The tree in a line, such as "cpu0(pci1(gpu),pci2)": kinds with what matters here. */
static void describe(const struct tutti_inventory *inventory, uint32_t device, char *text)
{
    uint32_t child = inventory->devices[device].first_child;

    text += strlen(text);
    text += sprintf(text, "%s", tutti_device_kind_name(inventory->devices[device].kind));
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
        static const char *const shown[] = {"numaid", "package", "affinity", "caches", "busid",
                                            "link_speed", "link_width", "dev", "sm", "uuid",
                                            "target", "count", "tclass", "name", "port", "guid",
                                            "layer"};
        const char *name = tutti_property_info(property)->name;

        if (!tutti_device_has(inventory, device, property))
            continue;
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
            if (strcmp(shown[i], name) == 0) {
                text += sprintf(text, " ");
                text += tutti_device_write(inventory, device, property, text, 200);
            }
    }
    if (inventory->devices[device].found_by == TUTTI_SOURCE_ASSUMED)
        text += sprintf(text, "?");
    for (uint32_t i = child; i != TUTTI_NO_DEVICE; i = inventory->devices[i].next) {
        text += sprintf(text, i == child ? "(" : ", ");
        describe(inventory, i, text);
        text += strlen(text);
    }
    if (child != TUTTI_NO_DEVICE)
        sprintf(text, ")");
}

static void expect_tree(const char *xml, const char *tree)
{
    struct tutti_inventory *inventory = read_xml(xml);
    char text[4096] = "";

    describe(inventory, 0, text);
    assert_string_equal(text, tree);
    tutti_inventory_destroy(inventory);
}

static void form_1_has_sockets_within_nodes_or_nodes_within_sockets(void **state)
{
    (void)state;
    expect_tree("<topology><object type='Machine' os_index='0' cpuset='0xf'>"
                "<object type='NUMANode' os_index='4' cpuset='0x3'>"
                "<object type='Socket' os_index='7' cpuset='0x3'>"
                "<object type='Cache' depth='2' cache_type='0' cpuset='0x1'/>"
                "<object type='Cache' depth='2' cache_type='0' cpuset='0x2'/>" END END
                "<object type='Socket' os_index='9' cpuset='0xc'>"
                "<object type='NUMANode' os_index='5' cpuset='0xc'>" HOST
                PCI("0000:01:00.0", "0200 [8086:1521]", "0")
                "<object type='OSDev' osdev_type='2' name='eth0'>"
                "<info name='Address' value='00:25:90:95:71:12'/>" END END END END END END
                "</topology>",
                "system(cpu 4 7 00000003 00000001;00000002, "
                "cpu 5 9 0000000c(pci 0000:01:00.0(nic(net eth0 1 ethernet))))");
}

static void machines_without_nodes_have_a_cpu_per_package_or_one(void **state)
{
    (void)state;
    expect_tree("<topology><object type='Machine' cpuset='0x3'>"
                "<object type='Socket' os_index='0' cpuset='0x1'/>"
                "<object type='Socket' os_index='1' cpuset='0x2'/>" END "</topology>",
                "system(cpu 0 0 00000001, cpu 1 1 00000002)");
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0x3'>" END "</topology>",
                "system(cpu 0 00000003)");
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0xf...f'>" END
                "</topology>", "system(cpu 0)");
}

static void memory_of_its_own_kind_is_no_cpu_unless_devices_are_near_it(void **state)
{
    (void)state;
    /* High-bandwidth memory with the CPUs of its package, memory of a GPU with none. */
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0xf'>"
                "<object type='Package' os_index='0' cpuset='0xf'>"
                "<object type='NUMANode' os_index='2' cpuset='0xf'/>"
                "<object type='NUMANode' os_index='3' cpuset='0x0'/>"
                "<object type='Group' cpuset='0x3'>"
                "<object type='NUMANode' os_index='0' cpuset='0x3'/>" END
                "<object type='Group' cpuset='0xc'>"
                "<object type='NUMANode' os_index='1' cpuset='0xc'/>" END END END "</topology>",
                "system(cpu 0 0 00000003, cpu 1 0 0000000c)");
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0x3'>"
                "<object type='Package' os_index='0' cpuset='0x3'>"
                "<object type='NUMANode' os_index='0' cpuset='0x3'/>"
                "<object type='Group' cpuset='0x0'>"
                "<object type='NUMANode' os_index='1' cpuset='0x0'/>"
                HOST PCI("0000:01:00.0", "0302 [10de:2335]", "0") END END END END END
                "</topology>",
                "system(cpu 0 0 00000003, cpu 1 0(pci 0000:01:00.0(gpu 90)))");
}

static void devices_of_several_nodes_are_assumed_at_the_first(void **state)
{
    (void)state;
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0x3'>"
                "<object type='NUMANode' os_index='0' cpuset='0x1'/>"
                "<object type='NUMANode' os_index='1' cpuset='0x2'/>"
                HOST BRIDGE("0000:00:01.0", "0") BRIDGE("0000:01:00.0", "0")
                BRIDGE("0000:02:00.0", "0") PCI("0000:03:00.0", "0302 [1002:740c]", "0")
                END END END END END
                "<object type='OSDev' osdev_type='2' name='hv0'/>"
                "<object type='OSDev' osdev_type='2' name='docker0'/>"
                END "</topology>",
                "system(cpu 0 00000001(pci 0000:01:00.0?(pci 0000:03:00.0(gpu)), "
                "nic(net hv0 1)), cpu 1 00000002)");
}

static void a_switch_is_its_upstream_port_and_both_ends_make_a_link(void **state)
{
    (void)state;
    expect_tree("<topology version='2.0'><object type='Machine' cpuset='0x1'>" HOST
                BRIDGE("0000:00:01.0", "15.753846") BRIDGE("0000:01:00.0", "15.753846")
                BRIDGE("0000:02:00.0", "1.969231")
                PCI("0000:03:00.0", "0302 [10de:1db1]", "15.753846") END END
                BRIDGE("0000:02:01.0", "2.0")
                PCI("0000:04:00.0", "0302 [10de:1db1]", "15.753846") END END
                BRIDGE("0000:02:02.0", "0") PCI("0000:05:00.0", "0108 [10de:1db1]", "1") END END
                END END END END "</topology>",
                "system(cpu 0 00000001(pci 0000:01:00.0 8.0 GT/s PCIe 16("
                "pci 0000:03:00.0 8.0 GT/s PCIe 2(gpu 70), "
                "pci 0000:04:00.0 8.0 GT/s PCIe 8(gpu 70))))");
}

static void form_3_has_bits_for_what_a_device_is_and_infos_of_the_whole(void **state)
{
    (void)state;
    expect_tree("<topology version='3.0'><info name='Architecture' value='x86_64'/>"
                "<object type='Machine' cpuset='0x1'>" HOST
                PCI("0000:03:00.0", "0280 [15b3:1013]", "0")
                "<object type='OSDev' osdev_type='16' name='ib0'>"
                "<info name='Address' value='80:00:00:26:fe:80:00:00:00:00:00:00:24:8a:07:03:00:"
                "1e:39:fe'/>" END
                "<object type='OSDev' osdev_type='48' name='mlx4_0'>"
                "<info name='SysImageGUID' value='0000:0000:0000:0000'/>"
                "<info name='NodeGUID' value='248a:0703:001e:39fe'/>"
                "<info name='Port1State' value='1'/><info name='Port2State' value='4'/>" END
                END PCI("0000:04:00.0", "0300 [1a03:2000]", "0")
                "<object type='OSDev' osdev_type='4' name='card0'/>" END
                PCI("0000:05:00.0", "0300 [10de:1eb8]", "0")
                "<object type='OSDev' osdev_type='12' name='opencl0d5'/>"
                "<object type='OSDev' osdev_type='12' name='nvml3'>"
                "<info name='NVIDIAUUID' value='GPU-1'/>" END END
                END END "</topology>",
                "system(cpu 0 00000001(pci 0000:03:00.0(nic("
                "net mlx4_0 2 0x248a0703001e39fe infiniband)), "
                "pci 0000:05:00.0(gpu 3 75 GPU-1)))");
}

static void partitions_of_a_gpu_are_gpus_of_one_device(void **state)
{
    (void)state;
    expect_tree("<topology version='3.0'><object type='Machine' cpuset='0x1'>" HOST
                PCI("0000:05:00.0", "1200 [1002:74a0]", "0")
                "<object type='OSDev' osdev_type='12' name='rsmi4'>"
                "<info name='AMDUUID' value='a'/>" END
                "<object type='OSDev' osdev_type='12' name='rsmi5'>"
                "<info name='AMDUUID' value='b'/>" END
                "<object type='OSDev' osdev_type='12' name='opencl0d2'/>" END
                PCI("0000:06:00.0", "1200 [1002:74a0]", "0")
                "<object type='OSDev' osdev_type='12' name='rsmi6'/>"
                "<object type='OSDev' osdev_type='12' name='opencl0d3'/>" END
                END END "</topology>",
                "system(cpu 0 00000001(pci 0000:05:00.0(gpu 4 a, gpu 5 b), "
                "pci 0000:06:00.0(gpu 6)))");
}

static void matrices_become_links(void **state)
{
    static const char *const ends =
        PCI("0000:03:00.0", "0302 [10de:1db8]", "0")
        "<object type='OSDev' gp_index='10' osdev_type='1' name='nvml0'/>" END
        PCI("0000:04:00.0", "0302 [10de:1db8]", "0")
        "<object type='OSDev' gp_index='11' osdev_type='1' name='nvml1'/>" END
        "<object type='PCIDev' gp_index='12' pci_busid='0000:05:00.0'"
        " pci_type='0680 [10de:1ac2] [0000:0000] a1'/>";
    static const struct {
        const char *matrix, *first, *second;
    } cases[] = {
        {"<distances2hetero nbobjs='3' name='NVLinkBandwidth'><indexes>OSDev:10 OSDev:11 "
         "</indexes><indexes length='1'>PCIDev:12</indexes>"
         "<u64values length='4'>1000000 50000 25000 50000 </u64values>"
         "<u64values length='5'>1000000 0 25000 0 0</u64values></distances2hetero>",
         "(nvlink 0000:04:00.0 2 0x030200, nvlink 0000:05:00.0 1 0x068000)",
         "(nvlink 0000:03:00.0 2 0x030200)"},
        {"<distances2 nbobjs='2' name='XGMIBandwidth' indexing='gp'><indexes>10 11</indexes>"
         "<u64values>1000000 100000 100000 1000000</u64values></distances2>",
         "(nvlink 0000:04:00.0 1 0x030200)", "(nvlink 0000:03:00.0 1 0x030200)"},
        {"<distances2 nbobjs='2' name='XGMIBandwidth'><indexes>10 11</indexes>"
         "<u64values>1000000 100000 100000 1000000</u64values></distances2>"
         "<distances2 nbobjs='2' name='XGMIHops'><indexes>10 11</indexes>"
         "<u64values>0 2 1 0</u64values></distances2>",
         "", "(nvlink 0000:03:00.0 1 0x030200)"},
        {"<distances2 nbobjs='2' name='NVLinkBandwidth'><indexes>10 77</indexes>"
         "<u64values>1 2 3 4</u64values></distances2>", "", ""},
        {"<distances2 nbobjs='2' name='NUMALatency'><indexes>0 1</indexes>"
         "<u64values>10 20 20 10</u64values></distances2>", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char xml[4096], tree[1024];

        snprintf(xml, sizeof xml, "<topology version='2.0'><object type='Machine' cpuset='0x1'>%s"
                 END "%s</topology>", ends, cases[i].matrix);
        snprintf(tree, sizeof tree, "system(cpu 0 00000001(pci 0000:03:00.0(gpu 0 70%s), "
                 "pci 0000:04:00.0(gpu 1 70%s)))", cases[i].first, cases[i].second);
        expect_tree(xml, tree);
    }
}

static void mistakes_are_found_where_they_are(void **state)
{
#define MACHINE "<topology>\n<object type='Machine'>\n "
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {"", "x:", ""},
        {"<system/>", "x:1:1: ", "begins with <topology>"},
        {"<topology version='4.0'/>", "x:1:1: ", "1, 2 and 3 are known"},
        {"<topology version='2'/>", "x:1:1: ", "1, 2 and 3 are known"},
        {"<topology/>", "x:1:", "no Machine"},
        {"<topology>\n  <object type='Core'/></topology>", "x:2:3: ", "is a \"Core\""},
        {"<topology><object type='Machine'/>\n<object type='Machine'/></topology>", "x:2:1: ",
         "in no other"},
        {"<topology><a><object type='Machine'/></a></topology>", "x:1:14: ", "in no other"},
        {MACHINE "<object/></object></topology>", "x:3:2: ", "without a type"},
        {MACHINE "<object type='NUMANode' cpuset='0xg'/></object></topology>", "x:3:2: ",
         "no mask of CPUs"},
        {MACHINE "<object type='NUMANode' os_index='-2'/></object></topology>", "x:3:2: ",
         "os_index=\"-2\" is no number"},
        {MACHINE "<object type='PU' gp_index='12345678901234567890'/></object></topology>",
         "x:3:2: ", "too large"},
        {MACHINE "<object type='PCIDev' pci_type='0302 [10de:1db8] [10de:131d] a1'/></object>",
         "x:3:2: ", "no PCI address"},
        {MACHINE "<object type='PCIDev' pci_busid='0:0:0.0' pci_type='03'/></object>", "x:3:2: ",
         "no class with ids"},
        {MACHINE "<object type='PCIDev' pci_busid='0:0:0.0' pci_type='0302 [10de:1db8] [10de:131d]'"
                 " pci_link_speed='fast'/></object>", "x:3:2: ", "no speed"},
        {MACHINE "<object type='OSDev' osdev_type='x'/></object>", "x:3:2: ", "osdev_type"},
        {MACHINE "<info name='a'/></object>", "x:3:2: ", "an info without"},
        {MACHINE "</object>\n<distances2 name='NVLinkBandwidth' nbobjs='1025'/></topology>",
         "x:4:1: ", "from 1 to 1024"},
        {MACHINE "</object>\n<distances2 name='NVLinkBandwidth' nbobjs='2'/></topology>", "x:4:",
         "0 indexes and 0 values in a matrix of 2"},
        {MACHINE "</object>\n<distances2 name='NVLinkBandwidth' nbobjs='1'>\n<indexes>1 2</indexes>"
                 "</distances2></topology>", "x:5:", "more than 1 numbers"},
        {MACHINE "</object>\n<distances2 name='NVLinkBandwidth' nbobjs='1'>\n<indexes>1;</indexes>"
                 "</distances2></topology>", "x:5:", "\"1;\" in a matrix is no number"},
        {MACHINE, "x:3:", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = NULL;
        int rc = tutti_hwloc_xml_read("x", cases[i].text, strlen(cases[i].text),
                                      TUTTI_SOURCE_FILE, &inventory);

        assert_int_equal(rc, TUTTI_ERR_ARGUMENT);
        assert_null(inventory);
        if (strncmp(tutti_message_last(), cases[i].where, strlen(cases[i].where)) != 0 ||
            strstr(tutti_message_last(), cases[i].what) == NULL)
            fail_msg("%s\n  says \"%s\"", cases[i].text, tutti_message_last());
    }
}

static void more_devices_than_are_believed_are_refused(void **state)
{
    static const char device[] = "<object type='OSDev' osdev_type='2' name='eth0'/>";
    size_t size = 10000 * sizeof device + 200, used;
    char *text = malloc(size);
    struct tutti_inventory *inventory = NULL;

    (void)state;
    assert_non_null(text);
    used = (size_t)sprintf(text, "<topology><object type='Machine'>");
    for (int i = 0; i < 10000; i++)
        used += (size_t)sprintf(text + used, "%s", device);
    used += (size_t)sprintf(text + used, "</object></topology>");
    assert_int_equal(tutti_hwloc_xml_read("x", text, used, TUTTI_SOURCE_FILE, &inventory),
                     TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "x: more than 16384 devices"));
    free(text);
}

static void masks_read_as_they_are_written(void **state)
{
    static const struct {
        const char *text, *list, *written;
        uint32_t count;
    } cases[] = {
        {"0x0", "", "00000000", 0},
        {"f", "0-3", "0000000f", 4},
        {"0x00000001,,0x80000000", "31,64\n", "00000001,00000000,80000000", 2},
        {",,,ff", "0,1,2-7", "000000ff", 8},
    };
    static const char *const none[] = {"", "x", "0x123456789", "1;2", "0xf...f"};
    static const char *const no_lists[] = {"x", "1-", "3-1", "8192", "1,,2", "1 2", "-1"};
    struct tutti_cpumask mask;
    char text[TUTTI_CPUMASK_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(tutti_cpumask_parse(cases[i].text, &mask));
        tutti_cpumask_write(&mask, text);
        assert_string_equal(text, cases[i].written);
        assert_int_equal(tutti_cpumask_count(&mask), cases[i].count);
        assert_true(tutti_cpumask_parse_list(cases[i].list, &mask));
        tutti_cpumask_write(&mask, text);
        assert_string_equal(text, cases[i].written);
    }
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(tutti_cpumask_parse(none[i], &mask));
    for (size_t i = 0; i < sizeof no_lists / sizeof no_lists[0]; i++)
        assert_false(tutti_cpumask_parse_list(no_lists[i], &mask));
}

static void rates_tell_generation_and_lanes(void **state)
{
    static const struct {
        double gbytes_per_s, gts;
        uint32_t lanes;
    } cases[] = {
        {0.25, 2.5, 1},      {4, 2.5, 16},        {8, 5, 16},          {7.876923, 8, 8},
        {15.753846, 8, 16},  {31.507692, 16, 16}, {31, 16, 16},        {15, 8, 16},
        {63.015396, 32, 16}, {121, 64, 16},       {0.615385, 0, 0},    {1000, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double gts = 0;
        uint32_t lanes = 0;

        assert_int_equal(tutti_pci_link_of_rate(cases[i].gbytes_per_s, &gts, &lanes),
                         cases[i].lanes != 0);
        assert_true(gts >= cases[i].gts && gts <= cases[i].gts);
        assert_int_equal(lanes, cases[i].lanes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form_1_has_sockets_within_nodes_or_nodes_within_sockets),
        cmocka_unit_test(machines_without_nodes_have_a_cpu_per_package_or_one),
        cmocka_unit_test(memory_of_its_own_kind_is_no_cpu_unless_devices_are_near_it),
        cmocka_unit_test(devices_of_several_nodes_are_assumed_at_the_first),
        cmocka_unit_test(a_switch_is_its_upstream_port_and_both_ends_make_a_link),
        cmocka_unit_test(form_3_has_bits_for_what_a_device_is_and_infos_of_the_whole),
        cmocka_unit_test(partitions_of_a_gpu_are_gpus_of_one_device),
        cmocka_unit_test(matrices_become_links),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(more_devices_than_are_believed_are_refused),
        cmocka_unit_test(masks_read_as_they_are_written),
        cmocka_unit_test(rates_tell_generation_and_lanes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
