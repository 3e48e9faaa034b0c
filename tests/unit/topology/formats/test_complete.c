/* SPDX-License-Identifier: Apache-2.0
 * Tests the values that are filled in if a file leaves them to the driver, and the values that are
 * left alone. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_inventory *complete(const char *text)
{
    struct tutti_inventory *inventory;

    assert_int_equal(tutti_xml_read_nccl("t", text, strlen(text), TUTTI_SOURCE_FILE, &inventory),
                     TUTTI_OK);
    assert_int_equal(tutti_inventory_complete(inventory), TUTTI_OK);
    return inventory;
}

/* Kinds of a tree with the numbers of gpus and nets, such as "cpu pci gpu0 cpu nic net0". */
static const char *describe(const struct tutti_inventory *inventory)
{
    static char text[1024];
    uint32_t device = 0;

    text[0] = '\0';
    while ((device = tutti_inventory_next(inventory, device)) != TUTTI_NO_DEVICE) {
        sprintf(text + strlen(text), "%s%s", text[0] == '\0' ? "" : " ",
                tutti_device_kind_name(inventory->devices[device].kind));
        if ((tutti_property_info(TUTTI_PROPERTY_DEV)->kinds &
             (1u << inventory->devices[device].kind)) != 0)
            sprintf(text + strlen(text), "%lld",
                    (long long)tutti_device_number(inventory, device, TUTTI_PROPERTY_DEV, -1));
    }
    return text;
}

#define HOST(hash, inside) "<cpu host_hash=\"" hash "\">" inside "</cpu>"
#define CPU(inside) "<cpu>" inside "</cpu>"
#define OF_CLASS(class) "<pci class=\"" class "\"/>"
#define BUS(busid) "<pci busid=\"" busid "\"/>"

