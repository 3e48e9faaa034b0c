/* SPDX-License-Identifier: Apache-2.0
 * Tests that products are recognized by ids and names, and that told values come before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "topology/formats/load.h"
#include "topology/inventory/products.h"

static struct tutti_inventory *read_xml(const char *text)
{
    struct tutti_inventory *inventory;

    assert_int_equal(tutti_formats_parse("test", text, strlen(text), &inventory), 0);
    return inventory;
}

static uint32_t nth(const struct tutti_inventory *inventory, enum tutti_device_kind kind, int n)
{
    uint32_t device = TUTTI_NO_DEVICE;

    for (; n >= 0; n--)
        device = tutti_inventory_next_of(inventory, device, kind);
    assert_int_not_equal(device, TUTTI_NO_DEVICE);
    return device;
}

static void names_of_products_tell_the_generation(void **state)
{
    (void)state;
    assert_int_equal(tutti_product_sm_named("Tesla V100-SXM2-16GB"), 70);
    assert_int_equal(tutti_product_sm_named("NVIDIA A100-SXM4-80GB"), 80);
    assert_int_equal(tutti_product_sm_named("NVIDIA H100 80GB HBM3"), 90);
    assert_int_equal(tutti_product_sm_named("NVIDIA B200"), 100);
    assert_int_equal(tutti_product_sm_named("NVIDIA GB300"), 103);
    assert_int_equal(tutti_product_sm_named("NVIDIA Graphics Device"), 0);
    assert_int_equal(tutti_product_sm_named("H1000"), 0);
    assert_int_equal(tutti_product_sm_named(""), 0);
}

static void gpus_are_known_by_what_is_told_then_by_id_then_by_name(void **state)
{
    struct tutti_inventory *inventory = read_xml(
        "<system version=\"1\"><cpu numaid=\"0\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\">"
        "<gpu dev=\"0\" sm=\"80\"/></pci>"
        "<pci busid=\"0000:02:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2901\">"
        "<gpu dev=\"1\" model=\"NVIDIA H100\"/></pci>"
        "<pci busid=\"0000:03:00.0\" class=\"0x030200\">"
        "<gpu dev=\"2\" model=\"NVIDIA H100\"/></pci>"
        "<pci busid=\"0000:04:00.0\" class=\"0x030200\"><gpu dev=\"3\"/></pci>"
        "<pci busid=\"0000:05:00.0\" class=\"0x120000\" vendor=\"0x1002\" device=\"0x74a1\">"
        "<gpu dev=\"4\"/></pci></cpu></system>");
    static const struct {
        int64_t sm;
        enum tutti_source source;
    } wanted[] = {{80, TUTTI_SOURCE_FILE}, {100, TUTTI_SOURCE_PRODUCT}, {90, TUTTI_SOURCE_PRODUCT},
                  {0, TUTTI_SOURCE_ASSUMED}};
    enum tutti_source source;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            tutti_product_sm(inventory, nth(inventory, TUTTI_DEVICE_GPU, i), &source),
            wanted[i].sm);
        assert_int_equal(source, wanted[i].source);
    }
    assert_string_equal(
        tutti_product_gcn(inventory, nth(inventory, TUTTI_DEVICE_GPU, 4), &source), "gfx942");
    assert_int_equal(source, TUTTI_SOURCE_PRODUCT);
    tutti_inventory_destroy(inventory);
}

#define NIC(bus, ids, nets) \
    "<pci busid=\"0000:" bus "\" class=\"0x020700\" " ids "><nic>" nets "</nic></pci>"

static void ports_are_known_by_what_is_told_then_by_card_then_by_name(void **state)
{
    static const struct {
        int64_t mbits;
        enum tutti_source source;
    } wanted[] = {
        {100000, TUTTI_SOURCE_FILE},    {400000, TUTTI_SOURCE_PRODUCT},
        {200000, TUTTI_SOURCE_PRODUCT}, {200000, TUTTI_SOURCE_PRODUCT},
        {400000, TUTTI_SOURCE_PRODUCT}, {400000, TUTTI_SOURCE_PRODUCT},
        {200000, TUTTI_SOURCE_PRODUCT}, {0, TUTTI_SOURCE_ASSUMED},
        {0, TUTTI_SOURCE_ASSUMED},
    };
    struct tutti_inventory *inventory = read_xml(
        "<system version=\"1\"><cpu numaid=\"0\">"
        NIC("10:00.0", "vendor=\"0x15b3\" device=\"0x1021\"",
            "<net name=\"a\" dev=\"0\" speed=\"100000\"/>")
        NIC("11:00.0", "vendor=\"0x15b3\" device=\"0x1021\"", "<net name=\"b\" dev=\"1\"/>")
        /* Two ports on one function, then on two functions of a card. */
        NIC("12:00.0", "vendor=\"0x15b3\" device=\"0xa2dc\"",
            "<net name=\"c\" dev=\"2\"/><net name=\"d\" dev=\"3\" speed=\"0\"/>")
        NIC("13:00.0", "vendor=\"0x15b3\" device=\"0x1023\"", "<net name=\"e\" dev=\"4\"/>")
        NIC("13:00.1", "vendor=\"0x15b3\" device=\"0x1023\"", "<net name=\"f\" dev=\"5\"/>")
        NIC("14:00.0", "", "<net name=\"hsi0\" dev=\"6\"/>")
        NIC("15:00.0", "vendor=\"0x15b3\" device=\"0x101e\"", "<net name=\"mlx5_7\" dev=\"7\"/>")
        NIC("16:00.0", "", "<net name=\"hsix\" dev=\"8\"/>")
        "</cpu></system>");
    enum tutti_source source;

    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(
            tutti_product_mbits(inventory, nth(inventory, TUTTI_DEVICE_NET, i), &source),
            wanted[i].mbits);
        assert_int_equal(source, wanted[i].source);
    }
    tutti_inventory_destroy(inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_products_tell_the_generation),
        cmocka_unit_test(gpus_are_known_by_what_is_told_then_by_id_then_by_name),
        cmocka_unit_test(ports_are_known_by_what_is_told_then_by_card_then_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
