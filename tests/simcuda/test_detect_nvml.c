/* SPDX-License-Identifier: Apache-2.0
 * Runs the NVML phase of detection against a simulated driver. It finds the facts of the machine's
 * file, whatever other phases found before. */
#include "base/result.h"
#include "simcuda/detecting.h"
#include "support/stderr_text.h"
#include "topology/detect/place.h"
#include "topology/recordings.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- comparing ------------------------------------------------------------------------------- */

static void same_number(const char *name, const struct tutti_inventory *a, uint32_t i,
                        const struct tutti_inventory *b, uint32_t j, enum tutti_property property)
{
    int64_t expected = tutti_device_number(a, i, property, 0);
    int64_t found = tutti_device_number(b, j, property, 0);

    if (expected != found)
        fail_msg("%s: %s of %s %u is 0x%" PRIx64 ", found 0x%" PRIx64, name,
                 tutti_property_info(property)->name,
                 tutti_device_kind_name(a->devices[i].kind), i, (uint64_t)expected,
                 (uint64_t)found);
}

static void same_links(const char *name, const struct tutti_inventory *a, uint32_t i,
                       const struct tutti_inventory *b, uint32_t j)
{
    uint32_t nlinks = 0, found = 0;

    for (uint32_t k = a->devices[i].first_child; k != TUTTI_NO_DEVICE; k = a->devices[k].next) {
        bool is_c2c = a->devices[k].kind == TUTTI_DEVICE_C2C;
        uint32_t l = is_c2c ? tutti_detect_child(b, j, TUTTI_DEVICE_C2C)
                            : find_link(b, j, tutti_device_number(a, k, TUTTI_PROPERTY_TARGET, 0));

        if (l == TUTTI_NO_DEVICE)
            fail_msg("%s: a link of gpu %u was not found", name, i);
        same_number(name, a, k, b, l, TUTTI_PROPERTY_LINKS);
        same_number(name, a, k, b, l, is_c2c ? TUTTI_PROPERTY_BW : TUTTI_PROPERTY_TCLASS);
        nlinks++;
    }
    for (uint32_t l = b->devices[j].first_child; l != TUTTI_NO_DEVICE; l = b->devices[l].next)
        found++;
    assert_int_equal(found, nlinks);
}

/* All that NVML could tell of the GPUs is as the file has it. */
static void same_gpus(const char *name, const struct tutti_inventory *a,
                      const struct tutti_inventory *b)
{
    static const enum tutti_property of_pci[] = {
        TUTTI_PROPERTY_CLASS, TUTTI_PROPERTY_PCI_DEVICE, TUTTI_PROPERTY_SUBVENDOR,
        TUTTI_PROPERTY_SUBDEVICE, TUTTI_PROPERTY_LINK_WIDTH,
    };
    uint32_t i = TUTTI_NO_DEVICE;

    assert_int_equal(count_of(b, TUTTI_DEVICE_GPU), count_of(a, TUTTI_DEVICE_GPU));
    while ((i = tutti_inventory_next_of(a, i, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        uint32_t j = same_gpu(a, i, b), pci = a->devices[i].parent;

        if (j == TUTTI_NO_DEVICE)
            fail_msg("%s: gpu %u was not found", name, i);
        same_number(name, a, i, b, j, TUTTI_PROPERTY_SM);
        assert_int_equal(tutti_device_number(b, j, TUTTI_PROPERTY_P2P, 1),
                         tutti_device_number(a, i, TUTTI_PROPERTY_P2P, 1));
        for (size_t k = 0; k < sizeof of_pci / sizeof of_pci[0]; k++)
            same_number(name, a, pci, b, b->devices[j].parent, of_pci[k]);
        /* Speeds are exact in both. */
        assert_memory_equal(
            &(double){tutti_device_real(a, pci, TUTTI_PROPERTY_LINK_SPEED, 0)},
            &(double){tutti_device_real(b, b->devices[j].parent, TUTTI_PROPERTY_LINK_SPEED, 0)},
            sizeof(double));
        same_links(name, a, i, b, j);
    }
}

/* ---- whole machines -------------------------------------------------------------------------- */

static void nvml_alone_finds_the_gpus_and_links_of_every_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMACHINES; i++) {
        struct tutti_inventory *expected = load(path_of(machines[i])), *found;

        use(SIM_NVML, path_of(machines[i]));
        found = detected(NOTHING_HERE);
        same_gpus(machines[i], expected, found);
        /* Nobody said where they are, so they are below one cpu, and that is only assumed. */
        assert_int_equal(count_of(found, TUTTI_DEVICE_CPU), 1);
        assert_int_equal(found->devices[1].found_by, TUTTI_SOURCE_ASSUMED);
        assert_string_equal(tutti_device_text(found, same_gpu(expected, tutti_inventory_next_of(
                                expected, TUTTI_NO_DEVICE, TUTTI_DEVICE_GPU), found),
                                TUTTI_PROPERTY_MODEL_NAME),
                            i == 2 ? "NVIDIA A100-SXM4-40GB" : "Simulated GPU");
        tutti_inventory_destroy(expected);
        tutti_inventory_destroy(found);
    }
}

