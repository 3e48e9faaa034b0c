/* SPDX-License-Identifier: Apache-2.0
 * Queries NVML for all facts about one GPU. Most queries are optional: a driver that does not
 * support a query leaves the value unknown. */
#include "topology/detect/nvml_gpu.h"

#include "base/log.h"
#include "topology/inventory/inventory.h"

#include <stdio.h>
#include <string.h>

/* The state of the queries about one GPU. */
struct inquiry {
    const struct tutti_nvml *nvml;
    struct tutti_nvml_gpu *gpu;
    char name[64];  /* of the GPU in messages: "GPU 3", then "GPU 3 (0000:3b:00.0)" */
    int fatal_code; /* code of an error that makes the GPU unusable; 0: none */
};

/* Returns true if `code` says that a query succeeded. Other codes are logged, except those of a
 * query that is not supported. A code that makes the GPU unusable is kept in the inquiry. `what`
 * names the value in the log. */
static bool succeeded(struct inquiry *inquiry, const char *what, int code)
{
    if (code == TUTTI_NVML_SUCCESS)
        return true;
    if (code == TUTTI_NVML_GPU_IS_LOST || code == TUTTI_NVML_RESET_REQUIRED)
        inquiry->fatal_code = code;
    else if (code != TUTTI_NVML_NOT_SUPPORTED && code != TUTTI_NVML_INVALID_ARGUMENT &&
             code != TUTTI_NVML_FUNCTION_NOT_FOUND)
        tutti_log(TUTTI_LOG_DEBUG, "NVML, %s, %s: %s", inquiry->name, what,
                  tutti_nvml_error(inquiry->nvml, code));
    return false;
}

/* ---- the GPU itself -------------------------------------------------------------------------- */

/* Returns the bus id from NVML's text, or from NVML's numbers if there is no valid text. */
static int64_t busid_of(const struct tutti_nvml_pci *pci)
{
    int64_t busid;

    if (memchr(pci->bus_id, '\0', sizeof pci->bus_id) == NULL ||
        !tutti_busid_parse(pci->bus_id, &busid))
        busid = (int64_t)pci->domain << 20 | (int64_t)(pci->bus & 0xff) << 12 |
                (int64_t)(pci->device & 0xff) << 4;
    return busid;
}

/* Returns the GT/s of a PCIe generation; 0: not known. */
static double generation_gts(unsigned generation)
{
    static const double gts[] = {0, 2.5, 5, 8, 16, 32, 64, 128};

    return generation < sizeof gts / sizeof gts[0] ? gts[generation] : 0;
}

/* Idle GPUs lower the speed of their link, so the function takes the maximum speed. A width below
 * the maximum is permanent (a slot with fewer lanes, bad contacts), so the function takes the
 * current width. */
static void read_pcie(struct inquiry *inquiry, struct tutti_detect_nvml_facts *facts)
{
    const struct tutti_nvml *nvml = inquiry->nvml;
    struct tutti_nvml_gpu *gpu = inquiry->gpu;
    unsigned generation, width;

    if (succeeded(inquiry, "PCIe generation",
                  tutti_nvml_call(nvml, max_pcie_generation, gpu, &generation)) ||
        succeeded(inquiry, "PCIe generation",
                  tutti_nvml_call(nvml, pcie_generation, gpu, &generation)))
        facts->pcie_gts = generation_gts(generation);
    if (succeeded(inquiry, "PCIe width", tutti_nvml_call(nvml, max_pcie_width, gpu, &width)))
        facts->pcie_width = width;
    if (succeeded(inquiry, "PCIe width", tutti_nvml_call(nvml, pcie_width, gpu, &width)) &&
        width > 0) {
        if (facts->pcie_width > width)
            tutti_log(TUTTI_LOG_DEBUG, "%s has %u of its %u PCIe lanes", inquiry->name, width,
                      facts->pcie_width);
        facts->pcie_width = width;
    }
}

