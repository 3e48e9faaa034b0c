/* SPDX-License-Identifier: Apache-2.0
 * Reads topologies that other programs wrote on other machines. All are read, written, and read
 * again as the same, and have as many devices as the list of their collection says. */
#include "base/result.h"
#include "support/inventories.h"
#include "topology/formats/nccl_xml.h"
#include "topology/recordings.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As the list has them; a file that is not listed is read all the same. */
static const struct counts {
    const char *name;
    uint32_t ngpus;
    int64_t nlinks; /* ends of NVLinks and xGMI links */
    uint32_t nnets, ncpus;
} listed[] = {
    {"azure-ncv4-4xA100pcie.xml", 4, 48, 1, 4},
    {"azure-ncv4-4xA100pcie-selflink.xml", 4, 48, 1, 4},
    {"azure-nc48v4-2xA100pcie.xml", 2, 24, 1, 2},
    {"azure-ndv2-8xV100.xml", 8, 0, 1, 2},
    {"azure-ndv4-8xA100.xml", 8, 0, 8, 4},
    {"azure-ndv5-8xH100.xml", 8, 0, 8, 2},
    {"aws-g5.48xl-8xA10G.xml", 8, 0, 1, 2},
    {"aws-p4d.24xl-8xA100.xml", 8, 0, 4, 2},
    {"aws-p5.48xl-8xH100-32efa.xml", 8, 0, 32, 1},
    {"oci-BM.GPU4.8-8xA100.xml", 8, 96, 16, 4},
    {"oci-BM.GPU.H100.8.xml", 8, 144, 16, 2},
    {"oci-a100-flattened-b4.xml", 8, 0, 8, 4},
    {"ibm-gx3d-8xH100-vm.xml", 8, 144, 8, 2},
    {"lab-4xA6000-pcie.xml", 4, 0, 10, 2},
    {"lab-8xH800-nvswitch.xml", 8, 64, 8, 2},
    {"lab-2x4090-dualport-ib.xml", 2, 0, 2, 2},
    {"modal-8xB200-vm.xml", 8, 144, 13, 2},
    {"flagcx-8xA800-apu-tag.xml", 8, 0, 3, 2},
    {"rccl-3xMI200-pcie.xml", 3, 0, 1, 2},
    {"rccl-4xMI50-ring.xml", 4, 8, 1, 1},
    {"rccl-8xMI50-2hive-2nic.xml", 8, 16, 2, 1},
    {"rccl-4xMI100-mesh.xml", 4, 12, 2, 1},
    {"rccl-16xMI100-4hive-16nic.xml", 16, 48, 16, 1},
    {"rccl-8xMI100-2hive-nps4.xml", 8, 24, 1, 7},
    {"rccl-8xMI100-6link-4nic.xml", 8, 48, 4, 2},
    {"rccl-8xMI50-pcie-2nic.xml", 8, 0, 2, 1},
    {"rccl-8xMI50-rome.xml", 8, 16, 1, 2},
    {"rccl-8xMI100-rome-nps4-4nic.xml", 8, 24, 4, 4},
    {"rccl-8xMI50-8numa.xml", 8, 16, 2, 8},
    {"rccl-8gcd-MI250-4nic.xml", 8, 52, 4, 2},
    {"rccl-8gcd-MI250X-4numa-4nic.xml", 8, 52, 4, 4},
    {"rccl-16gcd-MI250-8nic.xml", 16, 112, 8, 4},
    {"rccl-8xMI300X-8nic.xml", 8, 56, 8, 2},
    {"rccl-8xMI350-8nic.xml", 8, 56, 8, 2},
    {"rccl-16xMI300-2hive-cascade.xml", 16, 112, 1, 2},
    {"perlmutter-4xA100.xml", 4, 48, 4, 4},
    {"hgx-8xB200-container.xml", 8, 144, 1, 2},
};

/* ---- files ----------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static uint32_t count_kind(const struct tutti_inventory *inventory, enum tutti_device_kind kind)
{
    uint32_t device = TUTTI_NO_DEVICE, count = 0;

    while ((device = tutti_inventory_next_of(inventory, device, kind)) != TUTTI_NO_DEVICE)
        count++;
    return count;
}

static void check_counts(const struct tutti_inventory *inventory, const struct counts *counts)
{
    uint32_t device = TUTTI_NO_DEVICE;
    int64_t nlinks = 0;

    while ((device = tutti_inventory_next_of(inventory, device, TUTTI_DEVICE_NVLINK)) !=
           TUTTI_NO_DEVICE)
        nlinks += tutti_device_number(inventory, device, TUTTI_PROPERTY_LINKS, 0);
    print_message("%s\n", counts->name);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_GPU), counts->ngpus);
    assert_int_equal(nlinks, counts->nlinks);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_NET), counts->nnets);
    assert_int_equal(count_kind(inventory, TUTTI_DEVICE_CPU), counts->ncpus);
}

/* Read, written, read; completed, written, read. */
static struct tutti_inventory *go_round(const char *name, const char *text, size_t length)
{
    struct tutti_inventory *inventory, *again;
    char *written;

    if (tutti_xml_read_nccl(name, text, length, TUTTI_SOURCE_FILE, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    for (int is_complete = 0; is_complete < 2; is_complete++) {
        if (is_complete)
            assert_int_equal(tutti_inventory_complete(inventory), TUTTI_OK);
        assert_int_equal(tutti_xml_write_nccl(inventory, &written), TUTTI_OK);
        if (tutti_xml_read_nccl("written", written, strlen(written), TUTTI_SOURCE_FILE, &again) !=
            TUTTI_OK)
            fail_msg("%s: %s", name, tutti_message_last());
        if (!inventories_equal(inventory, again))
            fail_msg("%s is not the same when written and read:\n%s", name, written);
        free(written);
        tutti_inventory_destroy(again);
    }
    return inventory;
}

static void topologies_are_read_counted_and_written(void **state)
{
    char path[1024];
    DIR *folder = recordings_open("nccl-xml", path, sizeof path);
    struct dirent *entry;
    size_t nfiles = 0;

    (void)state;
    while ((entry = readdir(folder)) != NULL) {
        struct tutti_inventory *inventory;
        size_t length;
        char *text;

        if (!ends_in(entry->d_name, ".xml") || ends_in(entry->d_name, ".graph.xml"))
            continue;
        nfiles++;
        text = recordings_load(path, entry->d_name, &length);
        inventory = go_round(entry->d_name, text, length);
        for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
            if (strcmp(entry->d_name, listed[i].name) == 0)
                check_counts(inventory, &listed[i]);
        tutti_inventory_destroy(inventory);
        free(text);
    }
    closedir(folder);
    print_message("%zu topologies in %s\n", nfiles, path);
    assert_true(nfiles > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topologies_are_read_counted_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