static void what_other_phases_found_keeps_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMACHINES; i++) {
        struct tutti_inventory *expected = load(path_of(machines[i])), *found;
        uint32_t npci = count_of(expected, TUTTI_DEVICE_PCI), gpu;

        /* One gpu is not named yet, another has links that are not there. */
        assert_int_equal(tutti_inventory_copy(expected, &found), TUTTI_OK);
        gpu = tutti_inventory_next_of(found, TUTTI_NO_DEVICE, TUTTI_DEVICE_GPU);
        tutti_inventory_remove(found, gpu);
        gpu = tutti_inventory_next_of(found, TUTTI_NO_DEVICE, TUTTI_DEVICE_GPU);
        assert_int_equal(tutti_inventory_add(found, gpu, TUTTI_DEVICE_NVLINK, TUTTI_SOURCE_HWLOC,
                                             &gpu), TUTTI_OK);
        use(SIM_NVML, path_of(machines[i]));
        for (int run = 0; run < 2; run++) {
            detect(NOTHING_HERE, found);
            same_gpus(machines[i], expected, found);
            assert_int_equal(count_of(found, TUTTI_DEVICE_PCI), npci);
            assert_int_equal(count_of(found, TUTTI_DEVICE_CPU),
                             count_of(expected, TUTTI_DEVICE_CPU));
        }
        tutti_inventory_destroy(expected);
        tutti_inventory_destroy(found);
    }
}

static void a_users_file_is_not_overruled(void **state)
{
    struct tutti_inventory *inventory;
    uint32_t cpu, pci, gpu, link;
    int64_t busid = 0x03000;

    (void)state;
    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    tutti_inventory_add(inventory, 0, TUTTI_DEVICE_CPU, TUTTI_SOURCE_FILE, &cpu);
    tutti_inventory_add(inventory, cpu, TUTTI_DEVICE_PCI, TUTTI_SOURCE_FILE, &pci);
    tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_BUSID, TUTTI_SOURCE_FILE, busid);
    tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, TUTTI_SOURCE_FILE, 4);
    tutti_inventory_add(inventory, pci, TUTTI_DEVICE_GPU, TUTTI_SOURCE_FILE, &gpu);
    tutti_inventory_add(inventory, gpu, TUTTI_DEVICE_NVLINK, TUTTI_SOURCE_FILE, &link);
    tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TARGET, TUTTI_SOURCE_FILE, 7);
    use(SIM_NVML, path_of("mesh-4"));
    detect(NOTHING_HERE, inventory);
    assert_int_equal(tutti_inventory_find_pci(inventory, busid), pci);
    assert_int_equal(tutti_device_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, 0), 4);
    assert_int_equal(inventory->devices[gpu].first_child, link);
    assert_int_equal(inventory->devices[link].next, TUTTI_NO_DEVICE);
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_GPU), 4);
    tutti_inventory_destroy(inventory);
}

