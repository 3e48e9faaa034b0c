/* SPDX-License-Identifier: Apache-2.0
 * Runs the phases of detection in order. */
#include "topology/detect/detect.h"

#include "base/log.h"
#include "base/result.h"
#include "topology/detect/nvml.h"
#include "topology/detect/phases.h"
#include "topology/detect/place.h"
#include "topology/detect/verbs.h"
#include "topology/formats/load.h"

struct phase {
    const char *name;
    int (*find)(const char *root, struct tutti_inventory *inventory);
    enum tutti_source source; /* source of the phase's values */
};

/* Drivers know only this machine, so these phases do not run for another root. */
static bool asks_drivers(const struct phase *phase)
{
    return phase->source == TUTTI_SOURCE_NVML || phase->source == TUTTI_SOURCE_VERBS;
}

/* Phases that find devices come before phases that add values to them. */
static const struct phase phases[] = {
    {"hwloc", tutti_detect_hwloc, TUTTI_SOURCE_HWLOC},
    {"kfd", tutti_detect_kfd, TUTTI_SOURCE_SYSFS},
    {"nvml", tutti_detect_nvml, TUTTI_SOURCE_NVML},
    {"sysfs-nics", tutti_detect_sysfs_nics, TUTTI_SOURCE_SYSFS},
    {"verbs", tutti_detect_verbs, TUTTI_SOURCE_VERBS},
    {"sysfs-pci", tutti_detect_sysfs_pci, TUTTI_SOURCE_SYSFS},
};

static int run_phases(const struct tutti_detect_options *options, const char *root,
                      struct tutti_inventory *inventory)
{
    if (options->is_cpus_only)
        return tutti_detect_hwloc_cpus(root, inventory);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        uint32_t before = inventory->count;

        if (asks_drivers(&phases[i]) && *root != '\0')
            continue;
        TUTTI_TRY(phases[i].find(root, inventory));
        tutti_log(TUTTI_LOG_DEBUG, "topology: %s adds %u devices", phases[i].name,
                  inventory->count - before);
    }
    return TUTTI_OK;
}

int tutti_detect(const struct tutti_detect_options *options,
                 struct tutti_inventory **ret_inventory)
{
    struct tutti_inventory *inventory;
    uint32_t cpu;
    int rc;

    if (options->given != NULL)
        return tutti_formats_load(options->given, ret_inventory);
    TUTTI_TRY(tutti_inventory_create(&inventory));
    rc = run_phases(options, options->root != NULL ? options->root : "", inventory);
    if (rc == TUTTI_OK)
        rc = tutti_detect_ensure_cpu(inventory, &cpu);
    if (rc != TUTTI_OK) {
        tutti_inventory_destroy(inventory);
        return rc;
    }
    *ret_inventory = inventory;
    return TUTTI_OK;
}
