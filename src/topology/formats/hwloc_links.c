/* SPDX-License-Identifier: Apache-2.0
 * Adds the links between GPUs, from the matrices of hwloc's XML. */
#include "base/result.h"
#include "topology/formats/hwloc_build.h"
#include "topology/inventory/pci_ids.h"

#include <stdlib.h>
#include <string.h>

/* The most links between two devices; a larger number is taken for a wrong rate. */
#define MOST_LINKS 64

/* An object with its persistent number. */
struct number {
    uint64_t gp_index;
    uint32_t object;
};

struct links {
    struct tutti_hwloc_build *build;
    struct number *numbers; /* of all objects that have one, ascending */
    uint32_t count;         /* of numbers */
};

static int compare_numbers(const void *a, const void *b)
{
    const struct number *left = a, *right = b;

    return left->gp_index < right->gp_index ? -1 : left->gp_index > right->gp_index;
}

/* Returns the object with this number; TUTTI_NO_OBJECT: none. */
static uint32_t object_of(const struct links *links, uint64_t gp_index)
{
    const struct number key = {.gp_index = gp_index};
    const struct number *found =
        bsearch(&key, links->numbers, links->count, sizeof key, compare_numbers);

    return found == NULL ? TUTTI_NO_OBJECT : found->object;
}

/* Returns the gpu of a PCI object, or of a driver's device within a PCI object. TUTTI_NO_DEVICE:
 * the object belongs to no gpu. */
static uint32_t gpu_of(const struct links *links, uint32_t object)
{
    const struct tutti_inventory *inventory = links->build->inventory;
    uint32_t pci = tutti_hwloc_enclosing(links->build->hwloc, object, TUTTI_HWLOC_PCI), child;

    if (pci == TUTTI_NO_OBJECT || links->build->device_of[pci] == TUTTI_NO_DEVICE)
        return TUTTI_NO_DEVICE;
    child = inventory->devices[links->build->device_of[pci]].first_child;
    return child != TUTTI_NO_DEVICE && inventory->devices[child].kind == TUTTI_DEVICE_GPU
               ? child
               : TUTTI_NO_DEVICE;
}

/* ---- one link -------------------------------------------------------------------------------- */

/* Returns true if the gpu has links to this bus id and class. */
static bool has_link(const struct tutti_inventory *inventory, uint32_t gpu, int64_t busid,
                     int64_t target_class)
{
    for (uint32_t i = inventory->devices[gpu].first_child; i != TUTTI_NO_DEVICE;
         i = inventory->devices[i].next)
        if (tutti_device_number(inventory, i, TUTTI_PROPERTY_TARGET, -1) == busid &&
            tutti_device_number(inventory, i, TUTTI_PROPERTY_TCLASS, -1) == target_class)
            return true;
    return false;
}

/* Returns the number of links that give this rate together. The number is sure if the rate is a
 * multiple of the rate of one link of the GPU's generation; else the number is 1. */
static int64_t guess_link_count(const struct tutti_hwloc_build *build, uint32_t gpu, bool is_nvlink,
                                uint64_t mbytes_per_s, bool *ret_is_sure)
{
    uint64_t mbytes_per_link = tutti_nvlink_mbytes_per_s(
        tutti_device_number(build->inventory, gpu, TUTTI_PROPERTY_SM, 0));

    *ret_is_sure = is_nvlink && mbytes_per_s % mbytes_per_link == 0 &&
                   mbytes_per_s / mbytes_per_link <= MOST_LINKS;
    return *ret_is_sure ? (int64_t)(mbytes_per_s / mbytes_per_link) : 1;
}

/* Returns the PCI class of the other end. A package there is the GPU's own CPU, as on POWER8 and
 * POWER9. Any other object that is no GPU is a switch, even if the PCI configuration could not be
 * read and the class is 0. */
static int64_t target_class_of(const struct links *links, uint32_t target, uint32_t pci)
{
    if (pci == TUTTI_NO_OBJECT)
        return TUTTI_PCI_CLASS_NVLINK_TO_CPU;
    return gpu_of(links, target) == TUTTI_NO_DEVICE ? TUTTI_PCI_CLASS_NVSWITCH
                                                    : links->build->hwloc->objects[pci].pci_class;
}

