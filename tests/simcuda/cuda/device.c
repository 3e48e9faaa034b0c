/* SPDX-License-Identifier: Apache-2.0
 * Starts the driver, and describes its devices. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/capture.h"
#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/state.h"
#include "simcuda/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRIVER_VERSION = 13000 };
enum { NVSWITCH = 0x068000 }; /* the PCI class of a link's target */

struct sim_settings sim_settings;
struct sim_device sim_devices[SIM_DEVICES];
int sim_ndevices;
pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static pid_t owner; /* the process that called cuInit; 0: none has. Under sim_lock */
static __thread bool is_in_host_function;

/* ---- the beginning --------------------------------------------------------------------------- */

static uint64_t setting(const char *name, uint64_t fallback, uint64_t least, uint64_t most)
{
    const char *text = getenv(name);
    char *end;
    uint64_t value;

    if (text == NULL)
        return fallback;
    value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most)
        sim_die("%s=%s: a number from %llu to %llu is wanted", name, text,
                (unsigned long long)least, (unsigned long long)most);
    return value;
}

/* As the driver, which has 8 if the variable is not from 1 to 32. */
static uint32_t count_queues(void)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    long count = text != NULL ? strtol(text, NULL, 10) : 0;

    if (setting("SIMCUDA_QUEUES", 0, 0, 1) == 0)
        return 0;
    return count >= 1 && count <= SIM_QUEUES ? (uint32_t)count : 8;
}

static void read_settings(void)
{
    sim_settings = (struct sim_settings){
        .nqueues = count_queues(),
        .multiprocessors = (uint32_t)setting("SIMCUDA_MULTIPROCESSORS", 4, 1, SIM_MULTIPROCESSORS),
        .threads = (uint32_t)setting("SIMCUDA_THREADS", 64, 32, 1024),
        .multiprocessor_threads =
            (uint32_t)setting("SIMCUDA_MULTIPROCESSOR_THREADS", 2048, 32, 1 << 20),
        .memory_bytes = setting("SIMCUDA_MEMORY_MB", 1024, 1, 1 << 20) << 20,
        .watchdog_ns = setting("SIMCUDA_WATCHDOG_MS", 0, 0, 1 << 30) * 1000000,
        .visible = (int)setting("SIMCUDA_VISIBLE", 0, 0, SIM_DEVICES) - 1,
        .allocations_wait = setting("SIMCUDA_WAITS", 0, 0, 1) != 0,
        .copies_are_late = setting("SIMCUDA_LATE_COPIES", 0, 0, 1) != 0,
        .must_check = setting("SIMCUDA_CHECK", 0, 0, 1) != 0 ||
                      setting("SIMCUDA_TRAFFIC", 0, 0, 1) != 0,
        .counts_traffic = setting("SIMCUDA_TRAFFIC", 0, 0, 1) != 0,
        .must_count_leaks = setting("SIMCUDA_LEAKS", 0, 0, 1) != 0,
        .has_small_crews = setting("SIMCUDA_SMALL_CREWS", 0, 0, 1) != 0,
        .has_watched_warps = setting("SIMCUDA_WATCHED_WARPS", 0, 0, 1) != 0 &&
                             getenv("TUTTI_TEST_WHOLE") == NULL,
    };
}

/* The digits of a UUID's text; what is no digit is passed over. */
static void read_uuid(const char *text, unsigned char *ret_uuid)
{
    size_t ndigits = 0;

    memset(ret_uuid, 0, TUTTI_CU_UUID_BYTES);
    if (strncmp(text, "GPU-", 4) == 0)
        text += 4;
    for (; *text != '\0' && ndigits < 2 * TUTTI_CU_UUID_BYTES; text++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *text | 0x20);

        if (digit == NULL || *text == '-')
            continue;
        ret_uuid[ndigits / 2] |= (unsigned char)((digit - digits) << (ndigits % 2 == 0 ? 4 : 0));
        ndigits++;
    }
}

static void add_device(int64_t busid, bool has_peers, const char *name, const char *uuid, int major,
                       int minor)
{
    struct sim_device *device = &sim_devices[sim_ndevices];
    char made[64];

    *device = (struct sim_device){.ordinal = sim_ndevices, .busid = busid, .has_peers = has_peers,
                                  .major = major, .minor = minor,
                                  .places_lock = PTHREAD_MUTEX_INITIALIZER};
    device->primary.device = device;
    snprintf(device->name, sizeof device->name, "%s", name);
    snprintf(made, sizeof made, "00000000-0000-0000-0000-%012llx", (unsigned long long)busid);
    read_uuid(*uuid != '\0' ? uuid : made, device->uuid);
    sim_ndevices++;
}

