/* SPDX-License-Identifier: Apache-2.0
 * Makes the record and the text that tell other ranks about a rank's host. Equal hosts must give
 * equal texts, so values that identify one host are removed or replaced first. */
#include "topology/cluster/cluster.h"

#include "base/result.h"
#include "topology/formats/nccl_xml.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Returns the first net with the same GUID as `net`, which has one. */
static uint32_t first_with_guid(const struct tutti_inventory *inventory, uint32_t net)
{
    int64_t guid = tutti_device_number(inventory, net, TUTTI_PROPERTY_GUID, 0);
    uint32_t first = TUTTI_NO_DEVICE;

    do
        first = tutti_inventory_next_of(inventory, first, TUTTI_DEVICE_NET);
    while (!tutti_device_has(inventory, first, TUTTI_PROPERTY_GUID) ||
           tutti_device_number(inventory, first, TUTTI_PROPERTY_GUID, 0) != guid);
    return first;
}

/* Replaces the GUIDs of a copy of `inventory`. GUIDs show which ports belong to the same card.
 * Numbers in the order of appearance show the same, and these numbers are equal on equal hosts. */
static void number_guids(const struct tutti_inventory *inventory, struct tutti_inventory *copy)
{
    uint32_t net = TUTTI_NO_DEVICE;
    int64_t nguids = 0;

    while ((net = tutti_inventory_next_of(inventory, net, TUTTI_DEVICE_NET)) != TUTTI_NO_DEVICE) {
        uint32_t first;

        if (!tutti_device_has(inventory, net, TUTTI_PROPERTY_GUID))
            continue;
        first = first_with_guid(inventory, net);
        copy->devices[net].value[TUTTI_PROPERTY_GUID].number =
            first == net ? ++nguids
                         : tutti_device_number(copy, first, TUTTI_PROPERTY_GUID, 0);
    }
}

/* Removes the values that differ between equal hosts. */
static void clear_identities(struct tutti_inventory *inventory)
{
    static const enum tutti_property own[] = {
        TUTTI_PROPERTY_HOST_HASH, TUTTI_PROPERTY_UUID, TUTTI_PROPERTY_RANK,
        TUTTI_PROPERTY_FABRIC,
    };

    for (uint32_t device = 0; device != TUTTI_NO_DEVICE;
         device = tutti_inventory_next(inventory, device))
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
            tutti_device_clear(inventory, device, own[i]);
}

/* Returns the fabric of the gpu with this bus id; 0: none. */
static uint64_t fabric_of(const struct tutti_inventory *inventory, int64_t busid)
{
    uint32_t pci = tutti_inventory_find_pci(inventory, busid);

    if (pci == TUTTI_NO_DEVICE)
        return 0;
    for (uint32_t child = inventory->devices[pci].first_child; child != TUTTI_NO_DEVICE;
         child = inventory->devices[child].next)
        if (inventory->devices[child].kind == TUTTI_DEVICE_GPU)
            return (uint64_t)tutti_device_number(inventory, child, TUTTI_PROPERTY_FABRIC, 0);
    return 0;
}

int tutti_cluster_describe(const struct tutti_inventory *inventory, uint64_t host, int64_t gpu,
                           struct tutti_cluster_record *ret_record, char **ret_text)
{
    struct tutti_cluster_record record = {.host = host, .gpu = gpu};
    struct tutti_inventory *copy;
    char *text;
    size_t size_bytes;
    int rc;

    if (gpu != TUTTI_CLUSTER_NO_GPU)
        record.fabric = fabric_of(inventory, gpu);
    TUTTI_TRY(tutti_inventory_copy(inventory, &copy));
    number_guids(inventory, copy);
    clear_identities(copy);
    rc = tutti_xml_write_nccl(copy, &text);
    tutti_inventory_destroy(copy);
    TUTTI_TRY(rc);
    size_bytes = strlen(text);
    if (size_bytes > TUTTI_CLUSTER_TEXT_MAX) {
        free(text);
        return tutti_fail(TUTTI_ERR_ARGUMENT, "this host's description has %zu bytes, which is "
                          "more than %u; give a file with fewer devices", size_bytes,
                          TUTTI_CLUSTER_TEXT_MAX);
    }
    record.size_bytes = (uint32_t)size_bytes;
    crypto_generichash(record.digest, sizeof record.digest, (const unsigned char *)text,
                       size_bytes, NULL, 0);
    *ret_record = record;
    *ret_text = text;
    return TUTTI_OK;
}
