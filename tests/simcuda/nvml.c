/* SPDX-License-Identifier: Apache-2.0
 * A simulated libnvidia-ml.so.1: NVML's functions by their names, for the machine of a topology
 * file. Calls that NVML's manual forbids abort. With SIM_OLD_DRIVER it has the functions only that
 * drivers of 2016 had.
 *
 *   TUTTI_SIM_TOPOLOGY=FILE                            the machine
 *   TUTTI_SIM_NVML_FAULT=function:code[@gpu],...       calls that fail
 *   TUTTI_SIM_NVML_MIG=1                               GPUs are split into MIG instances
 */
#include "simcuda/nvml.h"

#include "simcuda/machine.h"
#include "topology/inventory/inventory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN ((int64_t)0xfffffff << 20 | 0xff << 12 | 0xff << 4)
/* nvmlGpuP2PStatus_t: the chip set lets GPUs not reach one another. */
enum { P2P_CHIPSET_NOT_SUPPORTED = 1 };

/* nvmlDevice_t points into the machine's GPUs. */
static struct sim_machine machine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of ninits, and of loading */
static int ninits;

/* ---- calls ----------------------------------------------------------------------------------- */

static void need_init(const char *function)
{
    int n;

    pthread_mutex_lock(&lock);
    n = ninits;
    pthread_mutex_unlock(&lock);
    if (n == 0)
        sim_die("%s without nvmlInit", function);
}

static const struct sim_gpu *gpu_of(const struct tutti_nvml_gpu *handle)
{
    return (const struct sim_gpu *)(const void *)handle;
}

/* At the beginning of each call for a GPU: what it is to return at once, else 0. */
static int begin(const char *function, const struct tutti_nvml_gpu *handle, const void *result)
{
    const struct sim_gpu *gpu = gpu_of(handle);

    need_init(function);
    if (gpu < machine.gpus || gpu >= machine.gpus + machine.ngpus || gpu->index >= machine.ngpus ||
        gpu != &machine.gpus[gpu->index])
        sim_die("%s: %p is no handle of a GPU", function, (const void *)handle);
    if (result == NULL)
        sim_die("%s: a null pointer", function);
    return sim_fault("NVML", function, (int)gpu->index);
}

/* The same for a link; INVALID_ARGUMENT beyond the last. */
static int begin_link(const char *function, const struct tutti_nvml_gpu *handle, unsigned link,
                      const void *result)
{
    int code = begin(function, handle, result);

    return code != 0 || link < 18 || link < gpu_of(handle)->nlinks ? code
                                                                   : TUTTI_NVML_INVALID_ARGUMENT;
}

static int64_t number(uint32_t device, enum tutti_property property, int64_t fallback)
{
    return tutti_device_number(machine.inventory, device, property, fallback);
}

static int put_text(char *text, unsigned size_bytes, const char *what)
{
    if (strlen(what) >= size_bytes)
        return TUTTI_NVML_INSUFFICIENT_SIZE;
    strcpy(text, what);
    return TUTTI_NVML_SUCCESS;
}

/* ---- the library, and finding GPUs ----------------------------------------------------------- */

int nvmlInit_v2(void)
{
    int code = sim_fault("NVML", __func__, -1);

    if (code != 0)
        return code;
    pthread_mutex_lock(&lock);
    if (ninits++ == 0)
        sim_machine_load(&machine);
    pthread_mutex_unlock(&lock);
    return TUTTI_NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    need_init(__func__);
    pthread_mutex_lock(&lock);
    if (--ninits == 0)
        sim_machine_free(&machine);
    pthread_mutex_unlock(&lock);
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *ret_count)
{
    int code = sim_fault("NVML", __func__, -1);

    need_init(__func__);
    *ret_count = machine.ngpus;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct tutti_nvml_gpu **ret_gpu)
{
    int code = sim_fault("NVML", __func__, (int)index);

    need_init(__func__);
    if (code != 0)
        return code;
    if (index >= machine.ngpus)
        return TUTTI_NVML_INVALID_ARGUMENT;
    *ret_gpu = (struct tutti_nvml_gpu *)(void *)&machine.gpus[index];
    return TUTTI_NVML_SUCCESS;
}

/* ---- the GPU itself -------------------------------------------------------------------------- */

