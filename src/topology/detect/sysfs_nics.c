/* SPDX-License-Identifier: Apache-2.0
 * Finds the connections to other machines that the kernel lists: RDMA devices with their ports, and
 * network interfaces of cards without an RDMA device. Interfaces without hardware (lo, bridges,
 * virtual pairs) are left out. Interfaces on USB are left out, too, because they belong to a
 * server's management controller. */
#include "base/result.h"
#include "topology/detect/phases.h"
#include "topology/detect/place.h"
#include "topology/detect/sysfs.h"

#include <stdio.h>
#include <string.h>

/* ---- nets and nics in the inventory ---------------------------------------------------------- */

/* Returns the first net with this name and port (0: any port); TUTTI_NO_DEVICE: none. */
static uint32_t find_net(const struct tutti_inventory *inventory, const char *name, uint32_t port)
{
    return tutti_detect_next_net(inventory, TUTTI_NO_DEVICE, name, port);
}

/* Finds the net with this name and port, and adds it below the nic if it is missing. Port 0 means
 * any port; an added net then gets port 1. */
static int find_or_add_net(struct tutti_inventory *inventory, uint32_t nic, const char *name,
                           uint32_t port, uint32_t *ret_net)
{
    uint32_t net = find_net(inventory, name, port);

    if (net == TUTTI_NO_DEVICE) {
        TUTTI_TRY(tutti_inventory_add(inventory, nic, TUTTI_DEVICE_NET, TUTTI_SOURCE_SYSFS, &net));
        TUTTI_TRY(tutti_device_set_text(inventory, net, TUTTI_PROPERTY_NET_NAME,
                                        TUTTI_SOURCE_SYSFS, name));
        TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_PORT, TUTTI_SOURCE_SYSFS,
                                          port == 0 ? 1 : port));
    }
    *ret_net = net;
    return TUTTI_OK;
}

static void remove_net(struct tutti_inventory *inventory, const char *name, uint32_t port)
{
    uint32_t net = find_net(inventory, name, port);

    if (net != TUTTI_NO_DEVICE)
        tutti_inventory_remove(inventory, net);
}

static int find_or_add_nic(struct tutti_inventory *inventory, uint32_t parent, uint32_t *ret_nic)
{
    uint32_t nic = tutti_detect_child(inventory, parent, TUTTI_DEVICE_NIC);

    if (nic == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, parent, TUTTI_DEVICE_NIC, TUTTI_SOURCE_SYSFS,
                                      &nic));
    *ret_nic = nic;
    return TUTTI_OK;
}

static int set_layer(struct tutti_inventory *inventory, uint32_t net, const char *layer)
{
    return layer == NULL ? TUTTI_OK
                         : tutti_device_set_text(inventory, net, TUTTI_PROPERTY_LAYER,
                                                 TUTTI_SOURCE_SYSFS, layer);
}

/* ---- RDMA devices ---------------------------------------------------------------------------- */

/* Converts "40 Gb/sec (4X QDR)" to Mbit/s; 0: not such a text. */
static int64_t parse_rate(char *text)
{
    double gbits;

    text[strspn(text, "0123456789.")] = '\0';
    return tutti_real_parse(text, &gbits) && gbits < 1e6 ? (int64_t)(gbits * 1000 + 0.5) : 0;
}

/* Reads a GUID such as "0011:7500:0077:cfc8"; 0: not known. */
static int64_t read_guid(const char *root, const char *name, const char *file)
{
    char text[TUTTI_SYSFS_BYTES], written[19] = "0x";
    size_t used = 2;
    int64_t guid;

    if (!tutti_sysfs_read(root, text, "sys/class/infiniband/%s/%s", name, file))
        return 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == ':')
            continue;
        if (used == sizeof written - 1)
            return 0;
        written[used++] = *at;
    }
    return tutti_number_parse(written, &guid) ? guid : 0;
}

