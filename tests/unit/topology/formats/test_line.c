/* SPDX-License-Identifier: Apache-2.0
 * Tests the one-line description of a machine. Every word has the effect that the header
 * describes. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_inventory *read_line(const char *text)
{
    struct tutti_inventory *inventory = NULL;

    if (tutti_line_read("m", text, &inventory) != TUTTI_OK)
        fail_msg("%s\nrefused: %s", text, tutti_message_last());
    return inventory;
}

/* Every device of a kind with one property as text, separated by blanks: "-" where it has none. */
static void list(const struct tutti_inventory *inventory, enum tutti_device_kind kind,
                 enum tutti_property property, char *ret_text, size_t size_bytes)
{
    uint32_t device = TUTTI_NO_DEVICE;
    size_t used = 0;

    ret_text[0] = '\0';
    while ((device = tutti_inventory_next_of(inventory, device, kind)) != TUTTI_NO_DEVICE) {
        char value[256] = "-";

        if (tutti_device_has(inventory, device, property))
            tutti_device_write(inventory, device, property, value, sizeof value);
        used += (size_t)snprintf(ret_text + used, size_bytes - used, "%s%s", used > 0 ? " " : "",
                                 value);
        assert_true(used < size_bytes);
    }
}

/* The meaning of each word. */
static void words_say_what_the_header_says(void **state)
{
    static const struct {
        const char *text;
        enum tutti_device_kind kind;
        enum tutti_property property;
        const char *values;
    } cases[] = {
        /* cpus */
        {"1 nic", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_VENDOR, "GenuineIntel"},
        {"1 cpu", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "ffffffff"},
        {"1 cpu amd", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_VENDOR, "AuthenticAMD"},
        {"1 cpu arm", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_ARCH, "arm64"},
        {"1 cpu power9", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_ARCH, "ppc64"},
        {"1 cpu skylake", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_MODEL, "85"},
        {"1 cpu rome", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_FAMILY, "143"},
        {"1 cpu rome", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_MODEL_NAME, "Rome"},
        {"1 cpu arm", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CPU_VENDOR, "-"},
        {"2 cpus cores 8", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY, "000000ff 0000ff00"},
        {"2 cpus cores 8 threads 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY,
         "00ff00ff ff00ff00"},
        {"2 cpus cores 24 threads 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY,
         "000000ff,ffff0000,00ffffff ffffff00,0000ffff,ff000000"},
        {"2 cpus cores 4 nodes 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_AFFINITY,
         "00000003 0000000c 00000030 000000c0"},
        {"2 cpus cores 4 nodes 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_PACKAGE, "0 0 1 1"},
        {"2 cpus cores 4 nodes 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_NUMA, "0 1 2 3"},
        {"2 cpus cores 4 caches 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CACHES,
         "00000003;0000000c 00000030;000000c0"},
        {"1 cpu cores 4 threads 2 nodes 2 caches 2", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_CACHES,
         "00000033 000000cc"},
        {"2 hosts: 2 cpus", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "0x1 0x1 0x2 0x2"},
        {"1 cpu; 2 hosts: 1 cpu", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "0x1 0x2 0x3"},
        {"2 cpus", TUTTI_DEVICE_CPU, TUTTI_PROPERTY_HOST_HASH, "- -"},
        /* switches */
        {"2 switches", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS, "0x060400 0x060400"},
        {"2 switches", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED,
         "16.0 GT/s PCIe 16.0 GT/s PCIe"},
        {"1 switch gen3 x8", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "8.0 GT/s PCIe"},
        {"1 switch gen3 x8", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_WIDTH, "8"},
        {"4 switches under 2, 2 cpus", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_BUSID,
         "0000:01:00.0 0000:02:00.0 0000:03:00.0 0000:04:00.0 0000:05:00.0 0000:06:00.0"},
        {"1 switch, 1 gpu h100", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED,
         "32.0 GT/s PCIe 32.0 GT/s PCIe"},
        /* gpus */
        {"1 gpu", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_MODEL_NAME, "H100"},
        {"1 gpu v100", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_SM, "70"},
        {"1 gpu v100", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "8.0 GT/s PCIe"},
        {"1 gpu gen2 x0", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "5.0 GT/s PCIe"},
        {"1 gpu gen2 x0", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_WIDTH, "0"},
        {"1 gpu a6000", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS, "0x030000"},
        {"1 gpu mi300x", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS, "0x120000"},
        {"1 gpu mi300x", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_PCI_VENDOR, "0x1002"},
        {"1 gpu mi300x", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_GCN, "gfx942"},
        {"1 gpu mi300x", TUTTI_DEVICE_SYSTEM, TUTTI_PROPERTY_VERSION, "2"},
        {"1 gpu h100", TUTTI_DEVICE_SYSTEM, TUTTI_PROPERTY_VERSION, "1"},
        {"1 gpu sm 75", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_SM, "75"},
        {"1 gpu gcn gfx90a", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_GCN, "gfx90a"},
        {"1 gpu rtx4090", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_GDR, "0"},
        {"1 gpu rtx4090 gdr", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_GDR, "1"},
        {"1 gpu no-gdr", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_GDR, "0"},
        {"2 hosts: 2 gpus", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_RANK, "0 1 2 3"},
        {"2 hosts: 2 gpus", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_DEV, "0 1 0 1"},
        {"2 gpus on cpu 1 0, 2 cpus", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_DEV, "1 0"},
        {"2 gpus a100 nvswitch", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TARGET,
         "fffffff:ff:ff.0 fffffff:ff:ff.0"},
        {"2 gpus a100 nvswitch", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, "12 12"},
        {"2 gpus a100 nvswitch", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TCLASS, "0x068000 0x068000"},
        {"2 gpus a100 nvswitch 4", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, "4 4"},
        {"3 gpus mesh 4", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, "4 4 4 4 4 4"},
        {"3 gpus mesh", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TARGET,
         "0000:02:00.0 0000:03:00.0 0000:01:00.0 0000:03:00.0 0000:01:00.0 0000:02:00.0"},
        {"2 gpus mi100 mesh 1", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TCLASS, "0x038000 0x038000"},
        {"4 gpus ring 2", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TARGET,
         "0000:02:00.0 0000:04:00.0 0000:01:00.0 0000:03:00.0 "
         "0000:02:00.0 0000:04:00.0 0000:01:00.0 0000:03:00.0"},
        {"4 gpus pairs 12", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TARGET,
         "0000:02:00.0 0000:01:00.0 0000:04:00.0 0000:03:00.0"},
        {"8 gpus v100 cube-mesh", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS,
         "1 1 2 2 1 2 1 2 1 2 2 1 2 1 2 1 2 1 1 2 2 1 2 1 1 1 2 2 1 2 1 2"},
        {"3 gpus links 2-0 0-1:4", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, "4 1 4 1"},
        {"4 gpus mesh hives 2", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TARGET,
         "0000:02:00.0 0000:01:00.0 0000:04:00.0 0000:03:00.0"},
        {"4 gpus pcie", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, ""},
        {"1 gpu v100 cpu-links 3", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_TCLASS, "0x068001"},
        {"1 gpu v100 cpu-links 3", TUTTI_DEVICE_NVLINK, TUTTI_PROPERTY_LINKS, "3"},
        {"1 gpu gh200 c2c 450GB/s", TUTTI_DEVICE_C2C, TUTTI_PROPERTY_BW, "450000"},
        {"1 gpu gh200 c2c 1.5MB/s", TUTTI_DEVICE_C2C, TUTTI_PROPERTY_BW, "1"},
        {"2 hosts: 1 gpu nvswitch fabric", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_FABRIC, "0x1 0x1"},
        {"2 hosts: 1 gpu nvswitch", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_FABRIC, "0x0 0x0"},
        {"1 gpu nvswitch fabric 7", TUTTI_DEVICE_GPU, TUTTI_PROPERTY_FABRIC, "0x7"},
        /* nics */
        {"2 nics", TUTTI_DEVICE_NET, TUTTI_PROPERTY_NET_NAME, "mlx5_0 mlx5_1"},
        {"1 nic", TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "100000"},
        {"1 nic", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS, "0x020700"},
        {"1 nic 400G", TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "400000"},
        {"1 nic 400G", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_SPEED, "32.0 GT/s PCIe"},
        {"1 nic 2500M", TUTTI_DEVICE_NET, TUTTI_PROPERTY_SPEED, "2500"},
        {"1 nic ethernet", TUTTI_DEVICE_NET, TUTTI_PROPERTY_NET_NAME, "eth0"},
        {"1 nic ethernet", TUTTI_DEVICE_NET, TUTTI_PROPERTY_GDR, "0"},
        {"1 nic ethernet gdr", TUTTI_DEVICE_NET, TUTTI_PROPERTY_GDR, "1"},
        {"1 nic no-gdr", TUTTI_DEVICE_NET, TUTTI_PROPERTY_GDR, "0"},
        {"1 nic roce", TUTTI_DEVICE_NET, TUTTI_PROPERTY_LAYER, "ethernet"},
        {"1 nic slingshot", TUTTI_DEVICE_NET, TUTTI_PROPERTY_NET_NAME, "cxi0"},
        {"1 nic efa", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_PCI_VENDOR, "0x1d0f"},
        {"1 nic gen3 x8", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_LINK_WIDTH, "8"},
        {"2 nics ports 2", TUTTI_DEVICE_NET, TUTTI_PROPERTY_PORT, "1 2 1 2"},
        {"2 nics ports 2", TUTTI_DEVICE_NET, TUTTI_PROPERTY_DEV, "0 1 2 3"},
        {"2 nics ports 2", TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID,
         "0x100000001 0x100000001 0x100000003 0x100000003"},
        {"2 hosts: 1 nic", TUTTI_DEVICE_NET, TUTTI_PROPERTY_GUID, "0x100000001 0x200000001"},
        {"2 nics, 2 gpus", TUTTI_DEVICE_NET, TUTTI_PROPERTY_RAIL, "0 1"},
        {"2 nics no-rails, 2 gpus", TUTTI_DEVICE_NET, TUTTI_PROPERTY_RAIL, "- -"},
        {"2 nics, 4 gpus", TUTTI_DEVICE_NET, TUTTI_PROPERTY_RAIL, "- -"},
        {"2 nics rails, 4 gpus", TUTTI_DEVICE_NET, TUTTI_PROPERTY_RAIL, "0 1"},
        {"1 nic 400G, 1 nic 25G ethernet", TUTTI_DEVICE_NET, TUTTI_PROPERTY_NET_NAME,
         "mlx5_0 eth1"},
        {"2 gpus, 2 cpus, 1 nic near gpu 1", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS,
         "0x030200 0x030200 0x020700"},
        {"2 gpus, 2 cpus, 1 nic near gpu 0", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS,
         "0x030200 0x020700 0x030200"},
        {"2 gpus, 2 cpus, 1 nic on cpu 1", TUTTI_DEVICE_PCI, TUTTI_PROPERTY_CLASS,
         "0x030200 0x030200 0x020700"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = read_line(cases[i].text);
        char values[1024];

        list(inventory, cases[i].kind, cases[i].property, values, sizeof values);
        if (strcmp(values, cases[i].values) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].text, values, cases[i].values);
        tutti_inventory_destroy(inventory);
    }
}

/* Where the devices of a kind hang, in the tree's order, as the numbers of their NUMA nodes. */
static void devices_are_dealt_in_equal_runs(void **state)
{
    static const struct {
        const char *text;
        enum tutti_device_kind kind;
        const char *nodes;
    } cases[] = {
        {"4 gpus, 2 cpus", TUTTI_DEVICE_GPU, "0 0 1 1"},
        {"3 gpus, 2 cpus", TUTTI_DEVICE_GPU, "0 0 1"},
        {"4 gpus, 1 cpu nodes 4", TUTTI_DEVICE_GPU, "0 1 2 3"},
        {"2 nics, 1 cpu nodes 4", TUTTI_DEVICE_NET, "0 2"},
        {"8 gpus, 4 switches, 2 cpus", TUTTI_DEVICE_GPU, "0 0 0 0 1 1 1 1"},
        {"8 gpus, 8 switches under 2, 2 cpus", TUTTI_DEVICE_GPU, "0 0 0 0 1 1 1 1"},
        {"8 gpus on cpu 2 0, 1 cpu nodes 4", TUTTI_DEVICE_GPU, "0 0 0 0 2 2 2 2"},
        {"2 gpus, 2 cpus, 2 switches, 2 nics near gpu 1", TUTTI_DEVICE_NET, "1 1"},
        {"2 gpus, 2 cpus, 2 switches, 2 nics on cpu 1 0", TUTTI_DEVICE_NET, "0 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory = read_line(cases[i].text);
        uint32_t device = TUTTI_NO_DEVICE;
        char nodes[256] = "";

        while ((device = tutti_inventory_next_of(inventory, device, cases[i].kind)) !=
               TUTTI_NO_DEVICE) {
            uint32_t cpu = tutti_inventory_above(inventory, device, TUTTI_DEVICE_CPU);

            snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "%s%d",
                     nodes[0] != '\0' ? " " : "",
                     (int)tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1));
        }
        if (strcmp(nodes, cases[i].nodes) != 0)
            fail_msg("%s: at %s, not %s", cases[i].text, nodes, cases[i].nodes);
        tutti_inventory_destroy(inventory);
    }
}

static void layout_of_the_text_does_not_count(void **state)
{
    static const char plain[] = "2 hosts: 2 gpus h100 nvswitch, 1 nic 400G";
    static const char *const same[] = {
        "2 hosts:2 gpus h100 nvswitch,1 nic 400G",
        "  2\thosts:  2 gpus   h100 nvswitch ,  1 nic 400G  ",
        "# a comment; with a semicolon\n2 hosts: 2 gpus nvswitch h100, # and one\n\n 1 nic 400G\n",
        "1 host: 2 gpus nvswitch 18, 1 nics 400G; 1 host: 1 nic ib 400G, 2 gpu h100 nvswitch\r\n",
        "2 gpus nvswitch, 1 nic 400G\n2 gpus nvswitch, 1 nic 400G",
        ";; 2 hosts: 2 gpus h100 nvswitch, 1 nic 400G, 1 cpu intel;",
    };
    struct tutti_inventory *first = read_line(plain);

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct tutti_inventory *inventory = read_line(same[i]);

        if (!inventories_equal(first, inventory))
            fail_msg("%s\nis not %s", same[i], plain);
        tutti_inventory_destroy(inventory);
    }
    tutti_inventory_destroy(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_say_what_the_header_says),
        cmocka_unit_test(devices_are_dealt_in_equal_runs),
        cmocka_unit_test(layout_of_the_text_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
