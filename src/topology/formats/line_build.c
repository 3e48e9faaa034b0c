/* SPDX-License-Identifier: Apache-2.0
 * Makes the devices of a host that a line describes. Missing values are filled in the same way each
 * time, so equal lines give equal machines. */
#include "topology/formats/line_parts.h"

#include "base/result.h"
#include "topology/inventory/pci_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE TUTTI_SOURCE_FILE

/* A host uses this many buses of each PCI domain. Bus 0 belongs to the root. */
#define BUSES 240

/* The host that is being built. The arrays hold its devices in the inventory. */
struct build {
    struct tutti_inventory *inventory;
    const struct tutti_line_host *parts;
    uint32_t host;       /* index of the host */
    uint32_t first_rank; /* rank of its GPU 0 */
    uint32_t cpu[TUTTI_LINE_MOST_NODES];
    uint32_t switches[TUTTI_LINE_MOST_SWITCHES]; /* the switches that devices are placed below */
    uint32_t gpu_pci[TUTTI_LINE_MOST_GPUS], gpu[TUTTI_LINE_MOST_GPUS];
};

static int add(struct build *build, uint32_t parent, enum tutti_device_kind kind,
               uint32_t *ret_device)
{
    return tutti_inventory_add(build->inventory, parent, kind, SOURCE, ret_device);
}

static void put(struct build *build, uint32_t device, enum tutti_property property, int64_t number)
{
    tutti_device_set_number(build->inventory, device, property, SOURCE, number);
}

static int put_text(struct build *build, uint32_t device, enum tutti_property property,
                    const char *text)
{
    return tutti_device_set_text(build->inventory, device, property, SOURCE, text);
}

static uint32_t numa_nodes(const struct build *build)
{
    return build->parts->cpus.sockets * build->parts->cpus.nodes;
}

/* ---- cpus ------------------------------------------------------------------------------------ */

#define MASK_WORDS (TUTTI_LINE_MOST_CORES / 32)
#define MASK_BYTES (9 * MASK_WORDS + 1)

/* Writes the mask of all threads of cores first ... first + count - 1 of the host, highest word
 * first. */
static void write_mask(const struct tutti_line_cpus *cpus, uint32_t first, uint32_t count,
                       char *ret_text)
{
    uint32_t words[MASK_WORDS] = {0};
    size_t used = 0;

    for (uint32_t thread = 0; thread < cpus->threads; thread++)
        for (uint32_t core = first; core < first + count; core++) {
            uint32_t cpu = thread * cpus->sockets * cpus->cores + core;

            words[cpu / 32] |= 1u << cpu % 32;
        }
    for (int i = MASK_WORDS - 1; i >= 0; i--)
        if (used > 0 || words[i] != 0)
            used += (size_t)sprintf(ret_text + used, used > 0 ? ",%08x" : "%08x", words[i]);
}