static bool has_switch(const struct sim_gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->nlinks; i++)
        if (gpu->links[i].class == NVSWITCH)
            return true;
    return false;
}

static bool is_linked(const struct sim_gpu *gpu, const struct sim_gpu *peer, int64_t peer_busid)
{
    for (uint32_t i = 0; i < gpu->nlinks; i++)
        if (gpu->links[i].target == peer_busid)
            return true;
    return has_switch(gpu) && has_switch(peer);
}

static void add_nvlinks(const struct sim_machine *machine)
{
    for (uint32_t i = 0; i < machine->ngpus; i++)
        for (uint32_t j = 0; j < machine->ngpus; j++)
            if (i != j && is_linked(&machine->gpus[i], &machine->gpus[j], sim_devices[j].busid))
                sim_devices[i].nvlinks |= (uint64_t)1 << j;
}

static void add_machine(void)
{
    struct sim_machine machine;

    sim_machine_load(&machine);
    for (uint32_t i = 0; i < machine.ngpus; i++) {
        const struct sim_gpu *gpu = &machine.gpus[i];
        const struct tutti_inventory *inventory = machine.inventory;
        int64_t sm = tutti_device_number(inventory, gpu->gpu, TUTTI_PROPERTY_SM, 90);

        add_device(tutti_device_number(inventory, gpu->pci, TUTTI_PROPERTY_BUSID, 0),
                   tutti_device_number(inventory, gpu->gpu, TUTTI_PROPERTY_P2P, 1) != 0,
                   "Simulated GPU", tutti_device_text(inventory, gpu->gpu, TUTTI_PROPERTY_UUID),
                   (int)(sm / 10), (int)(sm % 10));
    }
    add_nvlinks(&machine);
    sim_machine_free(&machine);
}

static void add_devices(void)
{
    int n = (int)setting("SIMCUDA_DEVICES", 1, 0, SIM_DEVICES);

    if (getenv("TUTTI_SIM_TOPOLOGY") != NULL) {
        add_machine();
        return;
    }
    for (int i = 0; i < n; i++)
        add_device((int64_t)(i + 1) << 12, true, "Simulated GPU", "", 9, 0);
    for (int i = 0; i < n; i++)
        sim_devices[i].nvlinks = UINT64_MAX >> (SIM_DEVICES - n) & ~((uint64_t)1 << i);
}

int cuInit(unsigned flags)
{
    int code = sim_fault("CUDA", __func__, -1);

    if (code != 0)
        return code;
    if (flags != 0)
        return TUTTI_CU_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    if (owner == 0) {
        read_settings();
        sim_faults_read();
        add_devices();
        owner = getpid();
    }
    if (owner != getpid())
        code = TUTTI_CU_NOT_INITIALIZED;
    else if (sim_ndevices == 0)
        code = TUTTI_CU_NO_DEVICE;
    return sim_leave(code);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int may_call(const char *function, int needs)
{
    struct tutti_cu_context *context = sim_current();
    int code = sim_fault("CUDA", function, context != NULL ? context->device->ordinal : -1);

    if (code != 0)
        return code;
    /* In a child of fork the driver does not work, as the real one. */
    if (owner != getpid())
        return TUTTI_CU_NOT_INITIALIZED;
    if (needs & SIM_NEEDS_CONTEXT) {
        if (context == NULL)
            return TUTTI_CU_INVALID_CONTEXT;
        if (!sim_context_lives(context))
            return TUTTI_CU_CONTEXT_IS_DESTROYED;
        if (sim_device_lost(context->device) != 0)
            return sim_device_lost(context->device);
    }
    return needs & SIM_NOT_IN_CAPTURE ? sim_capture_forbids() : 0;
}

static __thread uint64_t ncalls;

uint64_t cuSimCalls(void)
{
    return ncalls;
}

int sim_enter(const char *function, int needs)
{
    int code;

    ncalls++;
    if (is_in_host_function)
        sim_die("%s is called from a host function of a stream", function);
    pthread_mutex_lock(&sim_lock);
    code = may_call(function, needs);
    if (code != 0)
        pthread_mutex_unlock(&sim_lock);
    return code;
}

int sim_leave(int code)
{
    pthread_mutex_unlock(&sim_lock);
    return code;
}

void sim_host_function_begins(void)
{
    is_in_host_function = true;
}

void sim_host_function_ends(void)
{
    is_in_host_function = false;
}

/* ---- devices --------------------------------------------------------------------------------- */

int sim_device_lost(const struct sim_device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_ACQUIRE);
}

void sim_device_lose(struct sim_device *device, int code)
{
    __atomic_store_n(&device->lost, code, __ATOMIC_RELEASE);
}