static const char *rdma_layer(const char *text)
{
    return strcmp(text, "InfiniBand") == 0 ? "infiniband"
           : strcmp(text, "Ethernet") == 0 ? "ethernet"
                                           : NULL;
}

/* Adds a port of an RDMA device with its values, or removes it if it is not active. */
static int add_port(const char *root, struct tutti_inventory *inventory, uint32_t nic,
                    const char *name, uint32_t port)
{
    char text[TUTTI_SYSFS_BYTES];
    int64_t guid = read_guid(root, name, "sys_image_guid"), rate = 0;
    uint32_t net;

    if (tutti_sysfs_read(root, text, "sys/class/infiniband/%s/ports/%u/state", name, port) &&
        strstr(text, "ACTIVE") == NULL) {
        remove_net(inventory, name, port);
        return TUTTI_OK;
    }
    if (guid == 0)
        guid = read_guid(root, name, "node_guid");
    TUTTI_TRY(find_or_add_net(inventory, nic, name, port, &net));
    if (tutti_sysfs_read(root, text, "sys/class/infiniband/%s/ports/%u/rate", name, port))
        rate = parse_rate(text);
    if (rate > 0)
        TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_SPEED, TUTTI_SOURCE_SYSFS,
                                          rate));
    if (guid != 0)
        TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_GUID, TUTTI_SOURCE_SYSFS,
                                          guid));
    if (!tutti_sysfs_read(root, text, "sys/class/infiniband/%s/ports/%u/link_layer", name, port))
        return TUTTI_OK;
    return set_layer(inventory, net, rdma_layer(text));
}

/* Removes the interfaces of an RDMA device's PCI function, because they lead to the same ports. */
static void remove_interfaces(const char *root, struct tutti_inventory *inventory, uint32_t nic)
{
    uint32_t next;

    for (uint32_t net = inventory->devices[nic].first_child; net != TUTTI_NO_DEVICE; net = next) {
        const char *name = tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME);

        next = inventory->devices[net].next;
        if (!tutti_sysfs_exists(root, "sys/class/infiniband/%s", name) &&
            tutti_sysfs_exists(root, "sys/class/net/%s", name))
            tutti_inventory_remove(inventory, net);
    }
}

/* An RDMA device without a PCI device is emulated in software and is left out. */
static int add_rdma(const char *root, struct tutti_inventory *inventory, const char *name)
{
    char path[TUTTI_SYSFS_BYTES];
    struct dirent **ports;
    uint32_t pci, nic;
    int64_t busid, port;
    int count, rc = TUTTI_OK;

    if (!tutti_sysfs_link(root, path, "sys/class/infiniband/%s", name) &&
        !tutti_sysfs_link(root, path, "sys/class/infiniband/%s/device", name))
        return TUTTI_OK;
    if (!tutti_sysfs_cut_at_busid(path, &busid))
        return TUTTI_OK;
    TUTTI_TRY(tutti_detect_ensure_pci(root, inventory, busid, TUTTI_SOURCE_SYSFS, &pci));
    TUTTI_TRY(find_or_add_nic(inventory, pci, &nic));
    remove_interfaces(root, inventory, nic);
    snprintf(path, sizeof path, "sys/class/infiniband/%s/ports", name);
    count = tutti_sysfs_names(root, path, &ports);
    for (int i = 0; rc == TUTTI_OK && i < count; i++)
        if (tutti_number_parse(ports[i]->d_name, &port) && port >= 1 && port <= 255)
            rc = add_port(root, inventory, nic, name, (uint32_t)port);
    tutti_sysfs_free(ports, count);
    return rc;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static int set_interface(const char *root, struct tutti_inventory *inventory, uint32_t net,
                         const char *name)
{
    char text[TUTTI_SYSFS_BYTES];
    int64_t speed;

    /* Drivers that do not know the speed give -1, or the same bits without a sign. */
    if (tutti_sysfs_read(root, text, "sys/class/net/%s/speed", name) &&
        tutti_number_parse(text, &speed) && speed > 0 && speed < INT32_MAX)
        TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_SPEED, TUTTI_SOURCE_SYSFS,
                                          speed));
    if (!tutti_sysfs_read(root, text, "sys/class/net/%s/type", name))
        return TUTTI_OK;
    /* The types are ARPHRD_ETHER and ARPHRD_INFINIBAND of the kernel. */
    return set_layer(inventory, net, strcmp(text, "1") == 0    ? "ethernet"
                                     : strcmp(text, "32") == 0 ? "infiniband"
                                                               : NULL);
}

