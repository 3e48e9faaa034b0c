/* SPDX-License-Identifier: Apache-2.0
 * Holds the tables of products, and looks up gpus and ports in them. */
#include "topology/inventory/products.h"

#include "topology/inventory/pci_ids.h"

#include <string.h>

/* ---- gpus ------------------------------------------------------------------------------------ */

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

int64_t tutti_product_sm_named(const char *name)
{
    /* The compute capabilities of NVIDIA's list "CUDA GPU Compute Capability". */
    static const struct {
        const char *word;
        int64_t sm;
    } products[] = {
        {"P100", 60}, {"V100", 70},  {"T4", 75},    {"A100", 80},  {"A800", 80},  {"A30", 80},
        {"A40", 86},  {"A10", 86},   {"A10G", 86},  {"A6000", 86}, {"L4", 89},    {"L40", 89},
        {"L40S", 89}, {"H100", 90},  {"H200", 90},  {"H800", 90},  {"H20", 90},   {"GH200", 90},
        {"B100", 100}, {"B200", 100}, {"GB200", 100}, {"B300", 103}, {"GB300", 103},
    };

    while (*name != '\0') {
        size_t length = 0;

        while (is_alphanumeric(name[length]))
            length++;
        for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
            if (strlen(products[i].word) == length &&
                memcmp(products[i].word, name, length) == 0)
                return products[i].sm;
        name += length + (name[length] != '\0');
    }
    return 0;
}

static uint32_t pci_number(const struct tutti_inventory *inventory, uint32_t device,
                           enum tutti_property property)
{
    uint32_t pci = tutti_inventory_above(inventory, device, TUTTI_DEVICE_PCI);

    return pci == TUTTI_NO_DEVICE ? 0
                                  : (uint32_t)tutti_device_number(inventory, pci, property, 0);
}

int64_t tutti_product_sm(const struct tutti_inventory *inventory, uint32_t gpu,
                         enum tutti_source *ret_source)
{
    enum tutti_source found_by = inventory->devices[gpu].value[TUTTI_PROPERTY_SM].found_by;
    int64_t sm = tutti_device_number(inventory, gpu, TUTTI_PROPERTY_SM, 0), by_id;

    *ret_source = found_by;
    if (found_by > TUTTI_SOURCE_ASSUMED && sm > 0)
        return sm;
    by_id = tutti_pci_compute_capability(pci_number(inventory, gpu, TUTTI_PROPERTY_PCI_VENDOR),
                                         pci_number(inventory, gpu, TUTTI_PROPERTY_PCI_DEVICE));
    if (by_id == 0)
        by_id = tutti_product_sm_named(
            tutti_device_text(inventory, gpu, TUTTI_PROPERTY_MODEL_NAME));
    *ret_source = by_id > 0 ? TUTTI_SOURCE_PRODUCT : TUTTI_SOURCE_ASSUMED;
    return by_id > 0 ? by_id : sm;
}

const char *tutti_product_gcn(const struct tutti_inventory *inventory, uint32_t gpu,
                              enum tutti_source *ret_source)
{
    const char *gcn = tutti_device_text(inventory, gpu, TUTTI_PROPERTY_GCN);
    const char *by_id = tutti_pci_gcn(pci_number(inventory, gpu, TUTTI_PROPERTY_PCI_VENDOR),
                                      pci_number(inventory, gpu, TUTTI_PROPERTY_PCI_DEVICE));

