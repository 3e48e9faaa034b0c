/* SPDX-License-Identifier: Apache-2.0
 * Completes an inventory that was read from a file (tutti_inventory_complete). Adds the devices
 * that files leave for the driver to find, as far as they can be inferred. Removes nets that a file
 * lists several times. */
#include "topology/inventory/complete.h"

#include "base/log.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* ---- nets that are listed below every cpu ---------------------------------------------------- */

/* A net whose nic is directly below a cpu, not below a pci. */
struct net_entry {
    const struct tutti_inventory *inventory;
    uint32_t net, cpu;
    uint32_t order; /* position in the tree */
};

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Returns 0 if both are the same net, as far as their values show. */
static int compare_nets(const struct net_entry *a, const struct net_entry *b)
{
    static const enum tutti_property same[] = {
        TUTTI_PROPERTY_DEV, TUTTI_PROPERTY_GUID, TUTTI_PROPERTY_PORT,
    };
    const struct tutti_inventory *inventory = a->inventory;
    int order = strcmp(tutti_device_text(inventory, a->net, TUTTI_PROPERTY_NET_NAME),
                       tutti_device_text(inventory, b->net, TUTTI_PROPERTY_NET_NAME));

    for (size_t i = 0; i < sizeof same / sizeof same[0] && order == 0; i++)
        order = compare(tutti_device_number(inventory, a->net, same[i], INT64_MIN),
                        tutti_device_number(inventory, b->net, same[i], INT64_MIN));
    if (order == 0)
        order = compare(tutti_device_number(inventory, a->cpu, TUTTI_PROPERTY_HOST_HASH, 0),
                        tutti_device_number(inventory, b->cpu, TUTTI_PROPERTY_HOST_HASH, 0));
    return order;
}

static int compare_entries(const void *left, const void *right)
{
    const struct net_entry *a = left, *b = right;
    int order = compare_nets(a, b);

    return order != 0 ? order : compare(a->order, b->order);
}

/* Returns true if the net has a name or a number. Nets without a bus can be told apart only by
 * these. */
static bool has_identity(const struct tutti_inventory *inventory, uint32_t net)
{
    return tutti_device_has(inventory, net, TUTTI_PROPERTY_NET_NAME) ||
           tutti_device_has(inventory, net, TUTTI_PROPERTY_DEV);
}

/* Lists the nets whose nic is directly below a cpu, and returns their number. */
static uint32_t list_nets_off_bus(const struct tutti_inventory *inventory,
                                  struct net_entry *entries)
{
    uint32_t net = TUTTI_NO_DEVICE, count = 0;

    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        uint32_t cpu = inventory->devices[inventory->devices[net].parent].parent;

        if (inventory->devices[cpu].kind != TUTTI_DEVICE_CPU || !has_identity(inventory, net))
            continue;
        entries[count] = (struct net_entry){
            .inventory = inventory, .net = net, .cpu = cpu, .order = count,
        };
        count++;
    }
    return count;
}

/* Removes each net that is listed again below another cpu, and its nic if the nic is then empty. */
static int drop_repeated_nets(struct tutti_inventory *inventory)
{
    struct net_entry *entries = malloc(inventory->count * sizeof *entries);
    uint32_t count, first = 0;

    if (entries == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to compare the nets of %u devices",
                          inventory->count);
    count = list_nets_off_bus(inventory, entries);
    qsort(entries, count, sizeof *entries, compare_entries);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t nic = inventory->devices[entries[i].net].parent;

        /* Nets of one cpu are different ports. Only a net that is also listed below another cpu is
         * a repetition. */
        if (compare_nets(&entries[first], &entries[i]) != 0 ||
            entries[first].cpu == entries[i].cpu) {
            first = i;
            continue;
        }
        tutti_inventory_remove(inventory, entries[i].net);
        if (inventory->devices[nic].first_child == TUTTI_NO_DEVICE)
            tutti_inventory_remove(inventory, nic);
    }
    free(entries);
    return TUTTI_OK;
}

/* ---- devices that are known by their class --------------------------------------------------- */

/* The lowest device numbers above all that one host uses. */
struct numbers {
    int64_t host_hash; /* the host */
    bool is_set;       /* false: no host yet */
    int64_t gpu, net;
};

