/* SPDX-License-Identifier: Apache-2.0
 * Adds the GPUs and links that NVML reports to an inventory. */
#include "topology/detect/nvml.h"

#include "base/log.h"
#include "base/result.h"
#include "topology/detect/nvml_gpu.h"
#include "topology/detect/place.h"
#include "topology/inventory/pci_ids.h"

#include <stdio.h>
#include <stdlib.h>

#define SOURCE TUTTI_SOURCE_NVML

/* The most GPUs that are read. If NVML reports more, the others are ignored, with a warning. */
#define MOST_GPUS 256

/* ---- the GPU and its pci --------------------------------------------------------------------- */

static int set_pci(struct tutti_inventory *inventory, uint32_t pci,
                   const struct tutti_detect_nvml_facts *facts)
{
    const struct {
        enum tutti_property property;
        unsigned id;
    } ids[] = {
        {TUTTI_PROPERTY_PCI_VENDOR, facts->ids & 0xffff},
        {TUTTI_PROPERTY_PCI_DEVICE, facts->ids >> 16},
        {TUTTI_PROPERTY_SUBVENDOR, facts->subsystem_ids & 0xffff},
        {TUTTI_PROPERTY_SUBDEVICE, facts->subsystem_ids >> 16},
    };

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i].id != 0)
            TUTTI_TRY(tutti_device_set_number(inventory, pci, ids[i].property, SOURCE, ids[i].id));
    /* NVML does not report the class, so it is only assumed; a class from a file is kept. */
    TUTTI_TRY(tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_CLASS, TUTTI_SOURCE_ASSUMED,
                                      TUTTI_PCI_CLASS_GPU));
    if (facts->pcie_gts > 0)
        TUTTI_TRY(tutti_device_set_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, SOURCE,
                                        facts->pcie_gts));
    if (facts->pcie_width > 0)
        TUTTI_TRY(tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, SOURCE,
                                          facts->pcie_width));
    return TUTTI_OK;
}

static int set_gpu(struct tutti_inventory *inventory, uint32_t gpu,
                   const struct tutti_detect_nvml_facts *facts)
{
    TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_DEV, SOURCE, facts->index));
    if (facts->sm > 0)
        TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_SM, SOURCE, facts->sm));
    if (facts->name[0] != '\0')
        TUTTI_TRY(tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_MODEL_NAME, SOURCE,
                                        facts->name));
    if (facts->uuid[0] != '\0')
        TUTTI_TRY(tutti_device_set_text(inventory, gpu, TUTTI_PROPERTY_UUID, SOURCE, facts->uuid));
    if (facts->refuses_peers)
        TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_P2P, SOURCE, 0));
    if (facts->fabric != 0)
        TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_FABRIC, SOURCE,
                                          (int64_t)facts->fabric));
    return TUTTI_OK;
}

static void log_gpu(const struct tutti_detect_nvml_facts *facts)
{
    uint32_t links = 0;
    char address[32];

    for (uint32_t i = 0; i < facts->ntargets; i++)
        links += facts->targets[i].links;
    tutti_busid_write(facts->busid, address, sizeof address);
    tutti_log(TUTTI_LOG_DEBUG,
              "GPU %u (%s): %s, sm_%d, PCIe %g GT/s x%u, %u NVLinks to %u ends (NVML's version "
              "number %u, %u MB/s each), %u C2C links%s",
              facts->index, address, facts->name[0] != '\0' ? facts->name : "without a name",
              facts->sm, facts->pcie_gts, facts->pcie_width, links, facts->ntargets,
              facts->link_version, facts->link_mbytes_per_s, facts->c2c_links,
              facts->is_split ? ", split into MIG instances: taken as one" : "");
}

/* Adds a GPU and its pci unless they are there already, and sets their values. */
static int place_gpu(const char *root, struct tutti_inventory *inventory,
                     const struct tutti_detect_nvml_facts *facts)
{
    uint32_t pci, gpu;

    TUTTI_TRY(tutti_detect_ensure_pci(root, inventory, facts->busid, SOURCE, &pci));
    TUTTI_TRY(set_pci(inventory, pci, facts));
    gpu = tutti_detect_child(inventory, pci, TUTTI_DEVICE_GPU);
    if (gpu == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, pci, TUTTI_DEVICE_GPU, SOURCE, &gpu));
    log_gpu(facts);
    return set_gpu(inventory, gpu, facts);
}