bool sim_can_access_peer(const struct sim_device *device, const struct sim_device *peer)
{
    return device != peer && device->has_peers && peer->has_peers &&
           !sim_faults_no_peer(device->ordinal, peer->ordinal);
}

bool sim_has_nvlink(const struct sim_device *device, const struct sim_device *peer)
{
    return (device->nvlinks >> peer->ordinal & 1) != 0 &&
           !sim_faults_no_nvlink(device->ordinal, peer->ordinal);
}

/* The device of a handle; NULL: it is none. */
static struct sim_device *device_of(tutti_cu_device device)
{
    return device >= 0 && device < sim_ndevices ? &sim_devices[device] : NULL;
}

int cuDriverGetVersion(int *ret_version)
{
    *ret_version = DRIVER_VERSION;
    return TUTTI_CU_SUCCESS;
}

int cuDeviceGetCount(int *ret_count)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    *ret_count = sim_settings.visible < 0 ? sim_ndevices : 1;
    return sim_leave(0);
}

int cuDeviceGet(tutti_cu_device *ret_device, int ordinal)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (sim_settings.visible >= 0 && ordinal == 0)
        ordinal = sim_settings.visible;
    if (device_of(ordinal) == NULL)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    *ret_device = ordinal;
    return sim_leave(0);
}

static int attribute_of(const struct sim_device *device, int attribute, int *ret_value)
{
    switch (attribute) {
    case TUTTI_CU_MAX_THREADS_PER_BLOCK: *ret_value = (int)sim_settings.threads; break;
    case TUTTI_CU_MULTIPROCESSORS: *ret_value = (int)sim_settings.multiprocessors; break;
    case TUTTI_CU_MAX_THREADS_PER_MULTIPROCESSOR:
        *ret_value = (int)sim_settings.multiprocessor_threads;
        break;
    case TUTTI_CU_PCI_BUS: *ret_value = (int)(device->busid >> 12 & 0xff); break;
    case TUTTI_CU_PCI_DEVICE: *ret_value = (int)(device->busid >> 4 & 0xff); break;
    case TUTTI_CU_PCI_DOMAIN: *ret_value = (int)(device->busid >> 20); break;
    case TUTTI_CU_CAPABILITY_MAJOR: *ret_value = device->major; break;
    case TUTTI_CU_CAPABILITY_MINOR: *ret_value = device->minor; break;
    case TUTTI_CU_UNIFIED_ADDRESSING:
    case TUTTI_CU_HOST_REGISTERED_POINTERS_USABLE:
    case TUTTI_CU_VIRTUAL_MEMORY: *ret_value = 1; break;
    case TUTTI_CU_FILE_DESCRIPTOR_HANDLES: *ret_value = !sim_faults.has_no_vmm_export; break;
    case TUTTI_CU_MANAGED_MEMORY: *ret_value = 0; break;
    default: sim_die("cuDeviceGetAttribute: attribute %d is not simulated", attribute);
    }
    return TUTTI_CU_SUCCESS;
}

int cuDeviceGetAttribute(int *ret_value, int attribute, tutti_cu_device device)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device_of(device) == NULL)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    return sim_leave(attribute_of(device_of(device), attribute, ret_value));
}

int cuDeviceGetName(char *ret_name, int size_bytes, tutti_cu_device device)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device_of(device) == NULL)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    snprintf(ret_name, (size_t)size_bytes, "%s", sim_devices[device].name);
    return sim_leave(0);
}

int cuDeviceGetUuid(unsigned char *ret_uuid, tutti_cu_device device)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device_of(device) == NULL)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    memcpy(ret_uuid, sim_devices[device].uuid, TUTTI_CU_UUID_BYTES);
    return sim_leave(0);
}

int cuDeviceCanAccessPeer(int *ret_can, tutti_cu_device device, tutti_cu_device peer)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device_of(device) == NULL || device_of(peer) == NULL)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    *ret_can = sim_can_access_peer(device_of(device), device_of(peer));
    return sim_leave(0);
}

int cuDeviceGetP2PAttribute(int *ret_value, int attribute, tutti_cu_device device,
                            tutti_cu_device peer)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (attribute != TUTTI_CU_PEER_NATIVE_ATOMICS)
        sim_die("cuDeviceGetP2PAttribute: attribute %d is not simulated", attribute);
    if (device_of(device) == NULL || device_of(peer) == NULL || device == peer)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    *ret_value = sim_can_access_peer(device_of(device), device_of(peer)) &&
                 sim_has_nvlink(device_of(device), device_of(peer));
    return sim_leave(0);
}