static void devices_are_named_as_far_as_the_file_shows(void **state)
{
    static const struct {
        const char *text, *described;
    } cases[] = {
        {"", ""},
        /* By class: NVIDIA's and AMD's GPUs, Ethernet and InfiniBand; not bridges and disks. */
        {CPU(OF_CLASS("0x030000") OF_CLASS("0x030200") OF_CLASS("0x038000") OF_CLASS("0x120000")
                 OF_CLASS("0x020000") OF_CLASS("0x020700") OF_CLASS("0x060400")
                     OF_CLASS("0x010802")),
         "cpu pci gpu0 pci gpu1 pci gpu2 pci gpu3 pci nic net0 pci nic net1 pci pci"},
        {CPU("<pci class=\"0x060400\">" OF_CLASS("0x030200") "</pci>" OF_CLASS("0x020000")),
         "cpu pci pci gpu0 pci nic net0"},
        /* After those that are there, wherever they stand. */
        {CPU(OF_CLASS("0x030200") "<pci class=\"0x030200\"><gpu dev=\"4\"/></pci>"
                 "<nic><net dev=\"1\"/></nic>" OF_CLASS("0x020000")),
         "cpu pci gpu5 pci gpu4 nic net1 pci nic net2"},
        /* A device with other devices below it is known already. */
        {CPU("<pci class=\"0x020000\"><nic/></pci><pci class=\"0x030200\"><pci/></pci>"),
         "cpu pci nic pci pci"},
        /* A management controller's VGA is no GPU; the same maker's accelerator would be. */
        {CPU("<pci class=\"0x030000\" vendor=\"0x1a03\"/>"
             "<pci class=\"0x120000\" vendor=\"0x1a03\"/>"
             "<pci class=\"0x030000\" vendor=\"0x10de\"/>"),
         "cpu pci pci gpu0 pci gpu1"},
        /* Each host numbers its own. */
        {HOST("0x1", OF_CLASS("0x030200") OF_CLASS("0x030200")) HOST("0x2", OF_CLASS("0x030200"))
             HOST("0x1", OF_CLASS("0x030200")),
         "cpu pci gpu0 pci gpu1 cpu pci gpu0 cpu pci gpu2"},
        /* Numbers that no driver gives do not count. */
        {CPU("<pci><gpu dev=\"9223372036854775807\"/></pci>" OF_CLASS("0x030200")),
         "cpu pci gpu9223372036854775807 pci gpu0"},
        /* By order alone. */
        {CPU(BUS("0000:00:16.0") BUS("0000:00:17.0"))
             CPU(BUS("0000:00:18.0") BUS("0000:00:15.0")),
         "cpu pci gpu0 pci gpu1 cpu pci gpu2 pci nic net0"},
        {CPU(BUS("0000:0a:00.0") BUS("0000:0b:00.0") BUS("0000:20:00.0")),
         "cpu pci gpu0 pci gpu1 pci nic net0"},
        /* No order breaks, or most do; it cannot be decided. */
        {CPU(BUS("0000:00:16.0") BUS("0000:00:17.0")), "cpu pci pci"},
        {CPU(BUS("0000:01:00.0") BUS("0000:21:00.0") BUS("0000:41:00.0")), "cpu pci pci pci"},
        {CPU(BUS("0000:00:16.0")), "cpu pci"},
        /* One that says what it is makes the others say that they are nothing of ours. */
        {CPU(BUS("0000:00:16.0") BUS("0000:00:17.0") OF_CLASS("0x020000")),
         "cpu pci pci pci nic net0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct tutti_inventory *inventory;

        snprintf(text, sizeof text, "<system version=\"1\">%s</system>", cases[i].text);
        inventory = complete(text);
        assert_string_equal(describe(inventory), cases[i].described);
        tutti_inventory_destroy(inventory);
    }
}

static void nets_listed_below_several_cpus_stay_below_the_first(void **state)
{
    static const char eth[] = "<nic><net name=\"eth0\" dev=\"0\" guid=\"0x0\"/></nic>";
    static const struct {
        const char *first, *second, *described;
    } cases[] = {
        {eth, eth, "cpu nic net0 cpu"},
        /* Another name, number or guid is another net. */
        {eth, "<nic><net name=\"eth1\" dev=\"0\" guid=\"0x0\"/></nic>",
         "cpu nic net0 cpu nic net0"},
        {eth, "<nic><net name=\"eth0\" dev=\"1\" guid=\"0x0\"/></nic>",
         "cpu nic net0 cpu nic net1"},
        {eth, "<nic><net name=\"eth0\" dev=\"0\" guid=\"0x1\"/></nic>",
         "cpu nic net0 cpu nic net0"},
        {eth, "<nic><net name=\"eth0\" dev=\"0\"/></nic>", "cpu nic net0 cpu nic net0"},
        /* Of several in a nic, those that are new stay. */
        {eth,
         "<nic><net name=\"eth0\" dev=\"0\" guid=\"0x0\"/><net name=\"eth1\" dev=\"1\"/></nic>",
         "cpu nic net0 cpu nic net1"},
        {"<nic><net name=\"a\" dev=\"0\"/><net name=\"b\" dev=\"1\"/></nic>",
         "<nic><net name=\"b\" dev=\"1\"/><net name=\"a\" dev=\"0\"/></nic>",
         "cpu nic net0 net1 cpu"},
        /* Nets without anything to tell them apart may be different ones, and so may ports. */
        {"<nic><net/></nic>", "<nic><net/></nic>", "cpu nic net-1 cpu nic net-1"},
        {"<nic><net name=\"m\" port=\"1\"/></nic>", "<nic><net name=\"m\" port=\"2\"/></nic>",
         "cpu nic net-1 cpu nic net-1"},
        /* On a bus a device has its place. */
        {"<pci><nic><net name=\"eth0\" dev=\"0\" guid=\"0x0\"/></nic></pci>", eth,
         "cpu pci nic net0 cpu nic net0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct tutti_inventory *inventory;

        snprintf(text, sizeof text, "<system><cpu>%s</cpu><cpu>%s</cpu></system>", cases[i].first,
                 cases[i].second);
        inventory = complete(text);
        assert_string_equal(describe(inventory), cases[i].described);
        tutti_inventory_destroy(inventory);
    }
}

static void every_host_keeps_its_own_net(void **state)
{
    struct tutti_inventory *inventory =
        complete("<system>" HOST("0x1", "<nic><net name=\"e\"/></nic>") HOST(
            "0x2", "<nic><net name=\"e\"/></nic>") HOST("0x1", "<nic><net name=\"e\"/></nic>")
                 "</system>");

    (void)state;
    assert_string_equal(describe(inventory), "cpu nic net-1 cpu nic net-1 cpu");
    tutti_inventory_destroy(inventory);
}

static void what_is_filled_in_is_assumed_and_no_more_than_needed(void **state)
{
    struct tutti_inventory *inventory = complete(
        "<system>" CPU(OF_CLASS("0x030200") OF_CLASS("0x020000")) "</system>");
    uint32_t gpu = tutti_inventory_next_of(inventory, 0, TUTTI_DEVICE_GPU);
    uint32_t net = tutti_inventory_next_of(inventory, 0, TUTTI_DEVICE_NET);
    struct tutti_inventory *again;

    (void)state;
    assert_int_equal(inventory->devices[gpu].found_by, TUTTI_SOURCE_ASSUMED);
    assert_int_equal(inventory->devices[net].found_by, TUTTI_SOURCE_ASSUMED);
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
        assert_int_equal(tutti_device_has(inventory, gpu, property),
                         property == TUTTI_PROPERTY_DEV);
        assert_int_equal(tutti_device_has(inventory, net, property),
                         property == TUTTI_PROPERTY_DEV);
    }
    /* Once more changes nothing. */
    assert_int_equal(tutti_inventory_copy(inventory, &again), TUTTI_OK);
    assert_int_equal(tutti_inventory_complete(again), TUTTI_OK);
    assert_true(inventories_equal(inventory, again));
    tutti_inventory_destroy(inventory);
    tutti_inventory_destroy(again);
}

#define TRAY(hash, gpu) \
    "<cpu host_hash=\"" hash "\" numaid=\"0\"><pci busid=\"0008:06:00.0\">" gpu "</pci></cpu>"
#define SWITCHED(gpu, target, class) \
    "<gpu " gpu "><nvlink target=\"" target "\" count=\"18\" tclass=\"" class "\"/></gpu>"
#define HIDDEN(gpu) SWITCHED(gpu, "fffffff:ff:ff.0", "0x068000")

/* Writes the fabric of each gpu, such as "1 1", or "-" for none. */
static const char *fabrics_of(const struct tutti_inventory *inventory)
{
    static char text[256];
    uint32_t gpu = TUTTI_NO_DEVICE;

    text[0] = '\0';
    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        strcat(text, text[0] == '\0' ? "" : " ");
        if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_FABRIC))
            tutti_device_write(inventory, gpu, TUTTI_PROPERTY_FABRIC, text + strlen(text), 32);
        else
            strcat(text, "-");
    }
    return text;
}

