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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_have_addresses_architectures_and_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
