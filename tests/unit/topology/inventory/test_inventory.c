/* SPDX-License-Identifier: Apache-2.0
 * Tests the tree of devices: adding, moving, removing, and the written form of values. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/inventory/inventory.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_inventory *make(void)
{
    struct tutti_inventory *inventory;

    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    return inventory;
}

static uint32_t add(struct tutti_inventory *inventory, uint32_t parent,
                    enum tutti_device_kind kind)
{
    uint32_t device;

    assert_int_equal(tutti_inventory_add(inventory, parent, kind, TUTTI_SOURCE_FILE, &device),
                     TUTTI_OK);
    return device;
}

/* The tree as words, such as "system cpu pci gpu". */
static const char *kinds(const struct tutti_inventory *inventory)
{
    static char text[512];
    uint32_t device = TUTTI_NO_DEVICE;

    text[0] = '\0';
    while ((device = tutti_inventory_next(inventory, device)) != TUTTI_NO_DEVICE)
        sprintf(text + strlen(text), "%s%s", text[0] == '\0' ? "" : " ",
                tutti_device_kind_name(inventory->devices[device].kind));
    return text;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void devices_follow_in_the_order_of_the_tree(void **state)
{
    struct tutti_inventory *inventory = make();
    uint32_t cpu = add(inventory, 0, TUTTI_DEVICE_CPU), other = add(inventory, 0, TUTTI_DEVICE_CPU);
    uint32_t pci = add(inventory, cpu, TUTTI_DEVICE_PCI), gpu, net;

    (void)state;
    net = add(inventory, add(inventory, other, TUTTI_DEVICE_NIC), TUTTI_DEVICE_NET);
    gpu = add(inventory, pci, TUTTI_DEVICE_GPU);
    assert_string_equal(kinds(inventory), "system cpu pci gpu cpu nic net");
    assert_int_equal(tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_CPU), cpu);
    assert_int_equal(tutti_inventory_next_of(inventory, cpu, TUTTI_DEVICE_CPU), other);
    assert_int_equal(tutti_inventory_next_of(inventory, other, TUTTI_DEVICE_CPU), TUTTI_NO_DEVICE);
    assert_int_equal(tutti_inventory_above(inventory, gpu, TUTTI_DEVICE_CPU), cpu);
    assert_int_equal(tutti_inventory_above(inventory, net, TUTTI_DEVICE_NET), net);
    assert_int_equal(tutti_inventory_above(inventory, net, TUTTI_DEVICE_PCI), TUTTI_NO_DEVICE);
    tutti_inventory_destroy(inventory);
    tutti_inventory_destroy(NULL);
}

static void every_kind_goes_below_its_own_alone(void **state)
{
    static const char *const below[TUTTI_DEVICE_COUNT] = {
        [TUTTI_DEVICE_SYSTEM] = "cpu", [TUTTI_DEVICE_CPU] = "pci nic",
        [TUTTI_DEVICE_PCI] = "pci pcilink gpu nic", [TUTTI_DEVICE_PCILINK] = "",
        [TUTTI_DEVICE_GPU] = "nvlink c2c", [TUTTI_DEVICE_NVLINK] = "", [TUTTI_DEVICE_C2C] = "",
        [TUTTI_DEVICE_NIC] = "net", [TUTTI_DEVICE_NET] = "",
    };

    (void)state;
    for (int parent = 0; parent < TUTTI_DEVICE_COUNT; parent++) {
        char fits[128] = "";

        for (int kind = 0; kind < TUTTI_DEVICE_COUNT; kind++)
            if (tutti_device_fits(parent, kind))
                sprintf(fits + strlen(fits), "%s%s", fits[0] == '\0' ? "" : " ",
                        tutti_device_kind_name(kind));
        assert_string_equal(fits, below[parent]);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    struct tutti_inventory *inventory = make();
    uint32_t cpu = add(inventory, 0, TUTTI_DEVICE_CPU), pci = add(inventory, cpu, TUTTI_DEVICE_PCI);
    uint32_t below = add(inventory, pci, TUTTI_DEVICE_PCI), device = 99;

    (void)state;
    assert_int_equal(tutti_inventory_add(inventory, cpu, TUTTI_DEVICE_GPU, TUTTI_SOURCE_FILE,
                                         &device), TUTTI_ERR_ARGUMENT);
    assert_string_equal(tutti_message_last(), "a gpu does not go below a cpu");
    assert_int_equal(device, 99);
    assert_int_equal(tutti_inventory_move(inventory, pci, below), TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_inventory_move(inventory, pci, pci), TUTTI_ERR_ARGUMENT);
    assert_int_equal(tutti_inventory_move(inventory, pci, 0), TUTTI_ERR_ARGUMENT);
    assert_string_equal(kinds(inventory), "system cpu pci pci");
    tutti_inventory_destroy(inventory);
}

static void a_machine_that_nobody_built_is_refused(void **state)
{
    struct tutti_inventory *inventory = make();
    uint32_t device;

    (void)state;
    for (uint32_t i = 1; i < TUTTI_INVENTORY_DEVICES; i++)
        add(inventory, 0, TUTTI_DEVICE_CPU);
    assert_int_equal(tutti_inventory_add(inventory, 0, TUTTI_DEVICE_CPU, TUTTI_SOURCE_FILE,
                                         &device), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "more than 16384 devices"));
    tutti_inventory_destroy(inventory);
}

