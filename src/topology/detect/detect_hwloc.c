/* SPDX-License-Identifier: Apache-2.0
 * Runs the hwloc phase of detection. hwloc's result is exported as XML and read like a file, so
 * recorded machines and this machine go through the same code. */
#include "base/result.h"
#include "topology/detect/phases.h"
#include "topology/formats/hwloc_xml.h"
#include "wrap/hwloc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- another root ---------------------------------------------------------------------------- */

/* These variables are the only way to give hwloc another root. The list of components leaves out
 * hwloc's x86 component, because that component queries this machine's processor. */
static const struct variable {
    const char *name;
    const char *value; /* NULL: the root */
} variables[] = {
    {"HWLOC_FSROOT", NULL},
    {"HWLOC_THISSYSTEM", "0"},
    {"HWLOC_COMPONENTS", "linux,stop"},
};
#define NVARIABLES (sizeof variables / sizeof variables[0])

/* The values of the variables before the call. */
struct environment {
    char *kept[NVARIABLES]; /* NULL: the variable was not set */
};

static void restore_environment(struct environment *environment)
{
    for (size_t i = 0; i < NVARIABLES; i++) {
        if (environment->kept[i] != NULL)
            setenv(variables[i].name, environment->kept[i], 1);
        else
            unsetenv(variables[i].name);
        free(environment->kept[i]);
    }
}

static int change_environment(const char *root, struct environment *ret_environment)
{
    bool is_done = true;

    *ret_environment = (struct environment){0};
    for (size_t i = 0; i < NVARIABLES; i++) {
        const char *value = getenv(variables[i].name);

        ret_environment->kept[i] = value == NULL ? NULL : strdup(value);
        is_done = is_done && (value == NULL || ret_environment->kept[i] != NULL) &&
                  setenv(variables[i].name,
                         variables[i].value != NULL ? variables[i].value : root, 1) == 0;
    }
    if (is_done)
        return TUTTI_OK;
    restore_environment(ret_environment);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to set hwloc's environment");
}

/* ---- the library ----------------------------------------------------------------------------- */

/* Loads all CPUs, including those that this process may not use, because confines.c finds the
 * limits of the process separately. `devices` says which devices hwloc reports. Components that
 * open drivers for computing are excluded: they take seconds, and other phases query these drivers.
 * The component for PCI is excluded because it only repeats the results of the Linux component,
 * with a library that leaks memory. */
static int load_topology(const struct tutti_libhwloc *hwloc, hwloc_topology_t topology,
                         enum hwloc_type_filter_e devices)
{
    static const char *const unwanted[] = {"cuda", "nvml", "opencl", "gl", "pci"};

    if (hwloc->topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc->topology_set_io_types_filter(topology, devices) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "hwloc refuses its settings: %s", strerror(errno));
    /* The call fails for a component that this hwloc was built without, so errors are ignored. */
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        hwloc->topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      unwanted[i]);
    if (hwloc->topology_load(topology) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "hwloc finds no topology of this machine: %s",
                          strerror(errno));
    return TUTTI_OK;
}

static int read_topology(const struct tutti_libhwloc *hwloc, hwloc_topology_t topology,
                         struct tutti_inventory **ret_inventory)
{
    char *text;
    int length, rc;

    if (hwloc->topology_export_xmlbuffer(topology, &text, &length, 0) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "hwloc exports no XML: %s", strerror(errno));
    rc = tutti_hwloc_xml_read("hwloc", text, strlen(text), TUTTI_SOURCE_HWLOC, ret_inventory);
    hwloc->free_xmlbuffer(topology, text);
    return rc;
}

static int ask_hwloc(enum hwloc_type_filter_e devices, struct tutti_inventory **ret_inventory)
{
    const struct tutti_libhwloc *hwloc = tutti_libhwloc_get();
    hwloc_topology_t topology;
    char why_not[TUTTI_MESSAGE_BYTES / 2];
    int rc;

    if (hwloc == NULL) {
        snprintf(why_not, sizeof why_not, "%s", tutti_message_last());
        return tutti_note(TUTTI_ERR_SYSTEM, "no hwloc, by which the CPUs and buses of a host are "
                          "found: %s; install it (Debian: libhwloc15)", why_not);
    }
    if (hwloc->topology_init(&topology) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "hwloc does not start: %s", strerror(errno));
    rc = load_topology(hwloc, topology, devices);
    if (rc == TUTTI_OK)
        rc = read_topology(hwloc, topology, ret_inventory);
    hwloc->topology_destroy(topology);
    return rc;
}

/* hwloc must not run without CPUs. If another root has no CPUs, hwloc wrongly reports the CPUs of
 * this machine. If the kernel of this machine shows no CPUs, hwloc complains on stderr, which is
 * reserved for our own lines. */
static bool has_cpus(const char *root)
{
    char path[PATH_MAX];

    return (size_t)snprintf(path, sizeof path, "%s/sys/devices/system/cpu", root) < sizeof path &&
           access(path, R_OK) == 0;
}

static int detect(const char *root, enum hwloc_type_filter_e devices,
                  struct tutti_inventory *inventory)
{
    struct tutti_inventory *found, empty;
    struct environment environment;
    int rc;

    if (!has_cpus(root))
        return TUTTI_OK;
    if (*root != '\0')
        TUTTI_TRY(change_environment(root, &environment));
    rc = ask_hwloc(devices, &found);
    if (*root != '\0')
        restore_environment(&environment);
    if (rc != TUTTI_OK)
        return rc;
    /* The caller's inventory gets the contents of `found`, and its own are freed. */
    empty = *inventory;
    *inventory = *found;
    *found = empty;
    tutti_inventory_destroy(found);
    return TUTTI_OK;
}

int tutti_detect_hwloc(const char *root, struct tutti_inventory *inventory)
{
    return detect(root, HWLOC_TYPE_FILTER_KEEP_IMPORTANT, inventory);
}

int tutti_detect_hwloc_cpus(const char *root, struct tutti_inventory *inventory)
{
    return detect(root, HWLOC_TYPE_FILTER_KEEP_NONE, inventory);
}