static void hosts_behind_hidden_nvswitches_are_one_domain(void **state)
{
    static const struct {
        const char *text, *fabrics, *remarks;
    } cases[] = {
        {TRAY("0x1", HIDDEN("")) TRAY("0x2", HIDDEN("")), "0x1 0x1",
         "the hosts are taken for one NVLink domain"},
        /* A gpu without these links is not in it. */
        {TRAY("0x1", HIDDEN("")) TRAY("0x2", "<gpu/>") TRAY("0x3", HIDDEN("")), "0x1 - 0x1",
         "the hosts are taken for one NVLink domain"},
        /* The domains that the file gives are kept: two, or none. */
        {TRAY("0x1", HIDDEN("fabric=\"5\"")) TRAY("0x2", HIDDEN("fabric=\"6\"")), "0x5 0x6", NULL},
        {TRAY("0x1", HIDDEN("fabric=\"0\"")) TRAY("0x2", HIDDEN("")), "0x0 -", NULL},
        /* One host, switches with addresses, links to CPUs. */
        {TRAY("0x1", HIDDEN("") "<gpu/>"), "- -", "1 gpu is on the device of another gpu"},
        {TRAY("0x1", HIDDEN("")) TRAY("0x2", "<gpu/>"), "- -", NULL},
        {TRAY("0x1", SWITCHED("", "0000:05:00.0", "0x068000"))
             TRAY("0x2", SWITCHED("", "0000:05:00.0", "0x068000")), "- -", NULL},
        {TRAY("0x1", SWITCHED("", "fffffff:ff:ff.0", "0x068001"))
             TRAY("0x2", SWITCHED("", "fffffff:ff:ff.0", "0x068001")), "- -", NULL},
        /* A text in place of the hashes does not make one host of two. */
        {TRAY("0xREDACTED", HIDDEN("")) TRAY("0xREDACTED", HIDDEN("")), "0x1 0x1",
         "a host_hash is taken for 2 hosts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory;
        char text[2048];

        snprintf(text, sizeof text, "<system version=\"1\">%s</system>", cases[i].text);
        inventory = complete(text);
        assert_string_equal(fabrics_of(inventory), cases[i].fabrics);
        if (cases[i].remarks == NULL)
            assert_null(inventory->remarks);
        else if (inventory->remarks == NULL ||
                 strncmp(inventory->remarks, cases[i].remarks, strlen(cases[i].remarks)) != 0)
            fail_msg("case %zu said: %s", i, inventory->remarks);
        tutti_inventory_destroy(inventory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_named_as_far_as_the_file_shows),
        cmocka_unit_test(nets_listed_below_several_cpus_stay_below_the_first),
        cmocka_unit_test(every_host_keeps_its_own_net),
        cmocka_unit_test(what_is_filled_in_is_assumed_and_no_more_than_needed),
        cmocka_unit_test(hosts_behind_hidden_nvswitches_are_one_domain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