static void recorded_machines_are_found_as_they_were_recorded(void **state)
{
    char files[512];
    struct dirent *entry;
    int ncompared = 0;
    DIR *listing;

    (void)state;
    listing = recordings_open("nccl-xml", files, sizeof files);
    while ((entry = readdir(listing)) != NULL) {
        struct tutti_inventory *expected, *found;
        char path[1024];

        if (strstr(entry->d_name, ".xml") == NULL || strstr(entry->d_name, ".graph.") != NULL ||
            strncmp(entry->d_name, "rccl", 4) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", files, entry->d_name);
        expected = load(path);
        use(SIM_NVML, path);
        assert_int_equal(tutti_inventory_copy(expected, &found), TUTTI_OK);
        detect(NOTHING_HERE, found);
        same_gpus(entry->d_name, expected, found);
        ncompared += count_of(expected, TUTTI_DEVICE_GPU) > 0;
        tutti_inventory_destroy(expected);
        tutti_inventory_destroy(found);
    }
    closedir(listing);
    assert_true(ncompared > 0);
}

/* ---- single things --------------------------------------------------------------------------- */

static void gpus_of_one_clique_have_one_fabric(void **state)
{
    static const char *const fabrics[] = {"cliques-4", "superchip-4", "nvswitch-8"};
    static const bool is_same[][3] = {
        {true, false, false}, {true, true, true}, {false, false, false},
    };
    int64_t fabric[8];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tutti_inventory *found;
        uint32_t gpu = TUTTI_NO_DEVICE, n = 0;

        use(SIM_NVML, path_of(fabrics[i]));
        found = detected(NOTHING_HERE);
        while ((gpu = tutti_inventory_next_of(found, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
            fabric[n] = tutti_device_number(found, gpu, TUTTI_PROPERTY_FABRIC, -(int64_t)n);
            n++;
        }
        for (int j = 0; j < 3; j++)
            assert_int_equal(fabric[j] == fabric[j + 1], is_same[i][j]);
        assert_int_equal(i == 2, fabric[3] == -3);
        tutti_inventory_destroy(found);
    }
}

static void the_kernel_names_the_numa_node_of_a_new_pci(void **state)
{
    static const char *const folders[] = {
        "", "/sys", "/sys/bus", "/sys/bus/pci", "/sys/bus/pci/devices",
        "/sys/bus/pci/devices/0000:17:00.0", "/sys/bus/pci/devices/0000:b3:00.0",
    };
    static const struct {
        const char *file, *text;
    } files[] = {
        {"/sys/bus/pci/devices/0000:17:00.0/numa_node", "3\n"},
        {"/sys/bus/pci/devices/0000:17:00.0/class", "0x030000\n"},
        {"/sys/bus/pci/devices/0000:b3:00.0/numa_node", "-1\n"},
    };
    char root[] = "/tmp/tutti-nvml-XXXXXX", path[256];
    struct tutti_inventory *found;
    uint32_t pci, cpu;

    (void)state;
    assert_non_null(mkdtemp(root));
    for (size_t i = 1; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s%s", root, files[i].file);
        file = fopen(path, "w");
        assert_true(file != NULL && fputs(files[i].text, file) >= 0 && fclose(file) == 0);
    }
    use(SIM_NVML, path_of("pcie-2"));
    found = detected(root);
    for (size_t i = sizeof files / sizeof files[0]; i-- > 0;) {
        snprintf(path, sizeof path, "%s%s", root, files[i].file);
        unlink(path);
    }
    for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        rmdir(path);
    }
    pci = tutti_inventory_find_pci(found, 0x17000);
    cpu = found->devices[pci].parent;
    assert_int_equal(tutti_device_number(found, cpu, TUTTI_PROPERTY_NUMA, -1), 3);
    assert_int_equal(found->devices[cpu].found_by, TUTTI_SOURCE_SYSFS);
    assert_int_equal(tutti_device_number(found, pci, TUTTI_PROPERTY_CLASS, 0), 0x030000);
    /* The kernel does not know where the other is: with the first. */
    assert_int_equal(found->devices[tutti_inventory_find_pci(found, 0xb3000)].parent, cpu);
    tutti_inventory_destroy(found);
}

static void a_gpu_split_by_mig_stays_one(void **state)
{
    struct tutti_inventory *inventory;

    (void)state;
    use(SIM_NVML, path_of("mesh-4"));
    setenv("TUTTI_SIM_NVML_MIG", "1", 1);
    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    assert_int_equal(count_lines_with(detect(NOTHING_HERE, inventory), "MIG"), 4);
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_GPU), 4);
    tutti_inventory_destroy(inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvml_alone_finds_the_gpus_and_links_of_every_machine),
        cmocka_unit_test(what_other_phases_found_keeps_its_place),
        cmocka_unit_test(a_users_file_is_not_overruled),
        cmocka_unit_test(recorded_machines_are_found_as_they_were_recorded),
        cmocka_unit_test(gpus_of_one_clique_have_one_fabric),
        cmocka_unit_test(the_kernel_names_the_numa_node_of_a_new_pci),
        cmocka_unit_test(a_gpu_split_by_mig_stays_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