/* Sets the masks of the last-level caches of one cpu. */
static int put_caches(struct build *build, uint32_t cpu, uint32_t first_core, uint32_t cores)
{
    const struct tutti_line_cpus *cpus = &build->parts->cpus;
    uint32_t caches = cpus->caches / cpus->nodes, each = cores / caches;
    char *text = malloc((size_t)caches * (MASK_BYTES + 1)), *at = text;
    int rc;

    if (text == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the masks of %u caches", caches);
    for (uint32_t i = 0; i < caches; i++) {
        if (i > 0)
            *at++ = ';';
        write_mask(cpus, first_core + i * each, each, at);
        at += strlen(at);
    }
    rc = put_text(build, cpu, TUTTI_PROPERTY_CACHES, text);
    free(text);
    return rc;
}

static int add_cpus(struct build *build)
{
    const struct tutti_line_cpus *cpus = &build->parts->cpus;
    const struct tutti_line_cpu_model *model = cpus->model;
    uint32_t cores = cpus->cores / cpus->nodes;
    char mask[MASK_BYTES];

    for (uint32_t i = 0; i < numa_nodes(build); i++) {
        uint32_t cpu;

        TUTTI_TRY(add(build, 0, TUTTI_DEVICE_CPU, &cpu));
        build->cpu[i] = cpu;
        put(build, cpu, TUTTI_PROPERTY_NUMA, i);
        put(build, cpu, TUTTI_PROPERTY_PACKAGE, i / cpus->nodes);
        write_mask(cpus, i * cores, cores, mask);
        TUTTI_TRY(put_text(build, cpu, TUTTI_PROPERTY_AFFINITY, mask));
        if (cpus->caches != 0)
            TUTTI_TRY(put_caches(build, cpu, i * cores, cores));
        TUTTI_TRY(put_text(build, cpu, TUTTI_PROPERTY_CPU_ARCH, model->arch));
        if (model->name != NULL)
            TUTTI_TRY(put_text(build, cpu, TUTTI_PROPERTY_MODEL_NAME, model->name));
        if (model->vendor == NULL)
            continue;
        TUTTI_TRY(put_text(build, cpu, TUTTI_PROPERTY_CPU_VENDOR, model->vendor));
        put(build, cpu, TUTTI_PROPERTY_CPU_FAMILY, model->family);
        put(build, cpu, TUTTI_PROPERTY_CPU_MODEL, model->model);
    }
    return TUTTI_OK;
}

/* ---- the PCI tree ---------------------------------------------------------------------------- */

/* Adds a pci with all properties but its bus id, which number_buses() sets when the tree is
 * complete. */
static int add_pci(struct build *build, uint32_t parent, int64_t class, int64_t vendor,
                   int64_t device, struct tutti_line_pci pci, uint32_t *ret_pci)
{
    uint32_t added;

    TUTTI_TRY(add(build, parent, TUTTI_DEVICE_PCI, &added));
    put(build, added, TUTTI_PROPERTY_CLASS, class);
    put(build, added, TUTTI_PROPERTY_PCI_VENDOR, vendor);
    put(build, added, TUTTI_PROPERTY_PCI_DEVICE, device);
    put(build, added, TUTTI_PROPERTY_SUBVENDOR, vendor);
    put(build, added, TUTTI_PROPERTY_SUBDEVICE, device);
    tutti_device_set_real(build->inventory, added, TUTTI_PROPERTY_LINK_SPEED, SOURCE,
                          tutti_line_generation_speed(pci.generation));
    put(build, added, TUTTI_PROPERTY_LINK_WIDTH, pci.lanes);
    *ret_pci = added;
    return TUTTI_OK;
}

/* Adds a switch with the ids of a usual product of its PCI generation: PLX, later Broadcom. */
static int add_switch(struct build *build, uint32_t parent, uint32_t *ret_switch)
{
    struct tutti_line_pci pci = tutti_line_switch_pci(build->parts);

    return add_pci(build, parent, TUTTI_PCI_CLASS_BRIDGE, pci.generation < 4 ? 0x10b5 : 0x1000,
                   pci.generation < 4    ? 0x9797
                   : pci.generation == 4 ? 0xc010
                                         : 0xc030,
                   pci, ret_switch);
}

static int add_switches(struct build *build)
{
    const struct tutti_line_switches *switches = &build->parts->switches;
    uint32_t uppers = switches->upper, upper[TUTTI_LINE_MOST_SWITCHES];

    for (uint32_t i = 0; i < uppers; i++)
        TUTTI_TRY(add_switch(build, build->cpu[tutti_line_deal(i, uppers, numa_nodes(build))],
                             &upper[i]));
    for (uint32_t i = 0; i < switches->count; i++) {
        uint32_t parent = uppers > 0
                              ? upper[tutti_line_deal(i, switches->count, uppers)]
                              : build->cpu[tutti_line_deal(i, switches->count, numa_nodes(build))];

        TUTTI_TRY(add_switch(build, parent, &build->switches[i]));
    }
    return TUTTI_OK;
}

/* Returns the device below which device i of n is placed. */
static uint32_t parent_of(const struct build *build, const struct tutti_line_place *place,
                          uint32_t i, uint32_t n)
{
    uint32_t nswitches = build->parts->switches.count, number;

    if (place->how == TUTTI_LINE_DEALT)
        return nswitches > 0 ? build->switches[tutti_line_deal(i, n, nswitches)]
                             : build->cpu[tutti_line_deal(i, n, numa_nodes(build))];
    number = place->number[tutti_line_deal(i, n, place->count)];
    return place->how == TUTTI_LINE_ON_CPU
               ? build->cpu[number]
               : build->inventory->devices[build->gpu_pci[number]].parent;
}

/* ---- gpus and nics --------------------------------------------------------------------------- */

static int add_gpu(struct build *build, uint32_t i)
{
    const struct tutti_line_gpus *gpus = &build->parts->gpus;
    const struct tutti_line_gpu_model *model = gpus->model;
    bool is_amd = tutti_line_is_amd(gpus);
    uint32_t pci, gpu;

    TUTTI_TRY(add_pci(build, parent_of(build, &gpus->place, i, gpus->count), model->class,
                      is_amd ? TUTTI_PCI_AMD : TUTTI_PCI_NVIDIA, model->device,
                      tutti_line_gpu_pci(gpus), &pci));
    TUTTI_TRY(add(build, pci, TUTTI_DEVICE_GPU, &gpu));
    build->gpu_pci[i] = pci;
    build->gpu[i] = gpu;
    put(build, gpu, TUTTI_PROPERTY_DEV, i);
    if (gpus->sm != 0 || model->sm != 0)
        put(build, gpu, TUTTI_PROPERTY_SM, gpus->sm != 0 ? gpus->sm : model->sm);
    if (is_amd)
        TUTTI_TRY(put_text(build, gpu, TUTTI_PROPERTY_GCN,
                           gpus->gcn[0] != '\0' ? gpus->gcn : model->gcn));
    if (model->name != NULL)
        TUTTI_TRY(put_text(build, gpu, TUTTI_PROPERTY_MODEL_NAME, model->name));
    put(build, gpu, TUTTI_PROPERTY_RANK, build->first_rank + i);
    put(build, gpu, TUTTI_PROPERTY_GDR, tutti_line_gpu_gdr(gpus));
    if (gpus->fabric != 0)
        put(build, gpu, TUTTI_PROPERTY_FABRIC, gpus->fabric);
    return TUTTI_OK;
}

/* Adds a card with its ports. *dev is the number of the next port in the host. */
static int add_nic(struct build *build, const struct tutti_line_nics *nics, uint32_t i,
                   uint32_t *dev)
{
    const struct tutti_line_nic_kind *kind = nics->kind;
    /* Any number that differs between cards and hosts serves as GUID. */
    int64_t guid = ((int64_t)build->host + 1) << 32 | (*dev + 1);
    uint32_t pci, nic;

    TUTTI_TRY(add_pci(build, parent_of(build, &nics->place, i, nics->count), kind->class,
                      kind->vendor, tutti_line_nic_device(nics), tutti_line_nic_pci(nics), &pci));
    TUTTI_TRY(add(build, pci, TUTTI_DEVICE_NIC, &nic));
    for (uint32_t port = 1; port <= nics->ports; port++, ++*dev) {
        char name[32];
        uint32_t net;

        TUTTI_TRY(add(build, nic, TUTTI_DEVICE_NET, &net));
        snprintf(name, sizeof name, "%s%u", kind->prefix, *dev);
        TUTTI_TRY(put_text(build, net, TUTTI_PROPERTY_NET_NAME, name));
        TUTTI_TRY(put_text(build, net, TUTTI_PROPERTY_LAYER, kind->layer));
        put(build, net, TUTTI_PROPERTY_DEV, *dev);
        put(build, net, TUTTI_PROPERTY_SPEED, nics->mbits);
        put(build, net, TUTTI_PROPERTY_PORT, port);
        put(build, net, TUTTI_PROPERTY_GUID, guid);
        put(build, net, TUTTI_PROPERTY_GDR, tutti_line_nic_gdr(nics));
        if (tutti_line_nic_rails(build->parts, nics))
            put(build, net, TUTTI_PROPERTY_RAIL, *dev);
    }
    return TUTTI_OK;
}

/* Sets the bus ids. Each pci gets a bus of its own, in tree order, as from a machine's firmware. */
static void number_buses(struct build *build)
{
    uint32_t device = build->cpu[0], used = 0;

    while ((device = tutti_inventory_next_of(build->inventory, device, TUTTI_DEVICE_PCI)) !=
           TUTTI_NO_DEVICE) {
        put(build, device, TUTTI_PROPERTY_BUSID,
            (int64_t)(used / BUSES) << 20 | (int64_t)(used % BUSES + 1) << 12);
        used++;
    }
}

static int64_t busid_of(const struct build *build, uint32_t pci)
{
    return tutti_device_number(build->inventory, pci, TUTTI_PROPERTY_BUSID, 0);
}

/* Adds an nvlink that stands for `links` links to a target. */
static int add_links_to(struct build *build, uint32_t gpu, int64_t target, int64_t class,
                        uint32_t links)
{
    uint32_t nvlink;

    TUTTI_TRY(add(build, gpu, TUTTI_DEVICE_NVLINK, &nvlink));
    put(build, nvlink, TUTTI_PROPERTY_TARGET, target);
    put(build, nvlink, TUTTI_PROPERTY_LINKS, links);
    put(build, nvlink, TUTTI_PROPERTY_TCLASS, class);
    return TUTTI_OK;
}

/* Adds the NVLinks and the coherent link of GPU i. */
static int add_links(struct build *build, uint32_t i)
{
    const struct tutti_line_gpus *gpus = &build->parts->gpus;
    uint32_t gpu = build->gpu[i], c2c;

    for (uint32_t j = 0; j < gpus->count; j++)
        if (gpus->between[i * gpus->count + j] != 0)
            TUTTI_TRY(add_links_to(build, gpu, busid_of(build, build->gpu_pci[j]),
                                   gpus->model->class, gpus->between[i * gpus->count + j]));
    if (gpus->switch_links != 0)
        TUTTI_TRY(add_links_to(build, gpu, TUTTI_BUSID_HIDDEN, TUTTI_PCI_CLASS_NVSWITCH,
                               gpus->switch_links));
    if (gpus->cpu_links != 0)
        TUTTI_TRY(add_links_to(build, gpu, TUTTI_BUSID_HIDDEN, TUTTI_PCI_CLASS_NVLINK_TO_CPU,
                               gpus->cpu_links));
    if (gpus->c2c_mb == 0)
        return TUTTI_OK;
    TUTTI_TRY(add(build, gpu, TUTTI_DEVICE_C2C, &c2c));
    put(build, c2c, TUTTI_PROPERTY_BW, gpus->c2c_mb);
    put(build, c2c, TUTTI_PROPERTY_LINKS, 1);
    return TUTTI_OK;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

int tutti_line_build(struct tutti_inventory *inventory, const struct tutti_line_host *parts,
                     uint32_t host, uint32_t first_rank)
{
    struct build build = {
        .inventory = inventory, .parts = parts, .host = host, .first_rank = first_rank,
    };
    uint32_t net = 0;

    /* AMD's files have version 2; a single host with AMD GPUs makes the whole inventory version
     * 2. */
    if (host == 0 || (parts->gpus.count > 0 && tutti_line_is_amd(&parts->gpus)))
        put(&build, 0, TUTTI_PROPERTY_VERSION,
            parts->gpus.count > 0 && tutti_line_is_amd(&parts->gpus) ? 2 : 1);
    TUTTI_TRY(add_cpus(&build));
    TUTTI_TRY(add_switches(&build));
    for (uint32_t i = 0; i < parts->gpus.count; i++)
        TUTTI_TRY(add_gpu(&build, i));
    for (uint32_t item = 0; item < parts->nnics; item++)
        for (uint32_t i = 0; i < parts->nics[item].count; i++)
            TUTTI_TRY(add_nic(&build, &parts->nics[item], i, &net));
    number_buses(&build);
    for (uint32_t i = 0; i < parts->gpus.count; i++)
        TUTTI_TRY(add_links(&build, i));
    return TUTTI_OK;
}

void tutti_line_hash_hosts(struct tutti_inventory *inventory)
{
    uint32_t device = TUTTI_NO_DEVICE, gpu = TUTTI_NO_DEVICE;
    int64_t host = 0;

    while ((device = tutti_inventory_next_of(inventory, device, TUTTI_DEVICE_CPU)) !=
           TUTTI_NO_DEVICE) {
        host += tutti_device_number(inventory, device, TUTTI_PROPERTY_NUMA, 0) == 0;
        tutti_device_set_number(inventory, device, TUTTI_PROPERTY_HOST_HASH, SOURCE, host);
    }
    /* Without a fabric, a file of several hosts could mean one domain (complete_hosts.c). */
    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE)
        if (!tutti_device_has(inventory, gpu, TUTTI_PROPERTY_FABRIC))
            tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_FABRIC, SOURCE, 0);
}