static void moving_takes_along_what_is_below(void **state)
{
    struct tutti_inventory *inventory = make();
    uint32_t left = add(inventory, 0, TUTTI_DEVICE_CPU);
    uint32_t right = add(inventory, 0, TUTTI_DEVICE_CPU);
    uint32_t first = add(inventory, left, TUTTI_DEVICE_PCI), middle, last;

    (void)state;
    middle = add(inventory, left, TUTTI_DEVICE_PCI);
    last = add(inventory, left, TUTTI_DEVICE_PCI);
    add(inventory, middle, TUTTI_DEVICE_GPU);
    assert_int_equal(tutti_inventory_move(inventory, middle, right), TUTTI_OK);
    assert_string_equal(kinds(inventory), "system cpu pci pci cpu pci gpu");
    assert_int_equal(tutti_inventory_move(inventory, last, right), TUTTI_OK);
    assert_int_equal(tutti_inventory_move(inventory, first, right), TUTTI_OK);
    assert_string_equal(kinds(inventory), "system cpu cpu pci gpu pci pci");
    assert_int_equal(inventory->devices[right].first_child, middle);
    assert_int_equal(inventory->devices[right].last_child, first);
    /* A last child that moves leaves a place that can be added to. */
    assert_int_equal(tutti_inventory_move(inventory, first, left), TUTTI_OK);
    add(inventory, right, TUTTI_DEVICE_NIC);
    assert_string_equal(kinds(inventory), "system cpu pci cpu pci gpu pci nic");
    tutti_inventory_destroy(inventory);
}

static void what_is_removed_is_gone_with_all_below_it(void **state)
{
    struct tutti_inventory *inventory = make(), *copy;
    uint32_t cpu = add(inventory, 0, TUTTI_DEVICE_CPU), pci = add(inventory, cpu, TUTTI_DEVICE_PCI);
    uint32_t gpu = add(inventory, pci, TUTTI_DEVICE_GPU), nic;

    (void)state;
    nic = add(inventory, cpu, TUTTI_DEVICE_NIC);
    assert_int_equal(tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_GCN, TUTTI_SOURCE_FILE,
                                           "gfx942"), TUTTI_OK);
    assert_int_equal(tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_BUSID,
                                             TUTTI_SOURCE_FILE, 7), TUTTI_OK);
    assert_int_equal(tutti_inventory_find_pci(inventory, 7), pci);
    tutti_inventory_remove(inventory, pci);
    assert_false(tutti_inventory_has(inventory, pci));
    assert_false(tutti_inventory_has(inventory, gpu));
    assert_true(tutti_inventory_has(inventory, nic));
    assert_true(tutti_inventory_has(inventory, 0));
    assert_int_equal(tutti_inventory_find_pci(inventory, 7), TUTTI_NO_DEVICE);
    assert_string_equal(kinds(inventory), "system cpu nic");
    assert_int_equal(tutti_inventory_copy(inventory, &copy), TUTTI_OK);
    assert_true(inventories_equal(inventory, copy));
    tutti_inventory_destroy(inventory);
    tutti_inventory_destroy(copy);
}

