/* SPDX-License-Identifier: Apache-2.0
 * Finds the place of a device in the inventory, and adds it if it is missing. */
#include "topology/detect/place.h"

#include "base/file.h"
#include "base/result.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number from one of the kernel's files of a PCI device. Returns false if the file does not
 * exist or holds no number. */
static bool read_pci_number(const char *root, int64_t busid, const char *file,
                            long long *ret_number)
{
    char path[PATH_MAX], address[32], text[64], *end;

    tutti_busid_write(busid, address, sizeof address);
    if ((size_t)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, address, file) >=
        sizeof path)
        return false;
    if (!tutti_file_line(path, text, sizeof text))
        return false;
    *ret_number = strtoll(text, &end, 0);
    return end != text;
}

int64_t tutti_detect_pci_class(const char *root, int64_t busid)
{
    long long number;

    return read_pci_number(root, busid, "class", &number) ? number & 0xffffff : -1;
}

uint32_t tutti_detect_child(const struct tutti_inventory *inventory, uint32_t parent,
                            enum tutti_device_kind kind)
{
    uint32_t child = inventory->devices[parent].first_child;

    while (child != TUTTI_NO_DEVICE && inventory->devices[child].kind != kind)
        child = inventory->devices[child].next;
    return child;
}

uint32_t tutti_detect_link(const struct tutti_inventory *inventory, uint32_t gpu, int64_t busid)
{
    uint32_t i = inventory->devices[gpu].first_child;

    while (i != TUTTI_NO_DEVICE &&
           (inventory->devices[i].kind != TUTTI_DEVICE_NVLINK ||
            tutti_device_number(inventory, i, TUTTI_PROPERTY_TARGET, -1) != busid))
        i = inventory->devices[i].next;
    return i;
}

uint32_t tutti_detect_next_net(const struct tutti_inventory *inventory, uint32_t net,
                               const char *name, uint32_t port)
{
    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE)
        if (strcmp(tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME), name) == 0 &&
            (port == 0 || tutti_device_number(inventory, net, TUTTI_PROPERTY_PORT, 1) == port))
            break;
    return net;
}

static int add_cpu(struct tutti_inventory *inventory, enum tutti_source source, int64_t numa,
                   uint32_t *ret_cpu)
{
    uint32_t cpu;

    TUTTI_TRY(tutti_inventory_add(inventory, 0, TUTTI_DEVICE_CPU, source, &cpu));
    TUTTI_TRY(tutti_device_set_number(inventory, cpu, TUTTI_PROPERTY_NUMA, source, numa));
    *ret_cpu = cpu;
    return TUTTI_OK;
}

int tutti_detect_ensure_cpu(struct tutti_inventory *inventory, uint32_t *ret_cpu)
{
    uint32_t cpu = tutti_inventory_next_of(inventory, TUTTI_NO_DEVICE, TUTTI_DEVICE_CPU);

    if (cpu == TUTTI_NO_DEVICE)
        return add_cpu(inventory, TUTTI_SOURCE_ASSUMED, 0, ret_cpu);
    *ret_cpu = cpu;
    return TUTTI_OK;
}

/* Finds the cpu of a NUMA node that the kernel names, and adds this cpu if it is missing. */
static int ensure_numa_cpu(struct tutti_inventory *inventory, int64_t numa, uint32_t *ret_cpu)
{
    uint32_t cpu = TUTTI_NO_DEVICE;

    while ((cpu = tutti_inventory_next_of(inventory, cpu, TUTTI_DEVICE_CPU)) != TUTTI_NO_DEVICE)
        if (tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1) == numa) {
            *ret_cpu = cpu;
            return TUTTI_OK;
        }
    return add_cpu(inventory, TUTTI_SOURCE_SYSFS, numa, ret_cpu);
}

/* Sets the ids that the kernel gives for a device; in a container there may be none. */
static int set_ids(const char *root, struct tutti_inventory *inventory, uint32_t pci, int64_t busid)
{
    static const struct {
        const char *file;
        enum tutti_property property;
    } ids[] = {
        {"class", TUTTI_PROPERTY_CLASS},
        {"vendor", TUTTI_PROPERTY_PCI_VENDOR},
        {"device", TUTTI_PROPERTY_PCI_DEVICE},
        {"subsystem_vendor", TUTTI_PROPERTY_SUBVENDOR},
        {"subsystem_device", TUTTI_PROPERTY_SUBDEVICE},
    };
    long long number;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (read_pci_number(root, busid, ids[i].file, &number) && number >= 0)
            TUTTI_TRY(tutti_device_set_number(inventory, pci, ids[i].property,
                                              TUTTI_SOURCE_SYSFS, number));
    return TUTTI_OK;
}

int tutti_detect_ensure_pci(const char *root, struct tutti_inventory *inventory, int64_t busid,
                            enum tutti_source source, uint32_t *ret_pci)
{
    uint32_t cpu, pci = tutti_inventory_find_pci(inventory, busid);
    long long numa;

    if (pci != TUTTI_NO_DEVICE) {
        *ret_pci = pci;
        return TUTTI_OK;
    }
    /* The value -1 means that the kernel does not know the node, as is common in VMs. */
    if (read_pci_number(root, busid, "numa_node", &numa) && numa >= 0)
        TUTTI_TRY(ensure_numa_cpu(inventory, numa, &cpu));
    else
        TUTTI_TRY(tutti_detect_ensure_cpu(inventory, &cpu));
    TUTTI_TRY(tutti_inventory_add(inventory, cpu, TUTTI_DEVICE_PCI, source, &pci));
    TUTTI_TRY(tutti_device_set_number(inventory, pci, TUTTI_PROPERTY_BUSID, source, busid));
    TUTTI_TRY(set_ids(root, inventory, pci, busid));
    *ret_pci = pci;
    return TUTTI_OK;
}
