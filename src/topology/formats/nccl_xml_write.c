/* SPDX-License-Identifier: Apache-2.0
 * Writes NCCL's XML of a machine, as nccl_xml.h defines it. */
#include "topology/formats/nccl_xml.h"

#include "base/result.h"
#include "topology/formats/xml.h"

#include <stdlib.h>
#include <string.h>

/* The room for a value of any form except text and mask, which are written without a copy. */
#define WRITTEN_BYTES 64

/* Returns true if the machine has AMD GPUs, so that nvlinks are xGMI links. */
static bool has_amd_gpus(const struct tutti_inventory *inventory)
{
    uint32_t gpu = TUTTI_NO_DEVICE;

    if (tutti_device_number(inventory, 0, TUTTI_PROPERTY_VERSION, 1) == 2)
        return true;
    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE)
        if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN))
            return true;
    return false;
}

static void write_attributes(FILE *out, const struct tutti_inventory *inventory, uint32_t device)
{
    for (int property = 0; property < TUTTI_PROPERTY_COUNT; property++) {
        const struct tutti_property_info *info = tutti_property_info(property);
        char written[WRITTEN_BYTES];

        if (!tutti_device_has(inventory, device, property) || property == TUTTI_PROPERTY_CACHES)
            continue;
        if (tutti_property_is_text(property)) {
            tutti_xml_put(out, info->name, tutti_device_text(inventory, device, property));
            continue;
        }
        tutti_device_write(inventory, device, property, written, sizeof written);
        tutti_xml_put(out, info->name, written);
    }
}

/* Caches are written as elements, because NCCL accepts no value as long as all masks of a large
 * cpu. */
static void write_caches(FILE *out, const struct tutti_inventory *inventory, uint32_t cpu)
{
    const char *at = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CACHES);
    bool is_last = !tutti_device_has(inventory, cpu, TUTTI_PROPERTY_CACHES);

    while (!is_last) {
        size_t length = strcspn(at, ";");
        char mask[TUTTI_XML_VALUE_BYTES];

        snprintf(mask, sizeof mask, "%.*s", (int)length, at);
        fputs("    <cache", out);
        tutti_xml_put(out, "cpus", mask);
        fputs("/>\n", out);
        is_last = at[length] == '\0';
        at += length + 1;
    }
}

/* Writes the start tag of a device, and the caches of a cpu. */
static void write_begin(FILE *out, const struct tutti_inventory *inventory, uint32_t device,
                        uint32_t depth, const char *name, bool is_empty)
{
    fprintf(out, "%*s<%s", (int)(2 * depth), "", name);
    write_attributes(out, inventory, device);
    fputs(is_empty ? "/>\n" : ">\n", out);
    write_caches(out, inventory, device);
}

/* Writes all elements, with a loop instead of recursion, because the tree may be deep. */
static void write_tree(FILE *out, const struct tutti_inventory *inventory)
{
    const struct tutti_device *devices = inventory->devices;
    const char *names[TUTTI_DEVICE_COUNT];
    uint32_t device = 0, depth = 0;

    for (int kind = 0; kind < TUTTI_DEVICE_COUNT; kind++)
        names[kind] = tutti_device_kind_name(kind);
    if (has_amd_gpus(inventory))
        names[TUTTI_DEVICE_NVLINK] = "xgmi";
    while (device != TUTTI_NO_DEVICE) {
        const char *name = names[devices[device].kind];
        bool is_leaf = devices[device].first_child == TUTTI_NO_DEVICE;
        bool is_empty = is_leaf && !tutti_device_has(inventory, device, TUTTI_PROPERTY_CACHES);

        write_begin(out, inventory, device, depth, name, is_empty);
        if (!is_leaf) {
            device = devices[device].first_child;
            depth++;
            continue;
        }
        if (!is_empty)
            fprintf(out, "%*s</%s>\n", (int)(2 * depth), "", name);
        for (; device != 0 && devices[device].next == TUTTI_NO_DEVICE; depth--) {
            device = devices[device].parent;
            fprintf(out, "%*s</%s>\n", (int)(2 * (depth - 1)), "", names[devices[device].kind]);
        }
        device = device == 0 ? TUTTI_NO_DEVICE : devices[device].next;
    }
}

int tutti_xml_write_nccl(const struct tutti_inventory *inventory, char **ret_text)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_written = out != NULL;

    if (out != NULL) {
        write_tree(out, inventory);
        is_written = ferror(out) == 0;
        is_written = fclose(out) == 0 && is_written;
    }
    if (!is_written) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write a topology of %u devices",
                          inventory->count);
    }
    *ret_text = text;
    return TUTTI_OK;
}
