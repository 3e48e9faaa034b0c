/* SPDX-License-Identifier: Apache-2.0
 * Completes what a file of several hosts says about them: which cpus belong to which host, and
 * whether the NVSwitches of the hosts are one. */
#include "topology/inventory/complete.h"

#include "base/result.h"
#include "topology/inventory/pci_ids.h"

#include <stdlib.h>

static uint32_t next_gpu(const struct tutti_inventory *inventory, uint32_t gpu)
{
    return tutti_inventory_next_of(inventory, gpu, TUTTI_DEVICE_GPU);
}

static int64_t hash_of(const struct tutti_inventory *inventory, uint32_t device)
{
    return tutti_device_number(inventory,
                               tutti_inventory_above(inventory, device, TUTTI_DEVICE_CPU),
                               TUTTI_PROPERTY_HOST_HASH, 0);
}

/* ---- hosts with equal hashes ----------------------------------------------------------------- */

/* A multiple of this is added to the host_hash of a repetition. It is odd and has no pattern, so
 * that the sum is not the hash of another host. */
#define HASH_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns the number of earlier cpus with the same host_hash and NUMA number. All children of the
 * root are cpus. */
static uint64_t count_earlier(const struct tutti_inventory *inventory, uint32_t cpu)
{
    int64_t numa = tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1);
    uint64_t count = 0;

    for (uint32_t other = inventory->devices[0].first_child; other != cpu;
         other = inventory->devices[other].next)
        count += hash_of(inventory, other) == hash_of(inventory, cpu) &&
                 tutti_device_number(inventory, other, TUTTI_PROPERTY_NUMA, -1) == numa;
    return count;
}

/* A NUMA node exists once in a host. If a file repeats the number of a node under one host_hash,
 * its author has replaced the hashes of several hosts by one text. The repetitions get hashes of
 * their own. */
static int split_equal_hashes(struct tutti_inventory *inventory)
{
    uint64_t *repeated = calloc(inventory->count, sizeof *repeated), most = 0;

    if (repeated == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the hosts of %u devices",
                          inventory->count);
    for (uint32_t cpu = inventory->devices[0].first_child; cpu != TUTTI_NO_DEVICE;
         cpu = inventory->devices[cpu].next)
        if (tutti_device_has(inventory, cpu, TUTTI_PROPERTY_HOST_HASH) &&
            tutti_device_has(inventory, cpu, TUTTI_PROPERTY_NUMA)) {
            repeated[cpu] = count_earlier(inventory, cpu);
            most = repeated[cpu] > most ? repeated[cpu] : most;
        }
    for (uint32_t cpu = 0; cpu < inventory->count; cpu++)
        if (repeated[cpu] > 0) {
            struct tutti_value *hash = &inventory->devices[cpu].value[TUTTI_PROPERTY_HOST_HASH];

            hash->number = (int64_t)((uint64_t)hash->number + repeated[cpu] * HASH_STEP);
        }
    free(repeated);
    return most == 0 ? TUTTI_OK
                     : tutti_inventory_remark(inventory,
                                              "a host_hash is taken for %llu hosts, "
                                              "because NUMA nodes repeat under it; give each host "
                                              "a host_hash of its own",
                                              (unsigned long long)most + 1);
}

/* ---- NVLink domains -------------------------------------------------------------------------- */

/* Returns true if the gpu has links to an NVSwitch whose address is hidden. */
static bool has_hidden_switch(const struct tutti_inventory *inventory, uint32_t gpu)
{
    for (uint32_t link = inventory->devices[gpu].first_child; link != TUTTI_NO_DEVICE;
         link = inventory->devices[link].next)
        if (inventory->devices[link].kind == TUTTI_DEVICE_NVLINK &&
            tutti_device_number(inventory, link, TUTTI_PROPERTY_TARGET, -1) >> 20 >=
                TUTTI_BUSID_HIDDEN_DOMAIN &&
            tutti_device_number(inventory, link, TUTTI_PROPERTY_TCLASS, 0) !=
                TUTTI_PCI_CLASS_NVLINK_TO_CPU)
            return true;
    return false;
}

/* Returns true if gpus of several hosts have links to hidden NVSwitches, and no gpu says which
 * fabric it belongs to. */
static bool is_domain_unknown(const struct tutti_inventory *inventory)
{
    uint32_t first = TUTTI_NO_DEVICE;
    bool spans_hosts = false;

    for (uint32_t gpu = next_gpu(inventory, TUTTI_NO_DEVICE); gpu != TUTTI_NO_DEVICE;
         gpu = next_gpu(inventory, gpu)) {
        if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_FABRIC))
            return false;
        if (!has_hidden_switch(inventory, gpu))
            continue;
        first = first == TUTTI_NO_DEVICE ? gpu : first;
        spans_hosts = spans_hosts || hash_of(inventory, gpu) != hash_of(inventory, first);
    }
    return spans_hosts;
}

/* NCCL writes several hosts to one file only if one NVLink domain joins them, and it reads the
 * hidden NVSwitches of such a file as one. */
static int join_hosts(struct tutti_inventory *inventory)
{
    if (!is_domain_unknown(inventory))
        return TUTTI_OK;
    for (uint32_t gpu = next_gpu(inventory, TUTTI_NO_DEVICE); gpu != TUTTI_NO_DEVICE;
         gpu = next_gpu(inventory, gpu))
        if (has_hidden_switch(inventory, gpu))
            TUTTI_TRY(tutti_device_set_number(inventory, gpu, TUTTI_PROPERTY_FABRIC,
                                              TUTTI_SOURCE_ASSUMED, 1));
    return tutti_inventory_remark(inventory,
                                  "the hosts are taken for one NVLink domain, because "
                                  "their gpus lead to NVSwitches without an address, as NCCL "
                                  "writes a domain; fabric=\"0x0\" at each <gpu> separates them");
}

int tutti_inventory_complete_hosts(struct tutti_inventory *inventory)
{
    TUTTI_TRY(split_equal_hashes(inventory));
    return join_hosts(inventory);
}