/* Removes a GPU that an earlier phase has found but that NVML cannot use. A GPU from a better
 * source than NVML, such as a user's file, stays: sources are ordered from worst to best. */
static void remove_gpu(struct tutti_inventory *inventory, int64_t busid)
{
    uint32_t pci = busid >= 0 ? tutti_inventory_find_pci(inventory, busid) : TUTTI_NO_DEVICE;
    uint32_t gpu = pci != TUTTI_NO_DEVICE ? tutti_detect_child(inventory, pci, TUTTI_DEVICE_GPU)
                                          : TUTTI_NO_DEVICE;

    if (gpu != TUTTI_NO_DEVICE && inventory->devices[gpu].found_by <= SOURCE)
        tutti_inventory_remove(inventory, gpu);
}

/* ---- the links of the GPU -------------------------------------------------------------------- */

/* Returns the PCI class of the other end of a link, and the source of this class. */
static int64_t target_class(const char *root, const struct tutti_inventory *inventory,
                            const struct tutti_detect_nvml_target *target,
                            enum tutti_source *ret_source)
{
    uint32_t pci = tutti_inventory_find_pci(inventory, target->busid);
    int64_t class;

    *ret_source = SOURCE;
    if (target->remote_type == TUTTI_NVML_REMOTE_IBM_NPU)
        return TUTTI_PCI_CLASS_NVLINK_TO_CPU;
    if (target->remote_type == TUTTI_NVML_REMOTE_SWITCH ||
        target->busid == TUTTI_BUSID_HIDDEN)
        return TUTTI_PCI_CLASS_NVSWITCH;
    if (pci != TUTTI_NO_DEVICE) {
        *ret_source = inventory->devices[pci].value[TUTTI_PROPERTY_CLASS].found_by;
        if (*ret_source != TUTTI_SOURCE_NONE)
            return tutti_device_number(inventory, pci, TUTTI_PROPERTY_CLASS, 0);
    }
    *ret_source = TUTTI_SOURCE_SYSFS;
    class = tutti_detect_pci_class(root, target->busid);
    if (class >= 0)
        return class;
    /* If this kernel does not see the other end, as in a VM, the other end is a switch, unless NVML
     * reports a GPU. */
    *ret_source = TUTTI_SOURCE_ASSUMED;
    return target->remote_type == TUTTI_NVML_REMOTE_GPU ? TUTTI_PCI_CLASS_GPU
                                                        : TUTTI_PCI_CLASS_NVSWITCH;
}

/* Returns the best source among a GPU's children of a kind; NOBODY: there are no such children. */
static enum tutti_source best_source(const struct tutti_inventory *inventory, uint32_t gpu,
                                     enum tutti_device_kind kind)
{
    enum tutti_source best = TUTTI_SOURCE_NONE;

    for (uint32_t i = inventory->devices[gpu].first_child; i != TUTTI_NO_DEVICE;
         i = inventory->devices[i].next)
        if (inventory->devices[i].kind == kind && inventory->devices[i].found_by > best)
            best = inventory->devices[i].found_by;
    return best;
}

/* Returns true if NVML reports links to this address. */
static bool is_target(const struct tutti_detect_nvml_facts *facts, int64_t busid)
{
    for (uint32_t i = 0; i < facts->ntargets; i++)
        if (facts->targets[i].busid == busid)
            return true;
    return false;
}

/* Removes the NVLinks of the GPU to which NVML reports no target. */
static void remove_links(struct tutti_inventory *inventory, uint32_t gpu,
                         const struct tutti_detect_nvml_facts *facts)
{
    uint32_t next;

    for (uint32_t i = inventory->devices[gpu].first_child; i != TUTTI_NO_DEVICE; i = next) {
        next = inventory->devices[i].next;
        if (inventory->devices[i].kind == TUTTI_DEVICE_NVLINK &&
            !is_target(facts, tutti_device_number(inventory, i, TUTTI_PROPERTY_TARGET, -1)))
            tutti_inventory_remove(inventory, i);
    }
}

