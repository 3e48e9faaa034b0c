/* SPDX-License-Identifier: Apache-2.0
 * Accesses of kernels: the owner of the memory, and whether the kernel may access it. Every load
 * and store comes here, so a thread remembers the last results. */
#include "simcuda/cuda/memory.h"

#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/traffic.h"
#include "simcuda/die.h"
#include "simcuda/launch.h"

#include <string.h>

enum { REMEMBERED = 4 };

/* The ranges that a thread may touch, until some device's rights shrink. */
static __thread struct {
    uint64_t nshrunk;
    const struct sim_device *device;
    struct {
        uintptr_t first, end;
        int owner; /* ordinal of the device, or -1 for the host */
    } allowed[REMEMBERED];
    uint32_t next;
} memory;

static uint64_t nshrunk;

void sim_rights_shrink(void)
{
    __atomic_add_fetch(&nshrunk, 1, __ATOMIC_RELAXED);
}

/* *ret_owner: the owner of the memory. */
static bool is_remembered(const struct sim_device *device, uintptr_t first, uintptr_t end,
                          int *ret_owner)
{
    if (memory.device != device || memory.nshrunk != __atomic_load_n(&nshrunk, __ATOMIC_RELAXED))
        return false;
    for (uint32_t i = 0; i < REMEMBERED; i++)
        if (first >= memory.allowed[i].first && end <= memory.allowed[i].end) {
            *ret_owner = memory.allowed[i].owner;
            return true;
        }
    return false;
}

static int ordinal_of(const struct sim_device *device)
{
    return device != NULL ? device->ordinal : -1;
}

/* `since`: how often rights had shrunk before the range was looked at. */
static void remember(const struct sim_device *device, const struct sim_range *range, uint64_t since)
{
    if (memory.device != device || memory.nshrunk != since) {
        memory.device = device;
        memory.nshrunk = since;
        memset(memory.allowed, 0, sizeof memory.allowed);
    }
    memory.allowed[memory.next].first = range->base;
    memory.allowed[memory.next].end = range->base + range->size_bytes;
    memory.allowed[memory.next].owner = ordinal_of(sim_range_device(range));
    memory.next = (memory.next + 1) % REMEMBERED;
}

/* Returns the error of a device's access to a range, or NULL if there is none. Rights change while
 * kernels run. */
static const char *objection(const struct sim_device *device, const struct sim_range *range)
{
    uint64_t bit = (uint64_t)1 << device->ordinal;

    if (range == NULL)
        return "memory of the host that is not mapped";
    switch (range->kind) {
    case SIM_RANGE_DEVICE:
        if (sim_range_device(range) == device ||
            __atomic_load_n(&device->primary.peers, __ATOMIC_RELAXED) >>
                    sim_range_device(range)->ordinal & 1)
            return NULL;
        return "memory of a device to which access is not enabled";
    case SIM_RANGE_MAPPED:
    case SIM_RANGE_IPC:
        return __atomic_load_n(&range->devices, __ATOMIC_RELAXED) & bit
                   ? NULL : "memory that is not mapped for this device";
    default:
        return NULL;
    }
}

/* The device in whose memory it is; NULL: the host's. */
static const struct sim_device *owner_of(const void *at)
{
    const struct sim_device *owner;

    pthread_rwlock_rdlock(&sim_ranges_lock);
    owner = sim_range_device(sim_range_of((uintptr_t)at));
    pthread_rwlock_unlock(&sim_ranges_lock);
    return owner;
}

/* Links that are not NVLink cut lines into pieces. */
bool sim_memory_tears(const struct sim_device *device, const void *at)
{
    const struct sim_device *owner = owner_of(at);

    if (owner == device)
        return false;
    return owner == NULL || !sim_has_nvlink(device, owner) ||
           sim_faults_tears_lines(device->ordinal, owner->ordinal);
}

/* Counts what crosses to or from the owner of the memory. */
static void count(const struct sim_device *device, int owner, size_t size_bytes, bool is_store)
{
    if (owner != device->ordinal)
        sim_traffic_add(is_store ? device->ordinal : owner, is_store ? owner : device->ordinal,
                        size_bytes);
}

void sim_memory_check(struct sim_device *device, const char *kernel, const void *at,
                      size_t size_bytes, bool is_store)
{
    uintptr_t first = (uintptr_t)at;
    uint64_t since = __atomic_load_n(&nshrunk, __ATOMIC_ACQUIRE);
    const struct sim_range *range;
    const char *what;
    int owner;

    if (is_remembered(device, first, first + size_bytes, &owner)) {
        count(device, owner, size_bytes, is_store);
        return;
    }
    if (sim_is_private(at))
        return;
    pthread_rwlock_rdlock(&sim_ranges_lock);
    range = sim_range_of(first);
    if (range == NULL && sim_is_reserved(first))
        what = "memory that is not there, or not any more";
    else
        what = objection(device, range);
    if (what == NULL && first + size_bytes > range->base + range->size_bytes)
        what = "the end of an allocation";
    if (what == NULL) {
        remember(device, range, since);
        count(device, ordinal_of(sim_range_device(range)), size_bytes, is_store);
    }
    pthread_rwlock_unlock(&sim_ranges_lock);
    if (what != NULL)
        sim_die("kernel %s on device %d %s %zu bytes at %p: %s", kernel, device->ordinal,
                is_store ? "stores" : "loads", size_bytes, at, what);
}
