/* SPDX-License-Identifier: Apache-2.0
 * Detects NICs and the links of PCI devices only from the kernel's files. */
#include "base/result.h"
#include "fake_root.h"
#include "topology/detect/detect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int make_root(void **state)
{
    struct fake_root *root = malloc(sizeof *root);

    assert_non_null(root);
    fake_root_create(root);
    *state = root;
    return 0;
}

static int remove_root(void **state)
{
    fake_root_destroy(*state);
    free(*state);
    return 0;
}

static struct tutti_inventory *detect(const struct fake_root *root)
{
    const struct tutti_detect_options options = {.root = root->path};
    struct tutti_inventory *inventory = NULL;

    if (tutti_detect(&options, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return inventory;
}

/* A property as it is written; "-": it has none. */
static const char *written(const struct tutti_inventory *inventory, uint32_t device,
                           enum tutti_property property, char text[64])
{
    if (device == TUTTI_NO_DEVICE || !tutti_device_has(inventory, device, property))
        return "-";
    tutti_device_write(inventory, device, property, text, 64);
    return text;
}

/* All nets with what is known of them, such as "mlx5_0 1 200000 0xab infiniband 1 ": the last is
 * the NUMA node. */
static void expect_nets(const struct fake_root *root, const char *expected)
{
    static const enum tutti_property properties[] = {
        TUTTI_PROPERTY_NET_NAME, TUTTI_PROPERTY_PORT, TUTTI_PROPERTY_SPEED, TUTTI_PROPERTY_GUID,
        TUTTI_PROPERTY_LAYER,
    };
    struct tutti_inventory *inventory = detect(root);
    uint32_t net = TUTTI_NO_DEVICE;
    char text[1024] = "", value[64];

    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        uint32_t cpu = tutti_inventory_above(inventory, net, TUTTI_DEVICE_CPU);

        for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
            sprintf(text + strlen(text), "%s ", written(inventory, net, properties[i], value));
        sprintf(text + strlen(text), "%s; ",
                written(inventory, cpu, TUTTI_PROPERTY_NUMA, value));
    }
    assert_string_equal(text, expected);
    tutti_inventory_destroy(inventory);
}

static void put_port(const struct fake_root *root, const char *folder, const char *state,
                     const char *rate, const char *layer)
{
    char file[256];

    snprintf(file, sizeof file, "%s/state", folder);
    fake_root_put(root, file, state);
    snprintf(file, sizeof file, "%s/rate", folder);
    fake_root_put(root, file, rate);
    snprintf(file, sizeof file, "%s/link_layer", folder);
    fake_root_put(root, file, layer);
}

#define CARD "pci0000:00/0000:00:01.0/0000:01:00.0"

static void put_card(const struct fake_root *root)
{
    fake_root_put_cpus(root);
    fake_root_put_pci(root, CARD, "0x020700\n", "1\n");
    fake_root_link(root, "sys/class/infiniband/mlx5_0", "../../devices/" CARD "/infiniband/mlx5_0");
    fake_root_put(root, "sys/devices/" CARD "/infiniband/mlx5_0/node_guid",
                  "0c42:a103:006f:14ec\n");
    fake_root_put(root, "sys/devices/" CARD "/infiniband/mlx5_0/sys_image_guid",
                  "0c42:a103:006f:14eb\n");
    put_port(root, "sys/devices/" CARD "/infiniband/mlx5_0/ports/1", "4: ACTIVE\n",
             "200 Gb/sec (4X HDR)\n", "InfiniBand\n");
}

static void put_interface(const struct fake_root *root, const char *device, const char *name,
                          const char *state, const char *speed)
{
    char file[256], target[256];

    snprintf(file, sizeof file, "sys/devices/%s/net/%s/operstate", device, name);
    fake_root_put(root, file, state);
    snprintf(file, sizeof file, "sys/devices/%s/net/%s/speed", device, name);
    fake_root_put(root, file, speed);
    snprintf(file, sizeof file, "sys/devices/%s/net/%s/type", device, name);
    fake_root_put(root, file, "1\n");
    snprintf(file, sizeof file, "sys/devices/%s/net/%s/device", device, name);
    fake_root_link(root, file, "../../../../");
    snprintf(file, sizeof file, "sys/class/net/%s", name);
    snprintf(target, sizeof target, "../../devices/%s/net/%s", device, name);
    fake_root_link(root, file, target);
}

static void a_card_for_rdma_is_one_net_whatever_interfaces_it_has(void **state)
{
    put_card(*state);
    put_interface(*state, CARD, "ib0", "up\n", "-1\n");
    expect_nets(*state, "mlx5_0 1 200000 0xc42a103006f14eb infiniband 1; ");
}

static void ports_that_are_down_are_no_nets_and_two_that_are_up_are_two(void **state)
{
    put_card(*state);
    put_port(*state, "sys/devices/" CARD "/infiniband/mlx5_0/ports/2", "1: DOWN\n",
             "10 Gb/sec (4X SDR)\n", "Ethernet\n");
    put_port(*state, "sys/devices/" CARD "/infiniband/mlx5_0/ports/3", "4: ACTIVE\n",
             "2.5 Gb/sec (1X)\n", "Ethernet\n");
    expect_nets(*state, "mlx5_0 1 200000 0xc42a103006f14eb infiniband 1; "
                        "mlx5_0 3 2500 0xc42a103006f14eb ethernet 1; ");
}

static void interfaces_with_a_device_are_nets_and_made_up_ones_are_not(void **state)
{
    fake_root_put_cpus(*state);
    fake_root_put_pci(*state, CARD, "0x020000\n", "0\n");
    put_interface(*state, CARD, "eth0", "up\n", "25000\n");
    put_interface(*state, CARD, "eth1", "down\n", "-1\n");
    fake_root_put_pci(*state, "pci0000:00/0000:00:03.0", "0x020000\n", "-1\n");
    put_interface(*state, "pci0000:00/0000:00:03.0/virtio2", "eth2", "unknown\n", "-1\n");
    put_interface(*state, "pci0000:00/0000:00:04.0/usb1/1-1", "usb0", "up\n", "100\n");
    put_interface(*state, "virtual", "br0", "up\n", "100\n");
    put_interface(*state, "LNXSYSTM:00/VMBUS:00/vmbus_1", "hv0", "up\n", "50000\n");
    fake_root_link(*state, "sys/class/net/lo", "../../devices/virtual/net/lo");
    expect_nets(*state, "eth2 1 - - ethernet 0; eth0 1 25000 - ethernet 0; "
                        "hv0 1 50000 - ethernet 0; ");
}

static void what_is_damaged_is_left_out(void **state)
{
    static const char *const bad[] = {"", "-", "Gb/sec", "999999999999999999999 Gb/sec\n"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fake_root root;

        (void)state;
        fake_root_create(&root);
        put_card(&root);
        fake_root_put(&root, "sys/devices/" CARD "/infiniband/mlx5_0/ports/1/rate", bad[i]);
        fake_root_put(&root, "sys/devices/" CARD "/infiniband/mlx5_0/sys_image_guid", bad[i]);
        fake_root_put(&root, "sys/devices/" CARD "/infiniband/mlx5_0/node_guid", bad[i]);
        fake_root_put(&root, "sys/devices/" CARD "/infiniband/mlx5_0/ports/1/link_layer", bad[i]);
        fake_root_put(&root, "sys/devices/" CARD "/infiniband/mlx5_0/ports/x/state", bad[i]);
        fake_root_link(&root, "sys/class/infiniband/none", "../nowhere");
        expect_nets(&root, "mlx5_0 1 - - infiniband 1; ");
        fake_root_destroy(&root);
    }
}

/* ---- links ----------------------------------------------------------------------------------- */

static void links_are_what_both_ends_can(void **state)
{
    static const char port[] = "sys/devices/pci0000:00/0000:00:01.0/";
    static const char card[] = "sys/devices/" CARD "/";
    static const struct {
        const char *own_speed, *own_now, *own_width, *port_speed, *port_width; /* NULL: absent */
        const char *gts, *lanes;
    } cases[] = {
        {"16.0 GT/s PCIe\n", "2.5 GT/s PCIe\n", "16\n", "16.0 GT/s PCIe\n", "16\n",
         "16.0 GT/s PCIe", "16"},
        {"32.0 GT/s PCIe\n", NULL, "16\n", "8 GT/s\n", "8\n", "8.0 GT/s PCIe", "8"},
        {"Unknown\n", NULL, "0\n", "Unknown speed\n", "255\n", "-", "-"},
        {"Unknown\n", "5 GT/s\n", "0\n", NULL, "4\n", "5.0 GT/s PCIe", "4"},
        {NULL, NULL, NULL, "8.0 GT/s PCIe\n", "4\n", "8.0 GT/s PCIe", "4"},
        {NULL, NULL, NULL, NULL, NULL, "-", "-"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct {
            const char *folder, *file, *text;
        } files[] = {
            {card, "max_link_speed", cases[i].own_speed},
            {card, "current_link_speed", cases[i].own_now},
            {card, "current_link_width", cases[i].own_width},
            {port, "max_link_speed", cases[i].port_speed},
            {port, "current_link_width", cases[i].port_width},
        };
        struct tutti_inventory *inventory;
        struct fake_root root;
        char file[256], text[64];
        uint32_t pci;

        fake_root_create(&root);
        fake_root_put_pci(&root, "pci0000:00/0000:00:01.0", "0x060400\n", "0\n");
        put_card(&root);
        for (size_t j = 0; j < sizeof files / sizeof files[0]; j++) {
            snprintf(file, sizeof file, "%s%s", files[j].folder, files[j].file);
            if (files[j].text != NULL)
                fake_root_put(&root, file, files[j].text);
        }
        inventory = detect(&root);
        pci = tutti_inventory_find_pci(inventory, 0x01 << 12);
        assert_int_not_equal(pci, TUTTI_NO_DEVICE);
        assert_string_equal(written(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, text),
                            cases[i].gts);
        assert_string_equal(written(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, text),
                            cases[i].lanes);
        tutti_inventory_destroy(inventory);
        fake_root_destroy(&root);
    }
}

static void an_empty_root_has_one_cpu_and_nothing_of_this_machine(void **state)
{
    struct tutti_inventory *inventory = detect(*state);

    assert_int_equal(inventory->count, 2);
    assert_int_equal(inventory->devices[1].kind, TUTTI_DEVICE_CPU);
    assert_int_equal(inventory->devices[1].found_by, TUTTI_SOURCE_ASSUMED);
    tutti_inventory_destroy(inventory);
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        WITH_ROOT(a_card_for_rdma_is_one_net_whatever_interfaces_it_has),
        WITH_ROOT(ports_that_are_down_are_no_nets_and_two_that_are_up_are_two),
        WITH_ROOT(interfaces_with_a_device_are_nets_and_made_up_ones_are_not),
        cmocka_unit_test(what_is_damaged_is_left_out),
        cmocka_unit_test(links_are_what_both_ends_can),
        WITH_ROOT(an_empty_root_has_one_cpu_and_nothing_of_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