/* Returns the host_hash of a device's host. */
static int64_t host_hash_of(const struct tutti_inventory *inventory, uint32_t device)
{
    uint32_t cpu = tutti_inventory_above(inventory, device, TUTTI_DEVICE_CPU);

    return cpu == TUTTI_NO_DEVICE
               ? 0
               : tutti_device_number(inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0);
}

/* Makes *numbers hold the free numbers of this host, and keeps them if it already does. */
static void load_free_numbers(const struct tutti_inventory *inventory, int64_t host_hash,
                              struct numbers *numbers)
{
    uint32_t device = TUTTI_NO_DEVICE;

    if (numbers->is_set && numbers->host_hash == host_hash)
        return;
    *numbers = (struct numbers){.host_hash = host_hash, .is_set = true};
    while ((device = tutti_inventory_next(inventory, device)) != TUTTI_NO_DEVICE) {
        enum tutti_device_kind kind = inventory->devices[device].kind;
        int64_t *next = kind == TUTTI_DEVICE_GPU ? &numbers->gpu : &numbers->net, dev;

        if (kind != TUTTI_DEVICE_GPU && kind != TUTTI_DEVICE_NET)
            continue;
        dev = tutti_device_number(inventory, device, TUTTI_PROPERTY_DEV, -1);
        if (host_hash_of(inventory, device) == host_hash && dev >= *next && dev < INT32_MAX)
            *next = dev + 1;
    }
}

/* Adds the gpu, or the nic and its net, that is assumed below a pci. The device gets the next free
 * number of its host. */
static int add_assumed(struct tutti_inventory *inventory, uint32_t pci, enum tutti_device_kind kind,
                       struct numbers *numbers)
{
    int64_t *number = kind == TUTTI_DEVICE_GPU ? &numbers->gpu : &numbers->net;
    uint32_t device;

    load_free_numbers(inventory, host_hash_of(inventory, pci), numbers);
    TUTTI_TRY(tutti_inventory_add(inventory, pci, kind, TUTTI_SOURCE_ASSUMED, &device));
    if (kind == TUTTI_DEVICE_NIC)
        TUTTI_TRY(tutti_inventory_add(inventory, device, TUTTI_DEVICE_NET, TUTTI_SOURCE_ASSUMED,
                                      &device));
    return tutti_device_set_number(inventory, device, TUTTI_PROPERTY_DEV, TUTTI_SOURCE_ASSUMED,
                                   (*number)++);
}

/* Returns true for vendors of the plain VGA devices of management controllers and hypervisors.
 * These are not GPUs for computing. */
static bool is_console_vendor(int64_t vendor)
{
    static const int64_t makers[] = {
        0x1a03, /* ASPEED */ 0x102b, /* Matrox */ 0x1013, /* Cirrus */ 0x1234, /* Bochs, QEMU */
        0x1b36, /* QXL */ 0x1af4, /* virtio */ 0x15ad, /* VMware */ 0x1414, /* Hyper-V */
    };

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (makers[i] == vendor)
            return true;
    return false;
}

/* Returns the kind of device that a PCI class stands for; TUTTI_DEVICE_COUNT: none of interest. */
static enum tutti_device_kind kind_of_class(int64_t class, int64_t vendor)
{
    switch (class >> 16) {
    case 0x03: /* display controller; 0x0302 has no screen */
        return class >> 8 == 0x0300 && is_console_vendor(vendor) ? TUTTI_DEVICE_COUNT
                                                                 : TUTTI_DEVICE_GPU;
    case 0x12: /* processing accelerator */
        return TUTTI_DEVICE_GPU;
    case 0x02: /* network */
        return TUTTI_DEVICE_NIC;
    default:
        return TUTTI_DEVICE_COUNT;
    }
}

/* Returns true if it is not known what the PCI device is, because nothing is below it. */
static bool is_unidentified(const struct tutti_inventory *inventory, uint32_t pci)
{
    return inventory->devices[pci].kind == TUTTI_DEVICE_PCI &&
           inventory->devices[pci].first_child == TUTTI_NO_DEVICE;
}

