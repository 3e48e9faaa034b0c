/* SPDX-License-Identifier: Apache-2.0
 * Sets the nets of an inventory to the values that libibverbs reports. libibverbs also shows which
 * devices this process may open, which the kernel's files do not. */
#include "topology/detect/verbs.h"

#include "base/log.h"
#include "base/result.h"
#include "topology/detect/place.h"
#include "wrap/ibv.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOURCE TUTTI_SOURCE_VERBS

/* ---- nets ------------------------------------------------------------------------------------ */

/* Removes the nets of a port (0: of all ports), and each nic that is then empty. */
static void remove_nets(struct tutti_inventory *inventory, const char *name, uint32_t port)
{
    uint32_t net;

    while ((net = tutti_detect_next_net(inventory, TUTTI_NO_DEVICE, name, port)) !=
           TUTTI_NO_DEVICE) {
        uint32_t nic = inventory->devices[net].parent;

        tutti_inventory_remove(inventory, net);
        if (inventory->devices[nic].first_child == TUTTI_NO_DEVICE)
            tutti_inventory_remove(inventory, nic);
    }
}

/* Returns a free device number: one more than the highest number of any net. */
static int64_t next_dev(const struct tutti_inventory *inventory)
{
    uint32_t net = TUTTI_NO_DEVICE;
    int64_t dev = 0, taken;

    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        taken = tutti_device_number(inventory, net, TUTTI_PROPERTY_DEV, -1);
        dev = taken >= dev ? taken + 1 : dev;
    }
    return dev;
}

/* Finds the PCI address of an RDMA device in the kernel's files. Returns false if the device is on
 * no PCI bus (Soft-RoCE, for example). */
static bool find_busid(const char *root, const char *name, int64_t *ret_busid)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *slash;
    ssize_t length;

    if ((size_t)snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/device", root, name) >=
        sizeof path)
        return false;
    length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    slash = strrchr(target, '/');
    return tutti_busid_parse(slash != NULL ? slash + 1 : target, ret_busid);
}

/* Returns a net of the nic that has no name; TUTTI_NO_DEVICE: none. */
static uint32_t unnamed_net(const struct tutti_inventory *inventory, uint32_t nic)
{
    uint32_t net = inventory->devices[nic].first_child;

    while (net != TUTTI_NO_DEVICE && tutti_device_has(inventory, net, TUTTI_PROPERTY_NET_NAME))
        net = inventory->devices[net].next;
    return net;
}

/* Finds the nic of an RDMA device, and adds it if it is missing. */
static int find_or_add_nic(const char *root, struct tutti_inventory *inventory, const char *name,
                           uint32_t *ret_nic)
{
    uint32_t above, nic = TUTTI_NO_DEVICE;
    int64_t busid;

    if (find_busid(root, name, &busid)) {
        TUTTI_TRY(tutti_detect_ensure_pci(root, inventory, busid, SOURCE, &above));
        nic = tutti_detect_child(inventory, above, TUTTI_DEVICE_NIC);
    } else {
        /* Another port of the device may have added the nic already. */
        uint32_t net = tutti_detect_next_net(inventory, TUTTI_NO_DEVICE, name, 0);

        if (net != TUTTI_NO_DEVICE)
            nic = inventory->devices[net].parent;
        else
            TUTTI_TRY(tutti_detect_ensure_cpu(inventory, &above));
    }
    if (nic == TUTTI_NO_DEVICE)
        TUTTI_TRY(tutti_inventory_add(inventory, above, TUTTI_DEVICE_NIC, SOURCE, &nic));
    *ret_nic = nic;
    return TUTTI_OK;
}

/* Adds a net for a port that has none, or gives the port's name to a net without a name. */
static int add_or_name_net(const char *root, struct tutti_inventory *inventory, const char *name,
                           uint32_t port, uint32_t *ret_net)
{
    uint32_t nic, net;

    TUTTI_TRY(find_or_add_nic(root, inventory, name, &nic));
    net = unnamed_net(inventory, nic);
    if (net == TUTTI_NO_DEVICE) {
        int64_t dev = next_dev(inventory);

        TUTTI_TRY(tutti_inventory_add(inventory, nic, TUTTI_DEVICE_NET, SOURCE, &net));
        TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_DEV, SOURCE, dev));
    }
    TUTTI_TRY(tutti_device_set_text(inventory, net, TUTTI_PROPERTY_NET_NAME, SOURCE, name));
    TUTTI_TRY(tutti_device_set_number(inventory, net, TUTTI_PROPERTY_PORT, SOURCE, port));
    *ret_net = net;
    return TUTTI_OK;
}