    *ret_source = inventory->devices[gpu].value[TUTTI_PROPERTY_GCN].found_by;
    if (*ret_source > TUTTI_SOURCE_ASSUMED && *gcn != '\0')
        return gcn;
    *ret_source = by_id != NULL ? TUTTI_SOURCE_PRODUCT : TUTTI_SOURCE_ASSUMED;
    return by_id != NULL ? by_id : gcn;
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* Returns the Mbit/s of all ports of a card together; 0: the id is not known. The ids are those of
 * the PCI id list (pci-ids.ucw.cz), the rates those of the makers' data sheets. Virtual functions
 * (15b3:101e) share one id for all families, so they are not in the table. */
static int64_t mbits_of_card(uint32_t vendor, uint32_t device)
{
    static const struct {
        uint32_t vendor, device;
        int64_t mbits;
    } cards[] = {
        {0x15b3, 0x1011, 56000},  /* Connect-IB */
        {0x15b3, 0x1013, 100000}, /* ConnectX-4 */
        {0x15b3, 0x1015, 50000},  /* ConnectX-4 Lx */
        {0x15b3, 0x1017, 100000}, /* ConnectX-5 */
        {0x15b3, 0x1019, 100000}, /* ConnectX-5 Ex */
        {0x15b3, 0x101b, 200000}, /* ConnectX-6 */
        {0x15b3, 0x101d, 200000}, /* ConnectX-6 Dx */
        {0x15b3, 0x101f, 50000},  /* ConnectX-6 Lx */
        {0x15b3, 0x1021, 400000}, /* ConnectX-7 */
        {0x15b3, 0x1023, 800000}, /* ConnectX-8 */
        {0x15b3, 0xa2d6, 200000}, /* BlueField-2 */
        {0x15b3, 0xa2dc, 400000}, /* BlueField-3 */
        {0x17db, 0x0501, 200000}, /* Slingshot 11, Cassini */
        {0x14e4, 0x1750, 200000}, /* BCM57508 */
        {0x14e4, 0x1760, 400000}, /* BCM57608 */
        {0x1d0f, 0xefa0, 100000}, /* Elastic Fabric Adapter */
        {0x1d0f, 0xefa1, 100000}, /* Elastic Fabric Adapter */
        {0x8086, 0x1592, 100000}, /* E810-C */
        {0x8086, 0x24f0, 100000}, /* Omni-Path */
        {0x8086, 0x24f1, 100000}, /* Omni-Path */
    };

    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++)
        if (cards[i].vendor == vendor && cards[i].device == device)
            return cards[i].mbits;
    return 0;
}

/* Returns the card of a net: its bus id without the function, since each port of a card may be a
 * function of its own; -1: it is on no bus. */
static int64_t card_of(const struct tutti_inventory *inventory, uint32_t net)
{
    uint32_t pci = tutti_inventory_above(inventory, net, TUTTI_DEVICE_PCI);
    int64_t busid = pci == TUTTI_NO_DEVICE
                        ? -1
                        : tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, -1);

    return busid < 0 ? -1 : busid >> 4;
}

static int64_t host_of(const struct tutti_inventory *inventory, uint32_t net)
{
    uint32_t cpu = tutti_inventory_above(inventory, net, TUTTI_DEVICE_CPU);

    return cpu == TUTTI_NO_DEVICE
               ? 0
               : tutti_device_number(inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0);
}

/* Returns the number of ports of the card of this net, which is at least 1. */
static int64_t count_ports(const struct tutti_inventory *inventory, uint32_t net)
{
    int64_t card = card_of(inventory, net), count = 0;
    uint32_t other = TUTTI_NO_DEVICE;

    while (card >= 0 && (other = tutti_inventory_next_of(inventory, other, TUTTI_DEVICE_NET)) !=
                            TUTTI_NO_DEVICE)
        count += card_of(inventory, other) == card &&
                 host_of(inventory, other) == host_of(inventory, net);
    return count > 0 ? count : 1;
}

/* Returns true for the names of Slingshot's ports, of which only one generation has such names. */
static bool is_slingshot(const char *name)
{
    static const char *const prefixes[] = {"hsi", "hsn", "cxi"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], 3) == 0 && name[3] >= '0' && name[3] <= '9')
            return true;
    return false;
}

int64_t tutti_product_mbits(const struct tutti_inventory *inventory, uint32_t net,
                            enum tutti_source *ret_source)
{
    int64_t mbits = tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, 0);

    *ret_source = inventory->devices[net].value[TUTTI_PROPERTY_SPEED].found_by;
    if (mbits > 0 && *ret_source > TUTTI_SOURCE_ASSUMED)
        return mbits;
    *ret_source = TUTTI_SOURCE_PRODUCT;
    mbits = mbits_of_card(pci_number(inventory, net, TUTTI_PROPERTY_PCI_VENDOR),
                          pci_number(inventory, net, TUTTI_PROPERTY_PCI_DEVICE));
    if (mbits > 0)
        return mbits / count_ports(inventory, net);
    if (is_slingshot(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME)))
        return 200000;
    *ret_source = TUTTI_SOURCE_ASSUMED;
    return 0;
}
