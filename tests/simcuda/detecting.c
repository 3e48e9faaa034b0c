/* SPDX-License-Identifier: Apache-2.0
 * Runs the NVML phase on simulated machines. */
#include "simcuda/detecting.h"

#include "base/param.h"
#include "base/result.h"
#include "support/stderr_text.h"
#include "topology/detect/nvml.h"
#include "topology/detect/place.h"
#include "topology/formats/nccl_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

const char *const machines[NMACHINES] = {
    "nvswitch-8", "nvswitch-8-hidden", "mesh-4", "superchip-4", "cliques-4", "pcie-2", "npu-2",
};

const char *path_of(const char *machine)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s.xml", SIM_TOPOLOGIES, machine);
    return path;
}

struct tutti_inventory *load(const char *path)
{
    struct tutti_inventory *inventory;
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof text, file);
    fclose(file);
    if (tutti_xml_read_nccl(path, text, length, TUTTI_SOURCE_HWLOC, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return inventory;
}

void use(const char *library, const char *path)
{
    setenv("TUTTI_NVML_LIBRARY", library, 1);
    setenv("TUTTI_SIM_TOPOLOGY", path, 1);
    setenv("TUTTI_DEBUG", "debug", 1);
    unsetenv("TUTTI_SIM_NVML_FAULT");
    unsetenv("TUTTI_SIM_NVML_MIG");
    tutti_param_reset();
}

const char *detect(const char *root, struct tutti_inventory *inventory)
{
    int rc;

    stderr_text_begin();
    rc = tutti_detect_nvml(root, inventory);
    if (rc != TUTTI_OK)
        fail_msg("%s\n%s", tutti_message_last(), stderr_text_end());
    return stderr_text_end();
}

struct tutti_inventory *detected(const char *root)
{
    struct tutti_inventory *inventory;

    assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
    detect(root, inventory);
    return inventory;
}

uint32_t count_of(const struct tutti_inventory *inventory, enum tutti_device_kind kind)
{
    uint32_t device = TUTTI_NO_DEVICE, count = 0;

    while ((device = tutti_inventory_next_of(inventory, device, kind)) != TUTTI_NO_DEVICE)
        count++;
    return count;
}

uint32_t same_gpu(const struct tutti_inventory *other, uint32_t gpu,
                  const struct tutti_inventory *inventory)
{
    uint32_t pci = tutti_inventory_find_pci(
        inventory, tutti_device_number(other, other->devices[gpu].parent, TUTTI_PROPERTY_BUSID, 0));

    return pci == TUTTI_NO_DEVICE ? pci : tutti_detect_child(inventory, pci, TUTTI_DEVICE_GPU);
}

uint32_t find_link(const struct tutti_inventory *inventory, uint32_t gpu, int64_t target)
{
    uint32_t i = inventory->devices[gpu].first_child;

    while (i != TUTTI_NO_DEVICE &&
           tutti_device_number(inventory, i, TUTTI_PROPERTY_TARGET, -1) != target)
        i = inventory->devices[i].next;
    return i;
}