static void a_difference_anywhere_makes_inventories_unequal(void **state)
{
    struct tutti_inventory *a = make(), *b;
    uint32_t cpu = add(a, 0, TUTTI_DEVICE_CPU), pci = add(a, cpu, TUTTI_DEVICE_PCI), device;

    (void)state;
    assert_int_equal(tutti_device_set_parsed(a, cpu, TUTTI_PROPERTY_AFFINITY, TUTTI_SOURCE_FILE,
                                              "ff"), TUTTI_OK);
    assert_int_equal(tutti_inventory_copy(a, &b), TUTTI_OK);
    assert_true(inventories_equal(a, b));
    /* The source does not count. */
    assert_int_equal(tutti_device_set_parsed(b, cpu, TUTTI_PROPERTY_AFFINITY,
                                              TUTTI_SOURCE_MEASURED, "ff"), TUTTI_OK);
    assert_true(inventories_equal(a, b));
    assert_int_equal(tutti_device_set_parsed(b, cpu, TUTTI_PROPERTY_AFFINITY,
                                              TUTTI_SOURCE_MEASURED, "fe"), TUTTI_OK);
    assert_false(inventories_equal(a, b));
    tutti_inventory_destroy(b);

    assert_int_equal(tutti_inventory_copy(a, &b), TUTTI_OK);
    assert_int_equal(tutti_device_set_real(b, pci, TUTTI_PROPERTY_LINK_SPEED, TUTTI_SOURCE_FILE,
                                           16), TUTTI_OK);
    assert_false(inventories_equal(a, b));
    assert_false(inventories_equal(b, a));
    tutti_inventory_destroy(b);

    /* The same kinds in the same order, at another depth. */
    assert_int_equal(tutti_inventory_copy(a, &b), TUTTI_OK);
    device = add(a, pci, TUTTI_DEVICE_PCI);
    add(b, cpu, TUTTI_DEVICE_PCI);
    assert_false(inventories_equal(a, b));
    tutti_inventory_remove(a, device);
    assert_false(inventories_equal(a, b));
    tutti_inventory_destroy(a);
    tutti_inventory_destroy(b);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void the_better_source_wins_whoever_comes_first(void **state)
{
    struct tutti_inventory *inventory = make();
    uint32_t cpu = add(inventory, 0, TUTTI_DEVICE_CPU);

    (void)state;
    assert_int_equal(tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -7), -7);
    for (int first = 1; first < TUTTI_SOURCE_COUNT; first++)
        for (int second = 1; second < TUTTI_SOURCE_COUNT; second++) {
            uint32_t device = add(inventory, 0, TUTTI_DEVICE_CPU);
            int winner = second >= first ? second : first;

            tutti_device_set_number(inventory, device, TUTTI_PROPERTY_NUMA, first, first);
            tutti_device_set_number(inventory, device, TUTTI_PROPERTY_NUMA, second, second);
            tutti_device_set_text(inventory, device, TUTTI_PROPERTY_CPU_ARCH, first,
                                  tutti_source_name(first));
            tutti_device_set_text(inventory, device, TUTTI_PROPERTY_CPU_ARCH, second,
                                  tutti_source_name(second));
            assert_int_equal(tutti_device_number(inventory, device, TUTTI_PROPERTY_NUMA, -7),
                             winner);
            assert_string_equal(tutti_device_text(inventory, device, TUTTI_PROPERTY_CPU_ARCH),
                                tutti_source_name(winner));
            assert_int_equal(inventory->devices[device].value[TUTTI_PROPERTY_NUMA].found_by,
                             winner);
        }
    tutti_inventory_destroy(inventory);
}

