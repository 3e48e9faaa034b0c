/* SPDX-License-Identifier: Apache-2.0
 * Detects AMD's GPUs from the files of their kernel driver. */
#include "base/result.h"
#include "fake_root.h"
#include "topology/detect/detect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES "sys/class/kfd/kfd/topology/nodes/"

/* Two CPUs and three GPUs: 2 and 3 with four links, 2 and 4 with one of unknown rate, 3 and 4
 * through another GPU. */
static void put_machine(const struct fake_root *root)
{
    static const char *const files[][2] = {
        {"0/properties", "cpu_cores_count 2\nsimd_count 0\n"},
        {"1/properties", "cpu_cores_count 2\nsimd_count 0\n"},
        {"2/properties", "simd_count 304\ngfx_target_version 90402\nlocation_id 50176\ndomain 0\n"
                         "unique_id 16735674829834512\n"},
        {"3/properties", "simd_count 440\ngfx_target_version 90010\nlocation_id 52489\ndomain 1\n"},
        {"4/properties", "simd_count 240\nlocation_id 768\n"},
        {"2/io_links/0/properties", "type 11\nnode_from 2\nnode_to 3\nweight 15\n"
                                    "min_bandwidth 50000\nmax_bandwidth 200000\n"},
        {"2/io_links/1/properties", "type 11\nnode_to 4\nweight 15\n"},
        {"2/io_links/2/properties", "type 2\nnode_to 0\nweight 20\n"},
        {"3/io_links/0/properties", "type 11\nnode_to 2\nweight 15\nmin_bandwidth 50000\n"
                                    "max_bandwidth 200000\n"},
        {"3/io_links/1/properties", "type 11\nnode_to 4\nweight 30\n"},
        {"4/io_links/0/properties", "type 11\nnode_to 2\nweight 15\n"},
        {"4/io_links/1/properties", "type 11\nnode_to 9\nweight 15\n"},
        {"4/io_links/2/properties", "type eleven\n"},
        {"junk/properties", "simd_count 5\nlocation_id 512\n"},
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char file[128];

        snprintf(file, sizeof file, NODES "%s", files[i][0]);
        fake_root_put(root, file, files[i][1]);
    }
    fake_root_put_cpus(root);
    fake_root_put_pci(root, "pci0000:c0/0000:c4:00.0", "0x120000\n", "1\n");
}

static void gpus_have_addresses_architectures_and_links(void **state)
{
    static const enum tutti_property shown[] = {
        TUTTI_PROPERTY_DEV, TUTTI_PROPERTY_GCN, TUTTI_PROPERTY_UUID, TUTTI_PROPERTY_TARGET,
        TUTTI_PROPERTY_LINKS, TUTTI_PROPERTY_TCLASS, TUTTI_PROPERTY_BUSID, TUTTI_PROPERTY_NUMA,
    };
    struct tutti_inventory *inventory = NULL;
    struct tutti_detect_options options;
    struct fake_root root;
    char text[1024] = "";

    (void)state;
    fake_root_create(&root);
    put_machine(&root);
    options = (struct tutti_detect_options){.root = root.path};
    assert_int_equal(tutti_detect(&options, &inventory), TUTTI_OK);
    for (uint32_t i = 0; i != TUTTI_NO_DEVICE; i = tutti_inventory_next(inventory, i)) {
        sprintf(text + strlen(text), "%s", tutti_device_kind_name(inventory->devices[i].kind));
        for (size_t j = 0; j < sizeof shown / sizeof shown[0]; j++)
            if (tutti_device_has(inventory, i, shown[j])) {
                strcat(text, " ");
                tutti_device_write(inventory, i, shown[j], text + strlen(text), 64);
            }
        strcat(text, "\n");
    }
    assert_string_equal(text, "system\n"
                              "cpu 0\n"
                              "pci 0001:cd:01.1\n"
                              "gpu 1 gfx90a\n"
                              "nvlink 0000:c4:00.0 4 0x120000\n"
                              "pci 0000:03:00.0\n"
                              "gpu 2\n"
                              "nvlink 0000:c4:00.0 1 0x120000\n"
                              "cpu 1\n"
                              "pci 0000:c4:00.0\n"
                              "gpu 0 gfx942 003b7501f14f0910\n"
                              "nvlink 0001:cd:01.1 4\n"
                              "nvlink 0000:03:00.0 1\n");
    tutti_inventory_destroy(inventory);
    fake_root_destroy(&root);
}

/* Two devices of two partitions each, which have the address of their device. The links of the
 * driver lead from each partition to each partition. */
static void partitions_are_gpus_of_one_device(void **state)
{
    struct tutti_detect_options options;
    struct tutti_inventory *inventory = NULL;
    struct fake_root root;
    uint32_t gpu = TUTTI_NO_DEVICE, count = 0;

    (void)state;
    fake_root_create(&root);
    for (uint32_t node = 0; node < 4; node++) {
        char file[128], text[256];

        snprintf(file, sizeof file, NODES "%u/properties", node + 1);
        /* Bits 28 and up of location_id number the partition. */
        snprintf(text, sizeof text, "simd_count 152\ngfx_target_version 90402\nlocation_id %u\n"
                 "domain 0\n", (node / 2 + 1) << 8 | (node % 2) << 28);
        fake_root_put(&root, file, text);
        for (uint32_t to = 0; to < 4; to++) {
            snprintf(file, sizeof file, NODES "%u/io_links/%u/properties", node + 1, to);
            snprintf(text, sizeof text, "type 11\nnode_to %u\nweight 15\nmin_bandwidth 50000\n"
                     "max_bandwidth 100000\n", to + 1);
            if (to != node)
                fake_root_put(&root, file, text);
        }
    }
    fake_root_put_cpus(&root);
    options = (struct tutti_detect_options){.root = root.path};
    assert_int_equal(tutti_detect(&options, &inventory), TUTTI_OK);
    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        uint32_t pci = inventory->devices[gpu].parent;
        uint32_t link = inventory->devices[gpu].first_child;

        assert_int_equal(tutti_device_number(inventory, gpu, TUTTI_PROPERTY_DEV, -1), count);
        assert_int_equal(tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, -1),
                         (count / 2 + 1) << 12);
        /* One element for the links to the other device, and none to its own. */
        assert_int_equal(tutti_device_number(inventory, link, TUTTI_PROPERTY_TARGET, -1),
                         (2 - count / 2) << 12);
        assert_int_equal(tutti_device_number(inventory, link, TUTTI_PROPERTY_LINKS, -1), 2);
        assert_int_equal(inventory->devices[link].next, TUTTI_NO_DEVICE);
        count++;
    }
    assert_int_equal(count, 4);
    assert_string_equal(inventory->remarks,
                        "2 gpus are on the device of another gpu, as a rank or a partition of it; "
                        "the gpus of a device share its links\n");
    tutti_inventory_destroy(inventory);
    fake_root_destroy(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_have_addresses_architectures_and_links),
        cmocka_unit_test(partitions_are_gpus_of_one_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
