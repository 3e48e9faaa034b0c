/* SPDX-License-Identifier: Apache-2.0
 * Adds GPUs and NICs from the operating system's devices that hwloc's XML lists within a PCI
 * device. */
#include "base/result.h"
#include "topology/formats/hwloc_build.h"
#include "topology/inventory/pci_ids.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upper bound on the ports of one device. */
#define MOST_PORTS 16
/* PCI class and subclass of a USB controller. */
#define PCI_USB 0x0c03
/* The state of a port that is up, IBV_PORT_ACTIVE, as hwloc writes it. */
#define PORT_ACTIVE "4"

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Drivers for computing, in the order in which their device numbers are preferred. NVML and ROCm
 * SMI come first because their numbers do not depend on an application's environment. */
static const char *const drivers[] = {"nvml", "rsmi", "ze", "cuda", "opencl0d"};
#define NDRIVERS (sizeof drivers / sizeof drivers[0])
#define DRIVER_RSMI 1 /* index of "rsmi" */

/* Returns the driver that a device name such as "nvml0" belongs to, and the device's number there;
 * NDRIVERS: none. Parts of a device, such as ze0.1, do not count. */
static size_t driver_of(const char *name, int64_t *ret_number)
{
    for (size_t i = 0; i < NDRIVERS; i++) {
        const char *digits = name + strlen(drivers[i]);

        if (strncmp(name, drivers[i], strlen(drivers[i])) != 0)
            continue;
        if (*digits == '\0' || strlen(digits) > 6 ||
            digits[strspn(digits, "0123456789")] != '\0')
            continue;
        *ret_number = atoi(digits);
        return i;
    }
    return NDRIVERS;
}

/* Returns true if an object is the device of a driver for computing on GPUs. OpenCL lists
 * processors as devices too, so its device type must be GPU. */
static bool is_gpu_driver_device(const struct tutti_hwloc *hwloc, uint32_t object)
{
    const struct tutti_hwloc_object *osdev = &hwloc->objects[object];
    const char *type = tutti_hwloc_info(hwloc, object, "OpenCLDeviceType");
    int64_t number;

    return osdev->kind == TUTTI_HWLOC_OSDEV && (osdev->osdev & TUTTI_HWLOC_COMPUTES) != 0 &&
           osdev->name != NULL && driver_of(osdev->name, &number) < NDRIVERS &&
           (type == NULL || strcmp(type, "GPU") == 0);
}

bool tutti_hwloc_is_gpu(const struct tutti_hwloc *hwloc, uint32_t object)
{
    const struct tutti_hwloc_object *pci = &hwloc->objects[object];

    if (pci->kind != TUTTI_HWLOC_PCI)
        return false;
    if (tutti_pci_is_gpu(pci->pci_class, pci->vendor))
        return true;
    for (uint32_t i = object + 1; i < pci->end; i++)
        if (is_gpu_driver_device(hwloc, i))
            return true;
    return false;
}

/* Sets a text, if there is one and the device does not have the property yet. */
static int set_missing_text(struct tutti_hwloc_build *build, uint32_t device,
                            enum tutti_property property, const char *text)
{
    return text == NULL || *text == '\0' || tutti_device_has(build->inventory, device, property)
               ? TUTTI_OK
               : tutti_device_set_text(build->inventory, device, property, build->source, text);
}

/* Adds the values that one driver gives for the gpu; values from an earlier driver are kept. */
static int add_driver_values(struct tutti_hwloc_build *build, uint32_t object, uint32_t gpu)
{
    static const struct {
        const char *info;
        enum tutti_property property;
    } texts[] = {
        {"GPUModel", TUTTI_PROPERTY_MODEL_NAME}, {"LevelZeroModel", TUTTI_PROPERTY_MODEL_NAME},
        {"NVIDIAUUID", TUTTI_PROPERTY_UUID},     {"AMDUUID", TUTTI_PROPERTY_UUID},
        {"LevelZeroUUID", TUTTI_PROPERTY_UUID},
    };
    int64_t number;

    driver_of(build->hwloc->objects[object].name, &number);
    if (!tutti_device_has(build->inventory, gpu, TUTTI_PROPERTY_DEV))
        TUTTI_TRY(tutti_device_set_number(build->inventory, gpu, TUTTI_PROPERTY_DEV, build->source,
                                          number));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        TUTTI_TRY(set_missing_text(build, gpu, texts[i].property,
                                   tutti_hwloc_info(build->hwloc, object, texts[i].info)));
    return TUTTI_OK;
}

/* Returns true if an object is a device of this driver. */
static bool is_of_driver(const struct tutti_hwloc *hwloc, uint32_t object, size_t driver)
{
    int64_t number;

    return is_gpu_driver_device(hwloc, object) &&
           driver_of(hwloc->objects[object].name, &number) == driver;
}