static void properties_are_known_by_the_kind_of_their_device(void **state)
{
    (void)state;
    assert_int_equal(tutti_property_named(TUTTI_DEVICE_CPU, "vendor"), TUTTI_PROPERTY_CPU_VENDOR);
    assert_int_equal(tutti_property_named(TUTTI_DEVICE_PCI, "vendor"), TUTTI_PROPERTY_PCI_VENDOR);
    assert_int_equal(tutti_property_named(TUTTI_DEVICE_GPU, "arch"), TUTTI_PROPERTY_GPU_ARCH);
    assert_int_equal(tutti_property_named(TUTTI_DEVICE_GPU, "vendor"), TUTTI_PROPERTY_COUNT);
    assert_int_equal(tutti_device_kind_named("xgmi"), TUTTI_DEVICE_NVLINK);
    assert_int_equal(tutti_device_kind_named("GPU"), TUTTI_DEVICE_COUNT);
    for (int kind = 0; kind < TUTTI_DEVICE_COUNT; kind++) {
        assert_int_equal(tutti_device_kind_named(tutti_device_kind_name(kind)), kind);
        /* A name denotes one property of a kind. */
        for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++)
            if ((tutti_property_info(property)->kinds & (1u << kind)) != 0)
                assert_int_equal(tutti_property_named(kind, tutti_property_info(property)->name),
                                 property);
    }
}

/* "" for `written`: refused. */
static const struct {
    enum tutti_device_kind kind;
    enum tutti_property property;
    const char *text, *written;
} forms[] = {
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "400000", "400000"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "-1", "-1"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "0x10", "16"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "007", "7"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "9223372036854775807", "9223372036854775807"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "0x8000000000000000", "-9223372036854775808"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "9223372036854775808", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "0x10000000000000000", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "-", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "0x", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "-0x1", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, " 1", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "1 ", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "1.5", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "abc", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID, "0xFFFFffffFFFFffff", "0xffffffffffffffff"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID, "0", "0x0"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID, "0xREMOVED", "0x7b9aca347c1d3615"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID, "", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "0xHOST_A", "0x3cb615a68ac98bb9"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "0xHOST_B", "0x3cb616268ac98c93"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS, "0x30200", "0x030200"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_PCI_VENDOR, "0x10DE", "0x10de"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_PCI_VENDOR, "10de", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "1.5", "1.5"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "0.000000", "0"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "0.1", "0.1"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "1e300", "1e+300"},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "1e999", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "nan", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "0x1p3", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "1,5", ""},
    {TUTTI_DEVICE_NET, TUTTI_PROPERTY_LATENCY, "1.5.5", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "16.0 GT/s PCIe", "16.0 GT/s PCIe"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "16 GT/s", "16.0 GT/s PCIe"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "2.5GT/s", "2.5 GT/s PCIe"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "8", "8.0 GT/s PCIe"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "0.125 GT/s", "0.125 GT/s PCIe"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "16 parsecs", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "-5 GT/s", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "1e7 GT/s", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "ff", "000000ff"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "0xff", "000000ff"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "00000000,0,FFFF0000,1", "ffff0000,00000001"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "fff0000,ffffffff", "0fff0000,ffffffff"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "0,0", "00000000"},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "123456789", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "ff,", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, ",ff", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "ff,,ff", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "fg", ""},
    {TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0000:3B:00.0", "0000:3b:00.0"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "fffffff:ff:ff.0", "fffffff:ff:ff.0"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "ffffffff:00:1f.7", "ffffffff:00:1f.7"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0:3:0.0", "0000:03:00.0"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "00000000:3b:00.0", "0000:3b:00.0"},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "100000000:3b:00.0", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0000:100:00.0", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0000:3b:00", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0000:3b:00.0 ", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "3b:00.0", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "0000-3b-00.0", ""},
    {TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID, "", ""},
};