/* Adds the gpu or nic below every pci whose class tells what it is. */
static int add_by_class(struct tutti_inventory *inventory)
{
    struct numbers numbers = {.is_set = false};
    uint32_t pci = TUTTI_NO_DEVICE;

    while ((pci = tutti_inventory_next_of(inventory, pci, TUTTI_DEVICE_PCI)) != TUTTI_NO_DEVICE) {
        enum tutti_device_kind kind =
            kind_of_class(tutti_device_number(inventory, pci, TUTTI_PROPERTY_CLASS, 0),
                          tutti_device_number(inventory, pci, TUTTI_PROPERTY_PCI_VENDOR, 0));

        if (kind != TUTTI_DEVICE_COUNT && is_unidentified(inventory, pci))
            TUTTI_TRY(add_assumed(inventory, pci, kind, &numbers));
    }
    return TUTTI_OK;
}

/* ---- devices that are known by their bus id only --------------------------------------------- */

/* Returns true if the inventory holds pci with bus ids below cpus, and nothing else. */
static bool has_only_busids(const struct tutti_inventory *inventory)
{
    uint32_t device = TUTTI_NO_DEVICE;
    bool has_pci = false;

    while ((device = tutti_inventory_next(inventory, device)) != TUTTI_NO_DEVICE) {
        enum tutti_device_kind kind = inventory->devices[device].kind;

        if (kind == TUTTI_DEVICE_SYSTEM || kind == TUTTI_DEVICE_CPU)
            continue;
        if (!is_unidentified(inventory, device) ||
            !tutti_device_has(inventory, device, TUTTI_PROPERTY_BUSID) ||
            tutti_device_has(inventory, device, TUTTI_PROPERTY_CLASS) ||
            tutti_device_has(inventory, device, TUTTI_PROPERTY_PCI_VENDOR))
            return false;
        has_pci = true;
    }
    return has_pci;
}

/* Returns true if the device number, bus or domain of `busid` is one more than that of `before`,
 * and the other parts are equal. The shifts are those of the parts of a bus id (values.c). */
static bool is_next_busid(int64_t before, int64_t busid)
{
    int64_t step = busid - before;

    return step == 1 << 4 || step == 1 << 12 || step == INT64_C(1) << 20;
}

/* Returns GPU for the first device and for each device whose bus id follows that of the GPU before,
 * else NIC. Files that give only bus ids list GPUs in the order of their bus ids, and begin with a
 * GPU. *before is the bus id of the previous GPU, negative for the first device, and is updated. */
static enum tutti_device_kind kind_by_order(const struct tutti_inventory *inventory, uint32_t pci,
                                            int64_t *before)
{
    int64_t busid = tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, 0);

    if (*before >= 0 && !is_next_busid(*before, busid))
        return TUTTI_DEVICE_NIC;
    *before = busid;
    return TUTTI_DEVICE_GPU;
}

/* Adds a gpu or nic below every pci, as its bus id suggests. */
static int add_by_order(struct tutti_inventory *inventory)
{
    struct numbers numbers = {.is_set = false};
    uint32_t pci = TUTTI_NO_DEVICE, ngpus = 0, nnics = 0;
    int64_t before = -1;

    while ((pci = tutti_inventory_next_of(inventory, pci, TUTTI_DEVICE_PCI)) != TUTTI_NO_DEVICE)
        if (kind_by_order(inventory, pci, &before) == TUTTI_DEVICE_GPU)
            ngpus++;
        else
            nnics++;
    /* If no device breaks the order, or GPUs are not the majority, the guess is not reliable. */
    if (nnics == 0 || ngpus <= nnics) {
        tutti_log(TUTTI_LOG_INFO, "the topology has %u PCI devices by bus id alone; only the "
                  "driver knows what they are, so no GPU or NIC is assumed", ngpus + nnics);
        return TUTTI_OK;
    }
    tutti_log(TUTTI_LOG_INFO, "the topology has PCI devices by bus id alone; %u in order are taken "
              "for GPUs, %u out of order for NICs", ngpus, nnics);
    before = -1;
    while ((pci = tutti_inventory_next_of(inventory, pci, TUTTI_DEVICE_PCI)) != TUTTI_NO_DEVICE)
        TUTTI_TRY(add_assumed(inventory, pci, kind_by_order(inventory, pci, &before), &numbers));
    return TUTTI_OK;
}

int tutti_inventory_complete(struct tutti_inventory *inventory)
{
    TUTTI_TRY(tutti_inventory_complete_hosts(inventory));
    TUTTI_TRY(tutti_inventory_complete_shared(inventory));
    TUTTI_TRY(drop_repeated_nets(inventory));
    return has_only_busids(inventory) ? add_by_order(inventory) : add_by_class(inventory);
}
