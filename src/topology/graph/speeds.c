/* SPDX-License-Identifier: Apache-2.0
 * Computes the rates of links that were not measured, from models and generations. */
#include "topology/graph/speeds.h"

#include "topology/inventory/pci_ids.h"
#include "topology/inventory/products.h"

#include <math.h>
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

/* Returns the rate of one xGMI link; 0: the family is not known. AMD's names have the form "910" or
 * "gfx942"; the first digits identify the family in both. */
static double xgmi_rate(const char *gcn)
{
    static const struct {
        const char *family;
        double bytes_per_s;
    } families[] = {{"95", 48 * GB}, {"94", 48 * GB}, {"90a", 36 * GB}, {"910", 36 * GB},
                  {"906", 24 * GB}, {"908", 24 * GB}};

    gcn += strncmp(gcn, "gfx", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strncmp(gcn, families[i].family, strlen(families[i].family)) == 0)
            return families[i].bytes_per_s;
    return 0;
}

static bool is_amd_gpu(const struct tutti_inventory *inventory, uint32_t gpu)
{
    uint32_t pci = inventory->devices[gpu].parent;

    return tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN) ||
           tutti_device_number(inventory, pci, TUTTI_PROPERTY_PCI_VENDOR, 0) == TUTTI_PCI_AMD;
}

/* A rate that follows from the model of a device is known by the product, whoever tells the
 * model. */
static enum tutti_source source_by_product(enum tutti_source model)
{
    return model > TUTTI_SOURCE_ASSUMED ? TUTTI_SOURCE_PRODUCT : TUTTI_SOURCE_ASSUMED;
}

double tutti_speed_nvlink(const struct tutti_inventory *inventory, uint32_t gpu,
                          enum tutti_source *ret_source)
{
    static const struct generation generations[] = {
        {60, 18 * GB}, {70, 20 * GB}, {80, 20 * GB}, {86, 12 * GB},
        {87, 20 * GB}, {90, 20.6 * GB}, {100, 40.1 * GB},
    };

    enum tutti_source source;
    double rate;
    int64_t sm;

    if (is_amd_gpu(inventory, gpu)) {
        rate = xgmi_rate(tutti_product_gcn(inventory, gpu, &source));
        *ret_source = rate > 0 ? source_by_product(source) : TUTTI_SOURCE_ASSUMED;
        return rate > 0 ? rate : 24 * GB;
    }
    sm = tutti_product_sm(inventory, gpu, &source);
    *ret_source = source_by_product(source);
    return RATE_OF(generations, sm > 0 ? sm : 80);
}

/* Returns true if no other pci is below this one. */
static bool is_leaf(const struct tutti_inventory *inventory, uint32_t pci)
{
    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next)
        if (inventory->devices[child].kind == TUTTI_DEVICE_PCI)
            return false;
    return true;
}

static double usual_gts_below(const struct tutti_inventory *inventory, uint32_t pci,
                              enum tutti_source *ret_source);

/* Returns the GT/s that are usual for the gpu or nic below a pci. Generations of gpus begin at a
 * compute capability, those of nics at the sum of Mbit/s of their ports. */
static double usual_gts(const struct tutti_inventory *inventory, uint32_t pci,
                        enum tutti_source *ret_source)
{
    static const struct generation gpus[] = {{0, 8}, {80, 16}, {90, 32}};
    static const struct generation nics[] = {{0, 8}, {150000, 16}, {300000, 32}, {600000, 64}};
    int64_t mbits = 0;

    *ret_source = TUTTI_SOURCE_ASSUMED;
    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next) {
        const struct tutti_device *device = &inventory->devices[child];

        if (device->kind == TUTTI_DEVICE_GPU)
            return RATE_OF(gpus, tutti_product_sm(inventory, child, ret_source));
        if (device->kind != TUTTI_DEVICE_NIC)
            continue;
        for (uint32_t net = device->first_child; net != TUTTI_NO_DEVICE;
             net = inventory->devices[net].next)
            mbits += tutti_product_mbits(inventory, net, ret_source);
    }
    return mbits > 0 || is_leaf(inventory, pci) ? RATE_OF(nics, mbits)
                                                : usual_gts_below(inventory, pci, ret_source);
}