/* "00000000:3B:00.0"; what is hidden is all "F". */
static void fill_pci(int64_t busid, struct tutti_nvml_pci *ret_pci)
{
    unsigned domain = busid == HIDDEN ? UINT32_MAX : (unsigned)(busid >> 20);

    *ret_pci = (struct tutti_nvml_pci){
        .domain = domain, .bus = busid >> 12 & 0xff, .device = busid >> 4 & 0xff,
    };
    snprintf(ret_pci->bus_id, sizeof ret_pci->bus_id, "%08X:%02X:%02X.%X", domain, ret_pci->bus,
             ret_pci->device, (unsigned)(busid & 0xf));
    snprintf(ret_pci->bus_id_legacy, sizeof ret_pci->bus_id_legacy, "%04X:%02X:%02X.%X",
             domain & 0xffff, ret_pci->bus, ret_pci->device, (unsigned)(busid & 0xf));
}

int nvmlDeviceGetPciInfo_v3(struct tutti_nvml_gpu *handle, struct tutti_nvml_pci *ret_pci)
{
    int code = begin(__func__, handle, ret_pci);
    uint32_t pci;

    if (code != 0)
        return code;
    pci = gpu_of(handle)->pci;
    fill_pci(number(pci, TUTTI_PROPERTY_BUSID, 0), ret_pci);
    ret_pci->ids = (unsigned)(number(pci, TUTTI_PROPERTY_PCI_DEVICE, 0) << 16 |
                              number(pci, TUTTI_PROPERTY_PCI_VENDOR, 0x10de));
    ret_pci->subsystem_ids = (unsigned)(number(pci, TUTTI_PROPERTY_SUBDEVICE, 0) << 16 |
                                        number(pci, TUTTI_PROPERTY_SUBVENDOR, 0));
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(struct tutti_nvml_gpu *handle, int *ret_major,
                                       int *ret_minor)
{
    int code = begin(__func__, handle, ret_major);
    int64_t sm;

    if (code != 0)
        return code;
    sm = number(gpu_of(handle)->gpu, TUTTI_PROPERTY_SM, 0);
    *ret_major = (int)(sm / 10);
    *ret_minor = (int)(sm % 10);
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetName(struct tutti_nvml_gpu *handle, char *ret_name, unsigned size_bytes)
{
    int code = begin(__func__, handle, ret_name);
    const char *model;

    if (code != 0)
        return code;
    model = tutti_device_text(machine.inventory, gpu_of(handle)->gpu, TUTTI_PROPERTY_MODEL_NAME);
    return put_text(ret_name, size_bytes, *model != '\0' ? model : "Simulated GPU");
}

int nvmlDeviceGetUUID(struct tutti_nvml_gpu *handle, char *ret_uuid, unsigned size_bytes)
{
    int code = begin(__func__, handle, ret_uuid);
    const char *uuid;
    char made[64];

    if (code != 0)
        return code;
    uuid = tutti_device_text(machine.inventory, gpu_of(handle)->gpu, TUTTI_PROPERTY_UUID);
    snprintf(made, sizeof made, "GPU-00000000-0000-0000-0000-%012llx",
             (unsigned long long)number(gpu_of(handle)->pci, TUTTI_PROPERTY_BUSID, 0));
    return put_text(ret_uuid, size_bytes, *uuid != '\0' ? uuid : made);
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct tutti_nvml_gpu *handle, unsigned *ret_generation)
{
    static const double slower[] = {2, 4, 6, 12, 24, 48, 96}; /* below each generation's speed */
    int code = begin(__func__, handle, ret_generation);
    double gts;

    if (code != 0)
        return code;
    gts = tutti_device_real(machine.inventory, gpu_of(handle)->pci, TUTTI_PROPERTY_LINK_SPEED, 0);
    *ret_generation = 0;
    for (size_t i = 0; i < sizeof slower / sizeof slower[0] && gts > slower[i]; i++)
        ++*ret_generation;
    return *ret_generation == 0 ? TUTTI_NVML_NOT_SUPPORTED : TUTTI_NVML_SUCCESS;
}

/* Of a GPU that has nothing to do. */
int nvmlDeviceGetCurrPcieLinkGeneration(struct tutti_nvml_gpu *handle, unsigned *ret_generation)
{
    int code = nvmlDeviceGetMaxPcieLinkGeneration(handle, ret_generation);

    *ret_generation = 1;
    return code;
}

int nvmlDeviceGetCurrPcieLinkWidth(struct tutti_nvml_gpu *handle, unsigned *ret_width)
{
    int code = begin(__func__, handle, ret_width);

    if (code != 0)
        return code;
    *ret_width = (unsigned)number(gpu_of(handle)->pci, TUTTI_PROPERTY_LINK_WIDTH, 0);
    return *ret_width == 0 ? TUTTI_NVML_NOT_SUPPORTED : TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth(struct tutti_nvml_gpu *handle, unsigned *ret_width)
{
    int code = nvmlDeviceGetCurrPcieLinkWidth(handle, ret_width);

    *ret_width = 16;
    return code;
}

/* ---- NVLinks --------------------------------------------------------------------------------- */

int nvmlDeviceGetNvLinkState(struct tutti_nvml_gpu *handle, unsigned link, int *ret_is_active)
{
    int code = begin_link(__func__, handle, link, ret_is_active);

    if (code != 0)
        return code;
    *ret_is_active = link < gpu_of(handle)->nlinks;
    return gpu_of(handle)->nlinks > 0 ? TUTTI_NVML_SUCCESS : TUTTI_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct tutti_nvml_gpu *handle, unsigned link,
                                        struct tutti_nvml_pci *ret_pci)
{
    int code = begin_link(__func__, handle, link, ret_pci);

    if (code != 0)
        return code;
    if (link >= gpu_of(handle)->nlinks)
        return TUTTI_NVML_NOT_SUPPORTED;
    fill_pci(gpu_of(handle)->links[link].target, ret_pci);
    return TUTTI_NVML_SUCCESS;
}

#ifndef SIM_OLD_DRIVER
const char *nvmlErrorString(int code)
{
    return code == TUTTI_NVML_SUCCESS         ? "Success"
           : code == TUTTI_NVML_GPU_IS_LOST   ? "GPU is lost"
           : code == TUTTI_NVML_NOT_SUPPORTED ? "Not Supported"
                                              : "Some Error";
}

int nvmlDeviceGetNvLinkCapability(struct tutti_nvml_gpu *handle, unsigned link, int capability,
                                  unsigned *ret_is_there)
{
    int code = begin_link(__func__, handle, link, ret_is_there);

    if (code != 0)
        return code;
    if (capability < 0 || capability > 5)
        return TUTTI_NVML_INVALID_ARGUMENT;
    *ret_is_there = link < gpu_of(handle)->nlinks;
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(struct tutti_nvml_gpu *handle, unsigned link, unsigned *ret_version)
{
    int code = begin_link(__func__, handle, link, ret_version);
    int64_t sm;

    if (code != 0)
        return code;
    sm = number(gpu_of(handle)->gpu, TUTTI_PROPERTY_SM, 0);
    *ret_version = sm < 70 ? 1 : sm < 80 ? 2 : sm < 90 ? 4 : sm < 100 ? 6 : 7;
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct tutti_nvml_gpu *handle, unsigned link, int *ret_type)
{
    int code = begin_link(__func__, handle, link, ret_type);
    int64_t class;

    if (code != 0)
        return code;
    if (link >= gpu_of(handle)->nlinks)
        return TUTTI_NVML_NOT_SUPPORTED;
    class = gpu_of(handle)->links[link].class;
    *ret_type = class == 0x068000        ? TUTTI_NVML_REMOTE_SWITCH
                : class == 0x068001      ? TUTTI_NVML_REMOTE_IBM_NPU
                : class >> 16 == 0x03    ? TUTTI_NVML_REMOTE_GPU
                                         : TUTTI_NVML_REMOTE_UNKNOWN;
    return TUTTI_NVML_SUCCESS;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* One link more than the file has, which is not active. */
static int64_t c2c_links(const struct sim_gpu *gpu)
{
    return gpu->c2c == TUTTI_NO_DEVICE ? -1 : number(gpu->c2c, TUTTI_PROPERTY_LINKS, 1) + 1;
}

static int read_field(const struct sim_gpu *gpu, struct tutti_nvml_field *field)
{
    int64_t nc2c = c2c_links(gpu), value = 0;

    switch (field->field) {
    case TUTTI_NVML_FIELD_NVLINK_SPEED:
        if (field->scope >= gpu->nlinks)
            return TUTTI_NVML_NOT_SUPPORTED;
        value = 25781;
        break;
    case TUTTI_NVML_FIELD_C2C_LINKS:
        if (nc2c < 0)
            return TUTTI_NVML_NOT_SUPPORTED;
        value = nc2c;
        break;
    case TUTTI_NVML_FIELD_C2C_STATUS:
    case TUTTI_NVML_FIELD_C2C_MAX_BW:
        if (field->scope >= nc2c)
            return TUTTI_NVML_INVALID_ARGUMENT;
        value = field->field == TUTTI_NVML_FIELD_C2C_STATUS
                    ? field->scope + 1 < nc2c
                    : number(gpu->c2c, TUTTI_PROPERTY_BW, 0);
        break;
    default:
        return TUTTI_NVML_NOT_SUPPORTED;
    }
    field->type = TUTTI_NVML_VALUE_UINT;
    field->value.unsigned_number = (unsigned)value;
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetFieldValues(struct tutti_nvml_gpu *handle, int count,
                             struct tutti_nvml_field *fields)
{
    int code = begin(__func__, handle, fields);

    if (code != 0)
        return code;
    if (count < 1)
        return TUTTI_NVML_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        fields[i].result = read_field(gpu_of(handle), &fields[i]);
    return TUTTI_NVML_SUCCESS;
}

/* ---- several GPUs ---------------------------------------------------------------------------- */

int nvmlDeviceGetP2PStatus(struct tutti_nvml_gpu *handle, struct tutti_nvml_gpu *peer,
                           int capability, int *ret_status)
{
    int code = begin(__func__, handle, ret_status);

    if (code == 0)
        code = begin(__func__, peer, ret_status);
    if (code != 0)
        return code;
    if (handle == peer || capability < 0 || capability > 4)
        return TUTTI_NVML_INVALID_ARGUMENT;
    *ret_status = number(gpu_of(handle)->gpu, TUTTI_PROPERTY_P2P, 1) != 0 &&
                          number(gpu_of(peer)->gpu, TUTTI_PROPERTY_P2P, 1) != 0
                      ? TUTTI_NVML_P2P_OK
                      : P2P_CHIPSET_NOT_SUPPORTED;
    return TUTTI_NVML_SUCCESS;
}

static int fill_fabric(const struct sim_gpu *gpu, struct tutti_nvml_fabric *ret_fabric)
{
    uint64_t fabric = (uint64_t)number(gpu->gpu, TUTTI_PROPERTY_FABRIC, 0);
    uint64_t cluster = fabric & ~UINT64_C(0xffff); /* and below it the clique */

    if (gpu->nlinks == 0 || number(gpu->gpu, TUTTI_PROPERTY_SM, 0) < 90)
        return TUTTI_NVML_NOT_SUPPORTED;
    /* On one host's switches GPUs complete joining, too, but a cluster of zeros. */
    *ret_fabric = (struct tutti_nvml_fabric){
        .state = TUTTI_NVML_FABRIC_COMPLETED, .clique = (unsigned)(fabric & 0xffff),
    };
    memcpy(ret_fabric->cluster, &cluster, sizeof cluster);
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(struct tutti_nvml_gpu *handle, struct tutti_nvml_fabric *ret_fabric)
{
    int code = begin(__func__, handle, ret_fabric);

    return code != 0 ? code : fill_fabric(gpu_of(handle), ret_fabric);
}

int nvmlDeviceGetGpuFabricInfoV(struct tutti_nvml_gpu *handle, struct tutti_nvml_fabric_v2 *fabric)
{
    int code = begin(__func__, handle, fabric);
    struct tutti_nvml_fabric facts;

    if (code != 0)
        return code;
    if (fabric->version != (0x2000000 | sizeof *fabric))
        return TUTTI_NVML_ARGUMENT_VERSION_MISMATCH;
    code = fill_fabric(gpu_of(handle), &facts);
    if (code != TUTTI_NVML_SUCCESS)
        return code;
    memcpy(fabric->cluster, facts.cluster, sizeof facts.cluster);
    fabric->status = facts.status;
    fabric->clique = facts.clique;
    fabric->state = facts.state;
    return TUTTI_NVML_SUCCESS;
}

int nvmlDeviceGetMigMode(struct tutti_nvml_gpu *handle, unsigned *ret_current,
                         unsigned *ret_pending)
{
    int code = begin(__func__, handle, ret_current);

    if (code != 0)
        return code;
    if (number(gpu_of(handle)->gpu, TUTTI_PROPERTY_SM, 0) < 80)
        return TUTTI_NVML_NOT_SUPPORTED;
    *ret_current = *ret_pending = getenv("TUTTI_SIM_NVML_MIG") != NULL;
    return TUTTI_NVML_SUCCESS;
}
#endif
