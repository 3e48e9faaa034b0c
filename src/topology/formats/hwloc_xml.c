/* SPDX-License-Identifier: Apache-2.0
 * Reads hwloc's XML into an inventory, by the steps in hwloc_build.h. */
#include "topology/formats/hwloc_xml.h"

#include "base/result.h"
#include "topology/formats/hwloc_build.h"

#include <stdlib.h>

static int set_machine_name(struct tutti_hwloc_build *build)
{
    static const char *const names[] = {"DMIProductName", "PlatformModel"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *name = tutti_hwloc_machine_info(build->hwloc, names[i]);

        if (name != NULL && *name != '\0')
            return tutti_device_set_text(build->inventory, 0, TUTTI_PROPERTY_MODEL_NAME,
                                         build->source, name);
    }
    return TUTTI_OK;
}

static int build_inventory(struct tutti_hwloc_build *build)
{
    TUTTI_TRY(set_machine_name(build));
    TUTTI_TRY(tutti_hwloc_add_cpus(build));
    TUTTI_TRY(tutti_hwloc_add_devices(build));
    TUTTI_TRY(tutti_hwloc_add_links(build));
    tutti_hwloc_remove_bare_cpus(build);
    return TUTTI_OK;
}

static int allocate_and_build(struct tutti_hwloc_build *build)
{
    size_t n = build->hwloc->nobjects;
    int rc;

    build->device_of = malloc(n * sizeof *build->device_of);
    build->home_of = malloc(n * sizeof *build->home_of);
    build->is_sure = calloc(n, sizeof *build->is_sure);
    if (build->device_of == NULL || build->home_of == NULL || build->is_sure == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu objects", n);
        goto free_all;
    }
    for (size_t i = 0; i < n; i++)
        build->device_of[i] = build->home_of[i] = TUTTI_NO_DEVICE;
    rc = build_inventory(build);
free_all:
    free(build->device_of);
    free(build->home_of);
    free(build->is_sure);
    return rc;
}

int tutti_hwloc_xml_read(const char *name, const char *text, size_t length,
                         enum tutti_source source, struct tutti_inventory **ret_inventory)
{
    struct tutti_hwloc hwloc;
    struct tutti_hwloc_build build = {.hwloc = &hwloc, .source = source};
    int rc;

    TUTTI_TRY(tutti_hwloc_read(name, text, length, &hwloc));
    TUTTI_TRY_OR(fini_hwloc, rc, tutti_inventory_create(&build.inventory));
    rc = allocate_and_build(&build);
    if (rc == TUTTI_OK)
        *ret_inventory = build.inventory;
    else
        tutti_inventory_destroy(build.inventory);
    /* The inventory's message, such as for too many devices, does not name the text. */
    if (rc == TUTTI_ERR_ARGUMENT)
        rc = tutti_fail(rc, "%s: %s", name, tutti_message_last());
fini_hwloc:
    tutti_hwloc_fini(&hwloc);
    return rc;
}