/* Returns the number of gpus of a PCI device. ROCm SMI lists each partition as a device. */
static uint32_t count_gpus(const struct tutti_hwloc *hwloc, uint32_t object)
{
    uint32_t count = 0;

    for (uint32_t i = object + 1; i < hwloc->objects[object].end; i++)
        count += is_of_driver(hwloc, i, DRIVER_RSMI);
    return count > 1 ? count : 1;
}

/* Adds gpu number `part` of the `count` gpus of a PCI device. If there are several, each has the
 * driver's device in the same position. */
static int add_part(struct tutti_hwloc_build *build, uint32_t object, uint32_t pci, uint32_t part,
                    uint32_t count)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    const struct tutti_hwloc_object *from = &hwloc->objects[object];
    int64_t sm = tutti_pci_compute_capability(from->vendor, from->device);
    const char *gcn = tutti_pci_gcn(from->vendor, from->device);
    uint32_t gpu;

    TUTTI_TRY(tutti_inventory_add(build->inventory, pci, TUTTI_DEVICE_GPU, build->source, &gpu));
    for (size_t driver = 0; driver < NDRIVERS; driver++) {
        uint32_t position = 0;

        for (uint32_t i = object + 1; i < from->end; i++)
            if (is_of_driver(hwloc, i, driver) && (count == 1 || position++ == part))
                TUTTI_TRY(add_driver_values(build, i, gpu));
    }
    TUTTI_TRY(set_missing_text(build, gpu, TUTTI_PROPERTY_MODEL_NAME,
                               tutti_hwloc_info(hwloc, object, "PCIDevice")));
    if (sm != 0)
        TUTTI_TRY(tutti_device_set_number(build->inventory, gpu, TUTTI_PROPERTY_SM,
                                          TUTTI_SOURCE_PRODUCT, sm));
    if (gcn == NULL)
        return TUTTI_OK;
    return tutti_device_set_text(build->inventory, gpu, TUTTI_PROPERTY_GCN, TUTTI_SOURCE_PRODUCT,
                                 gcn);
}

int tutti_hwloc_add_gpu(struct tutti_hwloc_build *build, uint32_t object, uint32_t pci)
{
    uint32_t count = count_gpus(build->hwloc, object);

    for (uint32_t part = 0; part < count; part++)
        TUTTI_TRY(add_part(build, object, pci, part, count));
    return TUTTI_OK;
}

/* ---- NICs ------------------------------------------------------------------------------------ */

/* Returns true for interfaces without hardware, which the kernel creates. */
static bool is_software_interface(const char *name)
{
    static const char *const begins[] = {
        "lo", "br", "docker", "veth", "virbr", "bond", "tun", "tap", "ifb", "dummy", "vmnet",
    };

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return strchr(name, '.') != NULL;
}

/* Returns true if an object is a hardware device of one of these types (bits TUTTI_HWLOC_...). */
static bool is_net(const struct tutti_hwloc *hwloc, uint32_t object, uint32_t type)
{
    const struct tutti_hwloc_object *osdev = &hwloc->objects[object];

    return osdev->kind == TUTTI_HWLOC_OSDEV && (osdev->osdev & type) != 0 && osdev->name != NULL &&
           !is_software_interface(osdev->name);
}

/* Returns true for a card, or an interface without a card, that leads to other hosts. An interface
 * on USB leads to a server's own management controller, so it does not count. An RDMA device
 * without a card is emulated in software and does not count either. */
bool tutti_hwloc_is_nic(const struct tutti_hwloc *hwloc, uint32_t object)
{
    if (hwloc->objects[object].kind == TUTTI_HWLOC_OSDEV)
        return is_net(hwloc, object, TUTTI_HWLOC_NETWORK);
    if (hwloc->objects[object].pci_class >> 8 == PCI_USB)
        return false;
    for (uint32_t i = object; i < hwloc->objects[object].end; i++)
        if (is_net(hwloc, i, TUTTI_HWLOC_NETWORK | TUTTI_HWLOC_OPENFABRICS))
            return true;
    return false;
}

/* Parses "248a:0703:001e:39fe"; 0: no GUID. */
static int64_t parse_guid(const char *text)
{
    uint64_t guid = 0;

    for (; text != NULL && *text != '\0'; text++) {
        char digit[2] = {*text, '\0'};

        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || guid >> 60 != 0)
            return 0;
        guid = guid << 4 | strtoul(digit, NULL, 16);
    }
    return (int64_t)guid;
}