/* Returns the highest usual GT/s of the gpus and nics below a switch, because switches are bought
 * for them. */
static double usual_gts_below(const struct tutti_inventory *inventory, uint32_t pci,
                              enum tutti_source *ret_source)
{
    double most = 0;

    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next)
        if (inventory->devices[child].kind == TUTTI_DEVICE_PCI)
            most = fmax(most, usual_gts(inventory, child, ret_source));
    *ret_source = TUTTI_SOURCE_ASSUMED;
    return most;
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


    *ret_source = values[TUTTI_PROPERTY_LINK_SPEED].found_by;
    if (gts <= 0 || lanes <= 0) {
        double usual = usual_gts(inventory, pci, ret_source);

        *ret_source = source_by_product(*ret_source);
        gts = gts > 0 ? gts : usual;
    }
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

double tutti_speed_sys(const struct tutti_inventory *inventory, uint32_t cpu,
                       enum tutti_source *ret_source)
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

    *ret_source = TUTTI_SOURCE_PRODUCT;
    if (is_intel(inventory, cpu)) {
        if (!tutti_device_has(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL))
            *ret_source = TUTTI_SOURCE_ASSUMED;
        return RATE_OF(intel, tutti_device_number(inventory, cpu, TUTTI_PROPERTY_CPU_MODEL, 0));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if ((others[i].vendor != NULL && strcmp(vendor, others[i].vendor) == 0) ||
            (others[i].arch != NULL && strcmp(arch, others[i].arch) == 0))
            return others[i].bytes_per_s;
    *ret_source = TUTTI_SOURCE_ASSUMED;
    return 10 * GB;
}

/* Returns true if the port is one for RDMA, by its layer, its class, or a name that only drivers of
 * such ports give. nvidia-smi lists only such ports, and names those without a legend NIC0, .... */
static bool is_rdma(const struct tutti_inventory *inventory, uint32_t net)
{
    static const char *const prefixes[] = {"mlx", "roce", "ib", "bnxt_re", "irdma", "NIC"};
    uint32_t pci = tutti_inventory_above(inventory, net, TUTTI_DEVICE_PCI);
    const char *name = tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME);

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return strcmp(tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER), "infiniband") == 0 ||
           (pci != TUTTI_NO_DEVICE &&
            tutti_device_number(inventory, pci, TUTTI_PROPERTY_CLASS, 0) >> 8 ==
                TUTTI_PCI_CLASS_INFINIBAND >> 8);
}

/* Returns the Mbit/s of the ports for RDMA that makers put beside the newest gpus of the inventory:
 * 200G beside A100 and MI250, 400G beside H100, B200 and MI300, 800G beside B300. */
static int64_t usual_mbits(const struct tutti_inventory *inventory)
{
    static const struct {
        int64_t sm, mbits;
    } usual[] = {{80, 200000}, {90, 400000}, {103, 800000}, {120, 400000}};
    int64_t newest = 0, mbits = 100000;
    uint32_t gpu = TUTTI_NO_DEVICE;

    while ((gpu = tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU)) != TUTTI_NO_DEVICE) {
        enum tutti_source source;
        int64_t sm = tutti_product_sm(inventory, gpu, &source);
        double xgmi = xgmi_rate(tutti_product_gcn(inventory, gpu, &source));

        if (is_amd_gpu(inventory, gpu)) /* its property SM counts compute units */
            sm = xgmi >= 48 * GB ? 90 : xgmi >= 36 * GB ? 80 : 0;
        newest = sm > newest ? sm : newest;
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        mbits = newest >= usual[i].sm ? usual[i].mbits : mbits;
    return mbits;
}

double tutti_speed_net(const struct tutti_inventory *inventory, uint32_t net,
                       enum tutti_source *ret_source)
{
    int64_t mbits = tutti_product_mbits(inventory, net, ret_source);

    if (mbits <= 0)
        mbits = is_rdma(inventory, net) ? usual_mbits(inventory) : 10000;
    return (double)mbits * 1e6 / 8; /* 8 bits per byte */
}

bool tutti_speed_has_p2p_overhead(const struct tutti_inventory *inventory, uint32_t cpu)
{
    return is_intel(inventory, cpu);
}
