/* SPDX-License-Identifier: Apache-2.0
 * Reads hwloc's XML of other machines, in all its forms. Each is read, and has the devices that
 * the list of its collection says. */
#include "base/result.h"
#include "topology/formats/hwloc_xml.h"
#include "topology/recordings.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A file that is not listed is read all the same. */
static const struct counts {
    const char *name;
    uint32_t ncpus, ngpus, nnics, nnets;
    int64_t nlinks;      /* ends of NVLinks and xGMI links */
    int64_t gpu0_node;   /* the NUMA node of the GPU with number 0; -1: there is none */
    const char *package; /* of each cpu, in order */
} listed[] = {
    /* The list counts NICs that can do RDMA; here those of plain Ethernet count, too. */
    {"nvidia-dgx2-16xV100.xml", 2, 16, 0, 0, 96, 0, "0 1"},
    {"power8-4xP100-nvlink.xml", 2, 4, 0, 0, 16, 0, "0 1"},
    {"nvidia-dgx-gb10.xml", 1, 0, 0, 0, 0, -1, "36"},
    {"32em64t-3xTesla-1xAMD-ib.xml", 2, 4, 3, 3, 0, 1, "0 1"},
    {"lassen-4xV100-power9.xml", 2, 4, 6, 6, 0, 0, "0 8"},
    {"tioga-8gcd-MI250X.xml", 4, 8, 5, 5, 56, 3, "0 0 0 0"},
    {"pascal-2xP100-pcie.xml", 2, 2, 3, 3, 0, 0, "0 1"},
    {"aws-g4dn.metal-8xT4.xml", 2, 8, 2, 2, 0, 0, "0 1"},
    {"corona-8xMI50.xml", 2, 8, 3, 3, 0, 0, "0 1"},
    {"chimera-mixed-amd-nvidia.xml", 4, 2, 3, 3, 0, 0, "0 0 0 0"},
    /* Two of its NUMA nodes have neither CPUs nor devices; four of its RDMA ports are down. */
    {"h200-4x-epyc9555-nvml.xml", 6, 4, 7, 3, 72, 1, "0 0 0 0 1 1"},
    {"lyra4-1xVega20-epyc.xml", 4, 1, 2, 2, 0, 3, "0 0 0 0"},
    {"intel-4xPonteVecchio.xml", 2, 4, 0, 0, 0, 0, "0 1"},
};

/* ---- files ----------------------------------------------------------------------------------- */

/* The next file of XML; NULL: there is no more. */
static const char *next_file(DIR *folder)
{
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length > 4 && strcmp(entry->d_name + length - 4, ".xml") == 0)
            return entry->d_name;
    }
    return NULL;
}

/* ---- what is in them ------------------------------------------------------------------------- */

static uint32_t count_kind(const struct tutti_inventory *inventory, enum tutti_device_kind kind)
{
    uint32_t device = TUTTI_NO_DEVICE, count = 0;

    while ((device = tutti_inventory_next_of(inventory, device, kind)) != TUTTI_NO_DEVICE)
        count++;
    return count;
}

static int64_t node_of_gpu0(const struct tutti_inventory *inventory)
{
    uint32_t gpu = TUTTI_NO_DEVICE;

    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE)
        if (tutti_device_number(inventory, gpu, TUTTI_PROPERTY_DEV, -1) == 0)
            return tutti_device_number(inventory,
                                       tutti_inventory_above(inventory, gpu, TUTTI_DEVICE_CPU),
                                       TUTTI_PROPERTY_NUMA, -2);
    return -1;
}

static void check_counts(const struct tutti_inventory *inventory, const struct counts *counts)
{
    uint32_t device = TUTTI_NO_DEVICE;
    int64_t nlinks = 0;
    char package[256] = "";

    print_message("%s\n", counts->name);
    while ((device = tutti_inventory_next_of(inventory, device, TUTTI_DEVICE_NVLINK)) !=
           TUTTI_NO_DEVICE)
        nlinks += tutti_device_number(inventory, device, TUTTI_PROPERTY_LINKS, 0);
    for (device = inventory->devices[0].first_child; device != TUTTI_NO_DEVICE;
         device = inventory->devices[device].next)
        sprintf(package + strlen(package), *package == '\0' ? "%d" : " %d",
                (int)tutti_device_number(inventory, device, TUTTI_PROPERTY_PACKAGE, -1));
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_CPU), counts->ncpus);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_GPU), counts->ngpus);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_NIC), counts->nnics);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_NET), counts->nnets);
    assert_int_equal(nlinks, counts->nlinks);
    assert_int_equal(node_of_gpu0(inventory), counts->gpu0_node);
    assert_string_equal(package, counts->package);
}

static void every_machine_has_its_devices(void **state)
{
    char folder_path[1024];
    DIR *folder = recordings_open("hwloc-xml", folder_path, sizeof folder_path);
    const char *name;

    (void)state;
    while ((name = next_file(folder)) != NULL) {
        struct tutti_inventory *inventory;
        size_t length;
        char *text = recordings_load(folder_path, name, &length);

        if (tutti_hwloc_xml_read(name, text, length, TUTTI_SOURCE_FILE, &inventory) != TUTTI_OK)
            fail_msg("%s", tutti_message_last());
        for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
            if (strcmp(listed[i].name, name) == 0)
                check_counts(inventory, &listed[i]);
        tutti_inventory_destroy(inventory);
        free(text);
    }
    closedir(folder);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    char folder_path[1024];
    DIR *folder = recordings_open("hwloc-xml", folder_path, sizeof folder_path);
    const char *name;

    (void)state;
    while ((name = next_file(folder)) != NULL) {
        size_t length, end;
        char *text = recordings_load(folder_path, name, &length);

        for (end = length; end > 0 && text[end - 1] != '>'; )
            end--;
        for (size_t i = 1; i <= 20; i++) {
            struct tutti_inventory *inventory = NULL;

            assert_int_equal(tutti_hwloc_xml_read(name, text, (end - 1) * i / 20,
                                                  TUTTI_SOURCE_FILE, &inventory),
                             TUTTI_ERR_ARGUMENT);
            assert_null(inventory);
        }
        free(text);
    }
    closedir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_has_its_devices),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