/* Checks the result of a query for a text; the text is "" if the query failed. */
static void read_text(struct inquiry *inquiry, const char *what, int code, char *text)
{
    text[TUTTI_NVML_TEXT_BYTES - 1] = '\0';
    if (!succeeded(inquiry, what, code))
        text[0] = '\0';
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Reads one field as an unsigned number, and returns false if the field is not available. */
static bool read_field(struct inquiry *inquiry, const char *what, unsigned id, unsigned scope,
                       uint64_t *ret_number)
{
    struct tutti_nvml_field field = {.field = id, .scope = scope};

    if (!succeeded(inquiry, what,
                   tutti_nvml_call(inquiry->nvml, fields, inquiry->gpu, 1, &field)) ||
        !succeeded(inquiry, what, field.result))
        return false;
    switch (field.type) {
    case TUTTI_NVML_VALUE_UINT:
        *ret_number = field.value.unsigned_number;
        return true;
    case TUTTI_NVML_VALUE_ULONG:
        *ret_number = field.value.unsigned_long;
        return true;
    case TUTTI_NVML_VALUE_ULONGLONG:
        *ret_number = field.value.unsigned_long_long;
        return true;
    default:
        return false;
    }
}

/* Counts one more link to the device with this bus id. */
static void count_link(struct tutti_detect_nvml_facts *facts, int64_t busid, int remote_type)
{
    struct tutti_detect_nvml_target *target = facts->targets;

    while (target < facts->targets + facts->ntargets && target->busid != busid)
        target++;
    if (target == facts->targets + facts->ntargets) {
        *target = (struct tutti_detect_nvml_target){.busid = busid, .remote_type = remote_type};
        facts->ntargets++;
    }
    target->links++;
}

/* Reads the other end of an active link and counts the link. */
static void read_link(struct inquiry *inquiry, unsigned link, struct tutti_detect_nvml_facts *facts)
{
    const struct tutti_nvml *nvml = inquiry->nvml;
    int type = TUTTI_NVML_REMOTE_UNKNOWN;
    struct tutti_nvml_pci pci = {0};
    unsigned can_p2p = 1, version;
    uint64_t speed;
    int64_t busid;

    /* A link without peer-to-peer capability serves only the CPU or a display. Drivers without this
     * query report no such links. */
    if (succeeded(inquiry, "NVLink capability",
                tutti_nvml_call(nvml, link_capability, inquiry->gpu, link, TUTTI_NVML_LINK_CAN_P2P,
                                &can_p2p)) &&
        can_p2p == 0)
        return;
    if (!succeeded(inquiry, "NVLink remote PCI",
                   tutti_nvml_call(nvml, link_remote_pci, inquiry->gpu, link, &pci)))
        return;
    if (!succeeded(inquiry, "NVLink remote type",
                   tutti_nvml_call(nvml, link_remote_type, inquiry->gpu, link, &type)))
        type = TUTTI_NVML_REMOTE_UNKNOWN;
    busid = busid_of(&pci);
    if ((busid >> 20 & TUTTI_BUSID_HIDDEN_DOMAIN) == TUTTI_BUSID_HIDDEN_DOMAIN)
        busid = TUTTI_BUSID_HIDDEN;
    count_link(facts, busid, type);
    if (facts->link_version == 0 &&
        succeeded(inquiry, "NVLink version",
                  tutti_nvml_call(nvml, link_version, inquiry->gpu, link, &version)))
        facts->link_version = version;
    if (facts->link_mbytes_per_s == 0 &&
        read_field(inquiry, "NVLink speed", TUTTI_NVML_FIELD_NVLINK_SPEED, link, &speed))
        facts->link_mbytes_per_s = (unsigned)speed;
}

static void read_links(struct inquiry *inquiry, struct tutti_detect_nvml_facts *facts)
{
    for (unsigned link = 0; link < TUTTI_NVML_LINKS && inquiry->fatal_code == 0; link++) {
        int is_active = 0;
        int code = tutti_nvml_call(inquiry->nvml, link_state, inquiry->gpu, link, &is_active);

        if (code == TUTTI_NVML_INVALID_ARGUMENT || code == TUTTI_NVML_FUNCTION_NOT_FOUND)
            break;
        if (succeeded(inquiry, "NVLink state", code) && is_active)
            read_link(inquiry, link, facts);
    }
}

/* No superchip has this many links; a larger count from the driver is not trusted. */
#define MOST_C2C_LINKS 64

/* Counts the active coherent links to the CPU. Status 1 means that the link is active. */
static void read_c2c(struct inquiry *inquiry, struct tutti_detect_nvml_facts *facts)
{
    uint64_t count, status, speed;

    if (!read_field(inquiry, "C2C links", TUTTI_NVML_FIELD_C2C_LINKS, 0, &count))
        return;
    for (unsigned link = 0; link < count && link < MOST_C2C_LINKS && inquiry->fatal_code == 0;
         link++) {
        if (!read_field(inquiry, "C2C status", TUTTI_NVML_FIELD_C2C_STATUS, link, &status) ||
            status != 1)
            continue;
        facts->c2c_links++;
        if (read_field(inquiry, "C2C speed", TUTTI_NVML_FIELD_C2C_MAX_BW, link, &speed))
            facts->c2c_mbytes_per_s = (uint32_t)speed;
    }
}

/* ---- fabric ---------------------------------------------------------------------------------- */

/* Continues the hash FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < size_bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Sets `fabric` to a hash of cluster and clique. GPUs with the same cluster and clique can access
 * each other's memory over NVLink, even between hosts. A cluster id of zeros is the NVSwitch board
 * of a single host, which is no fabric here. */
static void read_fabric(struct inquiry *inquiry, struct tutti_detect_nvml_facts *facts)
{
    static const unsigned char none[TUTTI_NVML_CLUSTER_BYTES];
    struct tutti_nvml_fabric_v2 fabric = {.version = TUTTI_NVML_FABRIC_VERSION};
    struct tutti_nvml_fabric old = {.state = 0};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (!succeeded(inquiry, "fabric",
                   tutti_nvml_call(inquiry->nvml, fabric_v2, inquiry->gpu, &fabric))) {
        if (inquiry->fatal_code != 0 ||
            !succeeded(inquiry, "fabric",
                       tutti_nvml_call(inquiry->nvml, fabric, inquiry->gpu, &old)))
            return;
        memcpy(fabric.cluster, old.cluster, sizeof old.cluster);
        fabric.status = old.status;
        fabric.clique = old.clique;
        fabric.state = old.state;
    }
    if (fabric.state != TUTTI_NVML_FABRIC_COMPLETED ||
        !succeeded(inquiry, "joining its fabric", fabric.status) ||
        memcmp(fabric.cluster, none, sizeof none) == 0)
        return;
    hash = hash_bytes(hash, fabric.cluster, sizeof fabric.cluster);
    for (int i = 0; i < 4; i++)
        hash = hash_bytes(hash, &(unsigned char){(unsigned char)(fabric.clique >> 8 * i)}, 1);
    facts->fabric = hash != 0 ? hash : 1;
}

/* Detects a GPU whose memory no other GPU may read, because of the chip set, the model or a VM. */
static void read_peers(struct inquiry *inquiry, unsigned index,
                       struct tutti_detect_nvml_facts *facts)
{
    const struct tutti_nvml *nvml = inquiry->nvml;
    unsigned count = 0, nrefused = 0, nallowed = 0;

    if (!succeeded(inquiry, "number of GPUs", nvml->device_count(&count)))
        return;
    for (unsigned peer = 0; peer < count; peer++) {
        struct tutti_nvml_gpu *other;
        int status;

        if (peer == index || nvml->device(peer, &other) != TUTTI_NVML_SUCCESS ||
            !succeeded(inquiry, "peer access",
                       tutti_nvml_call(nvml, p2p_status, inquiry->gpu, other, TUTTI_NVML_P2P_READ,
                                       &status)))
            continue;
        nallowed += status == TUTTI_NVML_P2P_OK;
        nrefused += status != TUTTI_NVML_P2P_OK;
    }
    facts->refuses_peers = nrefused > 0 && nallowed == 0;
}

/* ---- the whole GPU --------------------------------------------------------------------------- */

static void read_identity(struct inquiry *inquiry, struct tutti_detect_nvml_facts *facts)
{
    const struct tutti_nvml *nvml = inquiry->nvml;
    unsigned mode, pending;
    int major, minor;

    if (succeeded(inquiry, "compute capability",
                  nvml->compute_capability(inquiry->gpu, &major, &minor)))
        facts->sm = major * 10 + minor;
    read_text(inquiry, "name",
              tutti_nvml_call(nvml, name, inquiry->gpu, facts->name, sizeof facts->name),
              facts->name);
    read_text(inquiry, "UUID",
              tutti_nvml_call(nvml, uuid, inquiry->gpu, facts->uuid, sizeof facts->uuid),
              facts->uuid);
    if (succeeded(inquiry, "MIG mode",
                  tutti_nvml_call(nvml, mig_mode, inquiry->gpu, &mode, &pending)))
        facts->is_split = mode != 0;
}

/* Logs the error that makes the GPU unusable. */
static enum tutti_detect_nvml_reading give_up(const struct inquiry *inquiry, int code)
{
    /* In a container, GPUs of other containers cause this error. */
    tutti_log(code == TUTTI_NVML_NO_PERMISSION ? TUTTI_LOG_DEBUG : TUTTI_LOG_WARN,
              "%s is left out: NVML says: %s", inquiry->name,
              tutti_nvml_error(inquiry->nvml, code));
    return TUTTI_DETECT_NVML_UNUSABLE;
}

enum tutti_detect_nvml_reading tutti_detect_nvml_gpu(const struct tutti_nvml *nvml, unsigned index,
                                                     struct tutti_detect_nvml_facts *ret_facts)
{
    struct inquiry inquiry = {.nvml = nvml};
    struct tutti_detect_nvml_facts *facts = ret_facts;
    struct tutti_nvml_pci pci = {0};
    char address[32];
    int code;

    *facts = (struct tutti_detect_nvml_facts){.index = index, .busid = -1};
    snprintf(inquiry.name, sizeof inquiry.name, "GPU %u", index);
    code = nvml->device(index, &inquiry.gpu);
    if (code == TUTTI_NVML_SUCCESS)
        code = nvml->pci(inquiry.gpu, &pci);
    if (code != TUTTI_NVML_SUCCESS)
        return give_up(&inquiry, code);
    facts->busid = busid_of(&pci);
    facts->ids = pci.ids;
    facts->subsystem_ids = pci.subsystem_ids;
    tutti_busid_write(facts->busid, address, sizeof address);
    snprintf(inquiry.name, sizeof inquiry.name, "GPU %u (%s)", index, address);

    read_identity(&inquiry, facts);
    read_pcie(&inquiry, facts);
    read_links(&inquiry, facts);
    read_c2c(&inquiry, facts);
    read_fabric(&inquiry, facts);
    read_peers(&inquiry, index, facts);
    return inquiry.fatal_code == 0 ? TUTTI_DETECT_NVML_READ : give_up(&inquiry, inquiry.fatal_code);
}