/* Adds the links from a gpu to an object, unless another matrix gave them already. */
static int add_link(const struct links *links, uint32_t gpu, uint32_t target, bool is_nvlink,
                    uint64_t mbytes_per_s)
{
    struct tutti_inventory *inventory = links->build->inventory;
    const struct tutti_hwloc *hwloc = links->build->hwloc;
    uint32_t pci = tutti_hwloc_enclosing(hwloc, target, TUTTI_HWLOC_PCI), link;
    int64_t busid = pci == TUTTI_NO_OBJECT ? -1 : hwloc->objects[pci].busid;
    int64_t target_class = target_class_of(links, target, pci);
    enum tutti_source source = links->build->source;
    bool is_sure;
    int64_t count = guess_link_count(links->build, gpu, is_nvlink, mbytes_per_s, &is_sure);

    if (has_link(inventory, gpu, busid, target_class))
        return TUTTI_OK;
    TUTTI_TRY(tutti_inventory_add(inventory, gpu, TUTTI_DEVICE_NVLINK, source, &link));
    if (busid >= 0)
        TUTTI_TRY(tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TARGET, source, busid));
    TUTTI_TRY(tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TCLASS, source,
                                      target_class));
    return tutti_device_set_number(inventory, link, TUTTI_PROPERTY_LINKS,
                                   is_sure ? source : TUTTI_SOURCE_ASSUMED, count);
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* Returns the numbers of xGMI hops between a matrix's objects; NULL: no matrix gives them. */
static const uint64_t *find_hops(const struct tutti_hwloc *hwloc,
                                 const struct tutti_hwloc_matrix *matrix)
{
    size_t n = matrix->nobjects;

    for (uint32_t m = 0; m < hwloc->nmatrices; m++) {
        const struct tutti_hwloc_matrix *other = &hwloc->matrices[m];

        if (strcmp(other->name, "XGMIHops") == 0 && other->nobjects == n &&
            memcmp(other->objects, matrix->objects, n * sizeof *matrix->objects) == 0)
            return other->values;
    }
    return NULL;
}

/* Adds the links of one matrix. ROCm SMI also gives a rate for GPUs that are linked only through
 * other GPUs. These pairs are skipped. */
static int add_matrix(const struct links *links, const struct tutti_hwloc_matrix *matrix)
{
    bool is_nvlink = strcmp(matrix->name, "NVLinkBandwidth") == 0;
    const uint64_t *hops = is_nvlink ? NULL : find_hops(links->build->hwloc, matrix);

    for (uint32_t i = 0; i < matrix->nobjects; i++) {
        uint32_t from = object_of(links, matrix->objects[i]);
        uint32_t gpu = from == TUTTI_NO_OBJECT ? TUTTI_NO_DEVICE : gpu_of(links, from);

        for (uint32_t j = 0; gpu != TUTTI_NO_DEVICE && j < matrix->nobjects; j++) {
            size_t at = (size_t)i * matrix->nobjects + j;
            uint32_t to = object_of(links, matrix->objects[j]);

            if (i == j || matrix->values[at] == 0 || to == TUTTI_NO_OBJECT ||
                gpu_of(links, to) == gpu || (hops != NULL && hops[at] != 1))
                continue;
            TUTTI_TRY(add_link(links, gpu, to, is_nvlink, matrix->values[at]));
        }
    }
    return TUTTI_OK;
}

int tutti_hwloc_add_links(struct tutti_hwloc_build *build)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    struct links links = {.build = build};
    int rc = TUTTI_OK;

    if (hwloc->nmatrices == 0)
        return TUTTI_OK;
    links.numbers = malloc(hwloc->nobjects * sizeof *links.numbers);
    if (links.numbers == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u objects", hwloc->nobjects);
    for (uint32_t i = 0; i < hwloc->nobjects; i++)
        if (hwloc->objects[i].gp_index != 0)
            links.numbers[links.count++] =
                (struct number){.gp_index = hwloc->objects[i].gp_index, .object = i};
    qsort(links.numbers, links.count, sizeof *links.numbers, compare_numbers);
    for (uint32_t m = 0; rc == TUTTI_OK && m < hwloc->nmatrices; m++)
        if (strcmp(hwloc->matrices[m].name, "XGMIHops") != 0)
            rc = add_matrix(&links, &hwloc->matrices[m]);
    free(links.numbers);
    return rc;
}