static int set_net(struct tutti_inventory *inventory, uint32_t net,
                   const struct tutti_ibv_device *device, uint32_t port,
                   const struct tutti_ibv_port *facts)
{
    const struct {
        enum tutti_property property;
        uint64_t number;
    } numbers[] = {
        {TUTTI_PROPERTY_PORT, port},
        {TUTTI_PROPERTY_SPEED, facts->rate_mbits_per_s},
        {TUTTI_PROPERTY_GUID, device->guid},
        {TUTTI_PROPERTY_MAXCONN, device->max_connections},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].number != 0)
            TUTTI_TRY(tutti_device_set_number(inventory, net, numbers[i].property, SOURCE,
                                              (int64_t)numbers[i].number));
    if (facts->layer == TUTTI_IBV_LAYER_UNKNOWN)
        return TUTTI_OK;
    return tutti_device_set_text(inventory, net, TUTTI_PROPERTY_LAYER, SOURCE,
                                 facts->layer == TUTTI_IBV_ETHERNET ? "ethernet" : "infiniband");
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Sets the values of a port on all its nets, or removes the nets if the port is not active. */
static int set_port(const char *root, struct tutti_inventory *inventory, const char *name,
                    const struct tutti_ibv_device *device, uint32_t port,
                    const struct tutti_ibv_port *facts)
{
    uint32_t net = tutti_detect_next_net(inventory, TUTTI_NO_DEVICE, name, port);

    if (!facts->is_active) {
        tutti_log(TUTTI_LOG_DEBUG, "port %u of %s is left out: it is %s", port, name, facts->state);
        remove_nets(inventory, name, port);
        return TUTTI_OK;
    }
    if (net == TUTTI_NO_DEVICE)
        TUTTI_TRY(add_or_name_net(root, inventory, name, port, &net));
    /* A file may list the same device below every cpu. */
    for (; net != TUTTI_NO_DEVICE; net = tutti_detect_next_net(inventory, net, name, port))
        TUTTI_TRY(set_net(inventory, net, device, port, facts));
    tutti_log(TUTTI_LOG_DEBUG, "port %u of %s: %u Mbit/s", port, name, facts->rate_mbits_per_s);
    return TUTTI_OK;
}

static int detect_open_device(const struct tutti_ibv *ibv, struct ibv_context *context,
                              const char *name, const char *root,
                              struct tutti_inventory *inventory)
{
    struct tutti_ibv_device device;
    struct tutti_ibv_port port;

    if (tutti_ibv_query_device(ibv, context, &device) != TUTTI_OK) {
        tutti_log(TUTTI_LOG_WARN, "RDMA device %s is left out: %s", name, tutti_message_last());
        remove_nets(inventory, name, 0);
        return TUTTI_OK;
    }
    for (uint32_t i = 1; i <= device.nports; i++) {
        if (tutti_ibv_query_port(ibv, context, i, &port) != TUTTI_OK) {
            tutti_log(TUTTI_LOG_WARN, "port %u of RDMA device %s is left out: %s", i, name,
                      tutti_message_last());
            remove_nets(inventory, name, i);
            continue;
        }
        TUTTI_TRY(set_port(root, inventory, name, &device, i, &port));
    }
    return TUTTI_OK;
}

static int detect_device(const struct tutti_ibv *ibv, struct ibv_device *device, const char *root,
                         struct tutti_inventory *inventory)
{
    const char *name = ibv->get_device_name(device);
    struct ibv_context *context;
    int rc;

    if (name == NULL)
        return TUTTI_OK;
    errno = 0;
    context = ibv->open_device(device);
    if (context == NULL) {
        /* In a container the kernel shows all devices of the host, even if the container may not
         * use them. */
        tutti_log(TUTTI_LOG_INFO, "RDMA device %s is left out: it cannot be opened: %s", name,
                  errno != 0 ? strerror(errno) : "no reason given");
        remove_nets(inventory, name, 0);
        return TUTTI_OK;
    }
    rc = detect_open_device(ibv, context, name, root, inventory);
    ibv->close_device(context);
    return rc;
}

int tutti_detect_verbs(const char *root, struct tutti_inventory *inventory)
{
    struct ibv_device **devices;
    struct tutti_ibv ibv;
    int rc = TUTTI_OK, count = 0;

    if (tutti_ibv_open(&ibv) != TUTTI_OK)
        return TUTTI_OK;
    errno = 0;
    devices = ibv.get_device_list(&count);
    if (devices == NULL)
        tutti_log(TUTTI_LOG_DEBUG, "no RDMA devices: %s",
                  errno != 0 ? strerror(errno) : "libibverbs lists none");
    for (int i = 0; devices != NULL && i < count && rc == TUTTI_OK; i++)
        rc = detect_device(&ibv, devices[i], root != NULL ? root : "", inventory);
    if (devices != NULL)
        ibv.free_device_list(devices);
    tutti_ibv_close(&ibv);
    return rc;
}
