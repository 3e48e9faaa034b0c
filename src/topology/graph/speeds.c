/* SPDX-License-Identifier: Apache-2.0
 * Computes the rates of links that were not measured, from models and generations. */
#include "topology/graph/speeds.h"

#include "topology/inventory/pci_ids.h"

#include <string.h>

#define GB 1e9

/* PCIe defines no wider link; some files have 255 for an unknown width. */
enum { MOST_LANES = 32 };

struct generation {
    int64_t least; /* lowest value of the generation: compute capability, CPU model or Mbit/s */
    double bytes_per_s;
};

/* Returns the rate of the last generation that begins at or below `value`. */
static double rate_of(const struct generation *table, size_t count, int64_t value)
{
    double rate = table[0].bytes_per_s;

    for (size_t i = 0; i < count && table[i].least <= value; i++)
        rate = table[i].bytes_per_s;
    return rate;
}

#define RATE_OF(table, value) rate_of(table, sizeof(table) / sizeof((table)[0]), value)

/* Returns the rate of one xGMI link. AMD's names have the form "910" or "gfx942"; the first digits
 * identify the family in both. */
static double xgmi_rate(const char *gcn)
{
    static const struct {
        const char *family;
        double bytes_per_s;
    } families[] = {{"95", 48 * GB}, {"94", 48 * GB}, {"90a", 36 * GB}, {"910", 36 * GB}};

    gcn += strncmp(gcn, "gfx", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strncmp(gcn, families[i].family, strlen(families[i].family)) == 0)
            return families[i].bytes_per_s;
    return 24 * GB;
}

static bool is_amd_gpu(const struct tutti_inventory *inventory, uint32_t gpu)
{
    uint32_t pci = inventory->devices[gpu].parent;

    return tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN) ||
           tutti_device_number(inventory, pci, TUTTI_PROPERTY_PCI_VENDOR, 0) == TUTTI_PCI_AMD;
}

double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu)
{
    static const struct generation generations[] = {
        {60, 18 * GB}, {70, 20 * GB}, {80, 20 * GB}, {86, 12 * GB},
        {87, 20 * GB}, {90, 20.6 * GB}, {100, 40.1 * GB},
    };

    if (is_amd_gpu(inventory, gpu))
        return xgmi_rate(tutti_device_text(inventory, gpu, TUTTI_PROPERTY_GCN));
    return RATE_OF(generations, tutti_device_number(inventory, gpu, TUTTI_PROPERTY_SM, 80));
}

/* Returns the GT/s that are usual for the gpu or nic below a pci. Generations of gpus begin at a
 * compute capability, those of nics at the sum of Mbit/s of their ports. */
static double usual_gts(const struct tutti_inventory *inventory, uint32_t pci)
{
    static const struct generation gpus[] = {{0, 8}, {80, 16}, {90, 32}};
    static const struct generation nics[] = {{0, 8}, {150000, 16}, {300000, 32}, {600000, 64}};
    int64_t mbits = 0;

    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next) {
        const struct tutti_device *device = &inventory->devices[child];

        if (device->kind == TUTTI_DEVICE_GPU)
            return RATE_OF(gpus, tutti_device_number(inventory, child, TUTTI_PROPERTY_SM, 0));
        if (device->kind != TUTTI_DEVICE_NIC)
            continue;
        for (uint32_t net = device->first_child; net != TUTTI_NO_DEVICE;
             net = inventory->devices[net].next)
            mbits += tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, 0);
    }
    return RATE_OF(nics, mbits);
}

double tutti_speed_pci(const struct tutti_inventory *inventory, uint32_t pci,
                       enum tutti_source *ret_source)
{
    /* The GT/s of each generation, and the rate that programs reach on 16 lanes. */
    static const struct {
        double gts, bytes_per_s;
    } generations[] = {{2.5, 3 * GB}, {5, 6 * GB},   {8, 12 * GB},
                       {16, 24 * GB}, {32, 48 * GB}, {64, 96 * GB}};
    const struct tutti_value *values = inventory->devices[pci].value;
    double gts = tutti_device_real(inventory, pci, TUTTI_PROPERTY_LINK_SPEED, 0);
    int64_t lanes = tutti_device_number(inventory, pci, TUTTI_PROPERTY_LINK_WIDTH, 0);
    double rate = generations[0].bytes_per_s;

    *ret_source = gts > 0 && lanes > 0 ? values[TUTTI_PROPERTY_LINK_SPEED].found_by
                                       : TUTTI_SOURCE_ASSUMED;
    if (gts <= 0)
        gts = usual_gts(inventory, pci);
    if (lanes <= 0 || lanes > MOST_LANES)
        lanes = 16;
    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
        if (generations[i].gts <= gts)
            rate = generations[i].bytes_per_s;
    return rate * (double)lanes / 16;
}

static bool is_intel(const struct tutti_inventory *inventory, uint32_t cpu)
{
    return strcmp(tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CPU_VENDOR),
                  "GenuineIntel") == 0;
}

double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu)
{
    /* By the first model of the generation: Broadwell and older, Skylake, Sapphire Rapids, Granite
     * and Emerald Rapids. */
    static const struct generation intel[] = {
        {0, 6 * GB}, {0x55, 10 * GB}, {0x8f, 22 * GB}, {0xad, 40 * GB},
    };
    static const struct {
        const char *vendor, *arch;
        double bytes_per_s;
    } others[] = {
        {"AuthenticAMD", NULL, 16 * GB}, {"  Shanghai  ", NULL, 9 * GB}, {NULL, "ppc64", 32 * GB},
        {NULL, "ppc64le", 32 * GB},      {NULL, "arm64", 6 * GB},        {NULL, "aarch64", 6 * GB},
    };
    const char *vendor = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CPU_VENDOR);
    const char *arch = tutti_device_text(inventory, cpu, TUTTI_PROPERTY_CPU_ARCH);

    if (is_intel(inventory, cpu))
        return RATE_OF(intel, tutti_device_number(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL, 0));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if ((others[i].vendor != NULL && strcmp(vendor, others[i].vendor) == 0) ||
            (others[i].arch != NULL && strcmp(arch, others[i].arch) == 0))
            return others[i].bytes_per_s;
    return 10 * GB;
}

static bool is_infiniband(const struct tutti_inventory *inventory, uint32_t net)
{
    uint32_t pci = tutti_inventory_above(inventory, net, TUTTI_DEVICE_PCI);

    return strcmp(tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER), "infiniband") == 0 ||
           (pci != TUTTI_NO_DEVICE &&
            tutti_device_number(inventory, pci, TUTTI_PROPERTY_CLASS, 0) >> 8 ==
                TUTTI_PCI_CLASS_INFINIBAND >> 8);
}

double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source)
{
    int64_t mbits = tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, 0);

    *ret_source = mbits > 0 ? inventory->devices[net].value[TUTTI_PROPERTY_SPEED].found_by
                            : TUTTI_SOURCE_ASSUMED;
    if (mbits <= 0)
        mbits = is_infiniband(inventory, net) ? 100000 : 10000;
    return (double)mbits * 1e6 / 8; /* 8 bits per byte */
}

bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu)
{
    return is_intel(inventory, cpu);
}