/* Adds the NVLinks to one target unless they are there already, and sets their values. */
static int set_link(const char *root, struct tutti_inventory *inventory, uint32_t gpu,
                    const struct tutti_detect_nvml_target *target)
{
    uint32_t link = tutti_detect_link(inventory, gpu, target->busid);
    enum tutti_source source;
    int64_t class;

    if (link == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, gpu, TUTTI_DEVICE_NVLINK, SOURCE, &link));
    TUTTI_TRY(tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TARGET, SOURCE,
                                      target->busid));
    TUTTI_TRY(tutti_device_set_number(inventory, link, TUTTI_PROPERTY_LINKS, SOURCE,
                                      target->links));
    class = target_class(root, inventory, target, &source);
    return tutti_device_set_number(inventory, link, TUTTI_PROPERTY_TCLASS, source, class);
}

static int set_c2c(struct tutti_inventory *inventory, uint32_t gpu,
                   const struct tutti_detect_nvml_facts *facts)
{
    uint32_t c2c = tutti_detect_child(inventory, gpu, TUTTI_DEVICE_C2C);

    if (facts->c2c_links == 0)
        return TUTTI_OK;
    if (c2c == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, gpu, TUTTI_DEVICE_C2C, SOURCE, &c2c));
    if (facts->c2c_mbytes_per_s > 0)
        TUTTI_TRY(tutti_device_set_number(inventory, c2c, TUTTI_PROPERTY_BW, SOURCE,
                                          facts->c2c_mbytes_per_s));
    return tutti_device_set_number(inventory, c2c, TUTTI_PROPERTY_LINKS, SOURCE, facts->c2c_links);
}

/* Runs after all GPUs are placed, because the other end of a link may be one of them. */
static int set_links(const char *root, struct tutti_inventory *inventory,
                     const struct tutti_detect_nvml_facts *facts)
{
    uint32_t pci = tutti_inventory_find_pci(inventory, facts->busid);
    uint32_t gpu = tutti_detect_child(inventory, pci, TUTTI_DEVICE_GPU);

    /* If a user's file describes NVLinks of this GPU, the file is trusted for all its NVLinks. */
    if (best_source(inventory, gpu, TUTTI_DEVICE_NVLINK) <= SOURCE) {
        remove_links(inventory, gpu, facts);
        for (uint32_t i = 0; i < facts->ntargets; i++)
            TUTTI_TRY(set_link(root, inventory, gpu, &facts->targets[i]));
    }
    return set_c2c(inventory, gpu, facts);
}

/* ---- the phase ------------------------------------------------------------------------------- */

/* Adds all GPUs, and then their links. */
static int add_all(const char *root, struct tutti_inventory *inventory,
                   const struct tutti_detect_nvml_facts *facts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        TUTTI_TRY(place_gpu(root, inventory, &facts[i]));
    for (unsigned i = 0; i < count; i++)
        TUTTI_TRY(set_links(root, inventory, &facts[i]));
    return TUTTI_OK;
}

static int detect(const struct tutti_nvml *nvml, const char *root,
                  struct tutti_inventory *inventory)
{
    struct tutti_detect_nvml_facts *facts;
    unsigned count = 0, nread = 0;
    int rc, code = nvml->device_count(&count);

    if (code != TUTTI_NVML_SUCCESS) {
        tutti_log(TUTTI_LOG_WARN,
                  "NVIDIA GPUs are not detected: NVML does not report their number: %s",
                  tutti_nvml_error(nvml, code));
        return TUTTI_OK;
    }
    if (count > MOST_GPUS) {
        tutti_log(TUTTI_LOG_WARN, "NVML reports %u GPUs; only the first %u are used", count,
                  MOST_GPUS);
        count = MOST_GPUS;
    }
    if (count == 0)
        return TUTTI_OK;
    facts = calloc(count, sizeof *facts);
    if (facts == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to detect %u GPUs", count);
    for (unsigned i = 0; i < count; i++) {
        if (tutti_detect_nvml_gpu(nvml, i, &facts[nread]) == TUTTI_DETECT_NVML_READ)
            nread++;
        else /* only busid is set; the entry is used again */
            remove_gpu(inventory, facts[nread].busid);
    }
    rc = add_all(root, inventory, facts, nread);
    free(facts);
    return rc;
}

int tutti_detect_nvml(const char *root, struct tutti_inventory *inventory)
{
    struct tutti_nvml nvml;
    int rc;

    if (tutti_nvml_open(&nvml) != TUTTI_OK)
        return TUTTI_OK;
    rc = detect(&nvml, root != NULL ? root : "", inventory);
    tutti_nvml_close(&nvml);
    return rc;
}