static bool is_down(const char *root, const char *name)
{
    char text[TUTTI_SYSFS_BYTES];

    return tutti_sysfs_read(root, text, "sys/class/net/%s/operstate", name) &&
           (strcmp(text, "down") == 0 || strcmp(text, "lowerlayerdown") == 0 ||
            strcmp(text, "notpresent") == 0);
}

/* Finds the device below which an interface is added: the interface's pci, or a cpu if the
 * interface is on another bus. TUTTI_NO_DEVICE: the interface has no hardware, is on USB, or is
 * represented by an RDMA device. `path` is the target of the interface's link; the call shortens
 * it. */
static int find_parent(const char *root, struct tutti_inventory *inventory, const char *name,
                       char *path, uint32_t *ret_parent)
{
    char address[32];
    int64_t busid;

    *ret_parent = TUTTI_NO_DEVICE;
    if (strstr(path, "/virtual/") != NULL || strstr(path, "/usb") != NULL ||
        !tutti_sysfs_exists(root, "sys/class/net/%s/device", name))
        return TUTTI_OK;
    if (!tutti_sysfs_cut_at_busid(path, &busid))
        return tutti_detect_ensure_cpu(inventory, ret_parent);
    tutti_busid_write(busid, address, sizeof address);
    if (tutti_sysfs_exists(root, "sys/class/net/%s/device/infiniband", name) ||
        tutti_sysfs_exists(root, "sys/bus/pci/devices/%s/infiniband", address))
        return TUTTI_OK;
    return tutti_detect_ensure_pci(root, inventory, busid, TUTTI_SOURCE_SYSFS, ret_parent);
}

static int add_interface(const char *root, struct tutti_inventory *inventory, const char *name)
{
    char path[TUTTI_SYSFS_BYTES];
    uint32_t parent, nic, net = find_net(inventory, name, 0);

    if (!tutti_sysfs_link(root, path, "sys/class/net/%s", name) &&
        !tutti_sysfs_link(root, path, "sys/class/net/%s/device", name))
        return TUTTI_OK;
    TUTTI_TRY(find_parent(root, inventory, name, path, &parent));
    if (parent == TUTTI_NO_DEVICE)
        return TUTTI_OK;
    if (net != TUTTI_NO_DEVICE)
        nic = inventory->devices[net].parent;
    else
        TUTTI_TRY(find_or_add_nic(inventory, parent, &nic));
    if (is_down(root, name)) {
        remove_net(inventory, name, 0);
        return TUTTI_OK;
    }
    TUTTI_TRY(find_or_add_net(inventory, nic, name, 0, &net));
    return set_interface(root, inventory, net, name);
}

/* ---- together -------------------------------------------------------------------------------- */

/* Calls `add` for each name in a folder. */
static int add_each(const char *root, struct tutti_inventory *inventory, const char *folder,
                    int (*add)(const char *root, struct tutti_inventory *inventory,
                               const char *name))
{
    struct dirent **names;
    int count = tutti_sysfs_names(root, folder, &names), rc = TUTTI_OK;

    for (int i = 0; rc == TUTTI_OK && i < count; i++)
        rc = add(root, inventory, names[i]->d_name);
    tutti_sysfs_free(names, count);
    return rc;
}

int tutti_detect_sysfs_nics(const char *root, struct tutti_inventory *inventory)
{
    TUTTI_TRY(add_each(root, inventory, "sys/class/infiniband", add_rdma));
    return add_each(root, inventory, "sys/class/net", add_interface);
}