/* Returns the layer of an interface; NULL: not known. InfiniBand addresses have 20 bytes, Ethernet
 * addresses 6, and each byte is written as two digits and a colon. */
static const char *layer_of_address(const struct tutti_hwloc *hwloc, uint32_t object)
{
    const char *address = tutti_hwloc_info(hwloc, object, "Address");
    size_t length = address == NULL ? 0 : strlen(address);

    return length == 20 * 3 - 1 ? "infiniband" : length == 6 * 3 - 1 ? "ethernet" : NULL;
}

/* Returns the layer of a card; NULL: not known. The PCI class of the card decides, or else an
 * interface on the same PCI function. The layer is a guess, because a card may have ports of both
 * kinds. */
static const char *layer_of(const struct tutti_hwloc *hwloc, uint32_t card)
{
    const char *layer = NULL;

    if (hwloc->objects[card].kind == TUTTI_HWLOC_PCI &&
        hwloc->objects[card].pci_class == TUTTI_PCI_CLASS_INFINIBAND)
        return "infiniband";
    for (uint32_t i = card; layer == NULL && i < hwloc->objects[card].end; i++)
        if (is_net(hwloc, i, TUTTI_HWLOC_NETWORK))
            layer = layer_of_address(hwloc, i);
    return layer;
}

static int add_net(struct tutti_hwloc_build *build, uint32_t object, uint32_t nic, uint32_t port,
                   const char *layer)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    int64_t guid = parse_guid(tutti_hwloc_info(hwloc, object, "SysImageGUID"));
    uint32_t net;

    if (guid == 0)
        guid = parse_guid(tutti_hwloc_info(hwloc, object, "NodeGUID"));
    TUTTI_TRY(tutti_inventory_add(build->inventory, nic, TUTTI_DEVICE_NET, build->source, &net));
    TUTTI_TRY(set_missing_text(build, net, TUTTI_PROPERTY_NET_NAME, hwloc->objects[object].name));
    TUTTI_TRY(tutti_device_set_number(build->inventory, net, TUTTI_PROPERTY_PORT, build->source,
                                      port));
    if (guid != 0)
        TUTTI_TRY(tutti_device_set_number(build->inventory, net, TUTTI_PROPERTY_GUID,
                                          build->source, guid));
    return layer == NULL ? TUTTI_OK
                         : tutti_device_set_text(build->inventory, net, TUTTI_PROPERTY_LAYER,
                                                 TUTTI_SOURCE_ASSUMED, layer);
}

/* Adds a net for each port that is active; if no states are known, one net for port 1. */
static int add_ports(struct tutti_hwloc_build *build, uint32_t object, uint32_t nic,
                     const char *layer)
{
    bool has_states = false;

    for (uint32_t port = 1; port <= MOST_PORTS; port++) {
        char info[32];
        const char *state;

        snprintf(info, sizeof info, "Port%uState", port);
        state = tutti_hwloc_info(build->hwloc, object, info);
        has_states = has_states || state != NULL;
        if (state != NULL && strcmp(state, PORT_ACTIVE) == 0)
            TUTTI_TRY(add_net(build, object, nic, port, layer));
    }
    return has_states ? TUTTI_OK : add_net(build, object, nic, 1, layer);
}

/* Adds the net of a network interface. */
static int add_interface(struct tutti_hwloc_build *build, uint32_t object, uint32_t nic)
{
    const char *text = tutti_hwloc_info(build->hwloc, object, "Port");
    long port = text == NULL ? 1 : strtol(text, NULL, 10);

    return add_net(build, object, nic, port >= 1 && port <= MOST_PORTS ? (uint32_t)port : 1,
                   layer_of_address(build->hwloc, object));
}

/* If a card has RDMA devices, its interfaces lead to the same ports, so they are ignored. */
int tutti_hwloc_add_nic(struct tutti_hwloc_build *build, uint32_t object, uint32_t parent)
{
    const struct tutti_hwloc *hwloc = build->hwloc;
    uint32_t end = hwloc->objects[object].end, nic;
    const char *layer = layer_of(hwloc, object);
    bool has_rdma = false;

    TUTTI_TRY(tutti_inventory_add(build->inventory, parent, TUTTI_DEVICE_NIC, build->source, &nic));
    for (uint32_t i = object; i < end; i++) {
        if (!is_net(hwloc, i, TUTTI_HWLOC_OPENFABRICS))
            continue;
        has_rdma = true;
        TUTTI_TRY(add_ports(build, i, nic, layer));
    }
    for (uint32_t i = object; !has_rdma && i < end; i++)
        if (is_net(hwloc, i, TUTTI_HWLOC_NETWORK))
            TUTTI_TRY(add_interface(build, i, nic));
    return TUTTI_OK;
}