static uint32_t add_of_kind(struct tutti_inventory *inventory, enum tutti_device_kind kind)
{
    uint32_t cpu = add(inventory, 0, TUTTI_DEVICE_CPU);

    return kind == TUTTI_DEVICE_CPU   ? cpu
           : kind == TUTTI_DEVICE_PCI ? add(inventory, cpu, TUTTI_DEVICE_PCI)
                                      : add(inventory, add(inventory, cpu, TUTTI_DEVICE_NIC), kind);
}

static void written_forms_are_read_and_written_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tutti_inventory *inventory = make();
        uint32_t device = add_of_kind(inventory, forms[i].kind);
        bool is_good = forms[i].written[0] != '\0';
        char text[64], again[64];

        if (tutti_device_set_parsed(inventory, device, forms[i].property, TUTTI_SOURCE_FILE,
                                    forms[i].text) != (is_good ? TUTTI_OK : TUTTI_ERR_ARGUMENT))
            fail_msg("%s was %s", forms[i].text, is_good ? "refused" : "taken");
        assert_int_equal(tutti_device_has(inventory, device, forms[i].property), is_good);
        if (!is_good) {
            const char *name = tutti_property_info(forms[i].property)->name;

            assert_memory_equal(tutti_message_last(), name, strlen(name));
        } else {
            assert_int_equal(tutti_device_write(inventory, device, forms[i].property, text,
                                                sizeof text), strlen(forms[i].written));
            assert_string_equal(text, forms[i].written);
            assert_int_equal(tutti_device_set_parsed(inventory, device, forms[i].property,
                                                      TUTTI_SOURCE_FILE, text), TUTTI_OK);
            tutti_device_write(inventory, device, forms[i].property, again, sizeof again);
            assert_string_equal(text, again);
        }
        tutti_inventory_destroy(inventory);
    }
}

static void a_speed_that_says_nothing_is_zero(void **state)
{
    static const char *const texts[] = {"", "Unknown", "Unknown speed", "0", "0.0 GT/s"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_inventory *inventory = make();
        uint32_t pci = add_of_kind(inventory, TUTTI_DEVICE_PCI);
        char text[64];

        assert_int_equal(tutti_device_set_parsed(inventory, pci, TUTTI_PROPERTY_LINK_SPEED,
                                                  TUTTI_SOURCE_FILE, texts[i]), TUTTI_OK);
        assert_true(tutti_device_has(inventory, pci, TUTTI_PROPERTY_LINK_SPEED));
        assert_true(tutti_device_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, 5) < 1e-9);
        assert_int_equal(tutti_device_write(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, text,
                                            sizeof text), 0);
        assert_string_equal(text, "");
        tutti_inventory_destroy(inventory);
    }
}

static void the_program_s_locale_does_not_matter(void **state)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    char text[64];
    double real;
    size_t i = 0;

    (void)state;
    while (i < sizeof commas / sizeof commas[0] && setlocale(LC_NUMERIC, commas[i]) == NULL)
        i++;
    if (i == sizeof commas / sizeof commas[0]) {
        print_message("skipped: no locale with a comma in numbers is installed\n");
        skip();
    }
    assert_true(tutti_real_parse("2.5", &real));
    assert_false(tutti_real_parse("2,5", &real));
    tutti_real_write(2.5, text, sizeof text);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "2.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_follow_in_the_order_of_the_tree),
        cmocka_unit_test(every_kind_goes_below_its_own_alone),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_machine_that_nobody_built_is_refused),
        cmocka_unit_test(moving_takes_along_what_is_below),
        cmocka_unit_test(what_is_removed_is_gone_with_all_below_it),
        cmocka_unit_test(a_difference_anywhere_makes_inventories_unequal),
        cmocka_unit_test(the_better_source_wins_whoever_comes_first),
        cmocka_unit_test(properties_are_known_by_the_kind_of_their_device),
        cmocka_unit_test(written_forms_are_read_and_written_back),
        cmocka_unit_test(a_speed_that_says_nothing_is_zero),
        cmocka_unit_test(the_program_s_locale_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
