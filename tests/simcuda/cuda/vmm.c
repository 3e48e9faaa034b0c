/* SPDX-License-Identifier: Apache-2.0
 * Virtual memory: pages and addresses are separate, and are mapped part by part. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A reserved piece of the address space. */
struct reservation {
    uintptr_t base;
    size_t size_bytes;
    struct reservation *next;
};

static struct reservation *reservations;
static struct sim_pages *handles; /* pages of which the program holds a handle */

/* ---- pages and their handles ----------------------------------------------------------------- */

static struct sim_pages *pages_of(tutti_cu_memory memory)
{
    struct sim_pages *pages = handles;

    while (pages != NULL && (tutti_cu_memory)(uintptr_t)pages != memory)
        pages = pages->next;
    return pages;
}

/* One handle more. */
static tutti_cu_memory hold(struct sim_pages *pages)
{
    if (pages->nhandles++ == 0) {
        pages->next = handles;
        handles = pages;
    }
    return (tutti_cu_memory)(uintptr_t)pages;
}

uint32_t sim_handles_left(void)
{
    uint32_t n = 0;

    for (const struct sim_pages *pages = handles; pages != NULL; pages = pages->next)
        n += pages->nhandles;
    return n;
}

static int check_kind(const struct tutti_cu_memory_kind *kind)
{
    if (kind->type != TUTTI_CU_MEMORY_PINNED || kind->location.type != TUTTI_CU_LOCATION_DEVICE ||
        (kind->handle_types & ~TUTTI_CU_HANDLE_FILE) != 0)
        return TUTTI_CU_INVALID_VALUE;
    if (kind->location.id < 0 || kind->location.id >= sim_ndevices)
        return TUTTI_CU_INVALID_DEVICE;
    return kind->handle_types != 0 && sim_faults.has_no_vmm_export ? TUTTI_CU_NOT_SUPPORTED : 0;
}

int cuMemGetAllocationGranularity(size_t *ret_bytes, const struct tutti_cu_memory_kind *kind,
                                  int option)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    code = check_kind(kind);
    if (code == 0 && option != TUTTI_CU_GRANULARITY_MINIMUM &&
        option != TUTTI_CU_GRANULARITY_RECOMMENDED)
        code = TUTTI_CU_INVALID_VALUE;
    if (code == 0)
        *ret_bytes = SIM_GRANULARITY;
    return sim_leave(code);
}

int cuMemCreate(tutti_cu_memory *ret_memory, size_t size_bytes,
                const struct tutti_cu_memory_kind *kind, unsigned long long flags)
{
    struct sim_pages *pages;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    code = check_kind(kind);
    if (code != 0)
        return sim_leave(code);
    if (flags != 0 || size_bytes == 0 || size_bytes % SIM_GRANULARITY != 0)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (size_bytes > sim_settings.memory_bytes)
        return sim_leave(TUTTI_CU_OUT_OF_MEMORY);
    pages = sim_pages_create(&sim_devices[kind->location.id], size_bytes);
    if (pages == NULL)
        return sim_leave(TUTTI_CU_OUT_OF_MEMORY);
    pages->is_exportable = kind->handle_types & TUTTI_CU_HANDLE_FILE;
    *ret_memory = hold(pages);
    return sim_leave(0);
}

int cuMemRelease(tutti_cu_memory memory)
{
    struct sim_pages *pages, **link = &handles;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    pages = pages_of(memory);
    if (pages == NULL)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (--pages->nhandles == 0) {
        while (*link != pages)
            link = &(*link)->next;
        *link = pages->next;
    }
    sim_pages_drop(pages);
    return sim_leave(0);
}

int cuMemRetainAllocationHandle(tutti_cu_memory *ret_memory, void *address)
{
    struct sim_range *range;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)address);
    if (range == NULL || range->kind != SIM_RANGE_MAPPED)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    range->pages->nrefs++;
    *ret_memory = hold(range->pages);
    return sim_leave(0);
}

/* ---- between processes ----------------------------------------------------------------------- */

/* The owner of the memory is stored in an attribute of the file that all processes see: its
 * permissions. */
static mode_t mode_of(const struct sim_device *device)
{
    return (mode_t)(0600 + device->ordinal);
}

int cuMemExportToShareableHandle(void *ret_handle, tutti_cu_memory memory, int handle_type,
                                 unsigned long long flags)
{
    struct sim_pages *pages;
    int file, code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    pages = pages_of(memory);
    if (pages == NULL || handle_type != TUTTI_CU_HANDLE_FILE || flags != 0 ||
        !pages->is_exportable)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (sim_faults.has_no_vmm_export)
        return sim_leave(TUTTI_CU_NOT_SUPPORTED);
    file = dup(pages->file);
    if (file < 0 || fchmod(file, mode_of(pages->device)) != 0)
        sim_die("cannot export memory: %s", strerror(errno));
    *(int *)ret_handle = file;
    return sim_leave(0);
}

/* The device of an exported file; NULL: it is none. */
static struct sim_device *device_of_file(int file, size_t *ret_size_bytes)
{
    char path[64], name[64];
    struct stat status;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    length = readlink(path, name, sizeof name - 1);
    if (length < 0)
        return NULL;
    name[length] = '\0';
    if (strncmp(name, "/memfd:simcuda", 14) != 0 || fstat(file, &status) != 0)
        return NULL;
    *ret_size_bytes = (size_t)status.st_size;
    for (int i = 0; i < sim_ndevices; i++)
        if ((status.st_mode & 0777) == mode_of(&sim_devices[i]))
            return &sim_devices[i];
    return NULL;
}

int cuMemImportFromShareableHandle(tutti_cu_memory *ret_memory, void *handle, int handle_type)
{
    struct sim_device *device;
    struct sim_pages *pages;
    size_t size_bytes = 0;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    device = device_of_file((int)(uintptr_t)handle, &size_bytes);
    if (handle_type != TUTTI_CU_HANDLE_FILE || device == NULL)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    pages = sim_pages_import((int)(uintptr_t)handle, device, size_bytes);
    pages->is_exportable = true;
    *ret_memory = hold(pages);
    return sim_leave(0);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The reservation that all of these bytes lie in. */
static struct reservation *reservation_of(uintptr_t at, size_t size_bytes)
{
    struct reservation *reservation = reservations;

    while (reservation != NULL &&
           (at < reservation->base ||
            at + size_bytes > reservation->base + reservation->size_bytes))
        reservation = reservation->next;
    return reservation;
}

/* True if anything is mapped there. */
static bool has_mappings(uintptr_t at, size_t size_bytes)
{
    for (const struct sim_range *range = sim_ranges; range != NULL; range = range->next)
        if (range->base < at + size_bytes && at < range->base + range->size_bytes)
            return true;
    return false;
}

uint32_t sim_reservations_left(void)
{
    uint32_t n = 0;

    for (const struct reservation *at = reservations; at != NULL; at = at->next)
        n++;
    return n;
}

int cuMemAddressReserve(tutti_cu_address *ret_address, size_t size_bytes, size_t alignment,
                        tutti_cu_address wanted, unsigned long long flags)
{
    struct reservation *reservation;
    uintptr_t base;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    (void)wanted; /* no more than a wish */
    if (code != 0)
        return code;
    if (size_bytes == 0 || size_bytes % SIM_GRANULARITY != 0 || flags != 0 ||
        (alignment & (alignment - 1)) != 0)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    base = sim_addresses(size_bytes, alignment > SIM_GRANULARITY ? alignment : SIM_GRANULARITY);
    if (base == 0)
        return sim_leave(TUTTI_CU_OUT_OF_MEMORY);
    reservation = malloc(sizeof *reservation);
    if (reservation == NULL)
        sim_die("no memory to note a reservation");
    *reservation = (struct reservation){base, size_bytes, reservations};
    reservations = reservation;
    *ret_address = base;
    return sim_leave(0);
}

int cuMemAddressFree(tutti_cu_address address, size_t size_bytes)
{
    struct reservation *reservation, **link = &reservations;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    reservation = reservation_of((uintptr_t)address, size_bytes);
    if (reservation == NULL || reservation->base != address ||
        reservation->size_bytes != size_bytes || has_mappings(reservation->base, size_bytes))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    while (*link != reservation)
        link = &(*link)->next;
    *link = reservation->next;
    free(reservation);
    return sim_leave(0);
}

int cuMemMap(tutti_cu_address address, size_t size_bytes, size_t offset, tutti_cu_memory memory,
             unsigned long long flags)
{
    struct sim_pages *pages;
    struct sim_range range = {.kind = SIM_RANGE_MAPPED, .base = (uintptr_t)address,
                              .size_bytes = size_bytes, .pages_at = (uintptr_t)address,
                              .pages_bytes = size_bytes};
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    pages = pages_of(memory);
    if (pages == NULL || offset != 0 || flags != 0 || size_bytes == 0 ||
        size_bytes > pages->size_bytes || size_bytes % SIM_GRANULARITY != 0 ||
        address % SIM_GRANULARITY != 0 || reservation_of(range.base, size_bytes) == NULL ||
        has_mappings(range.base, size_bytes))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (mmap((void *)range.base, size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, pages->file, 0) ==
        MAP_FAILED)
        sim_die("cannot map memory: %s", strerror(errno));
    range.pages = pages;
    pages->nrefs++;
    sim_range_add(&range);
    return sim_leave(0);
}

/* The mapping of these bytes, no more and no less, from `at` on; NULL: there is none. */
static struct sim_range *mapping_at(uintptr_t at, uintptr_t end)
{
    struct sim_range *range = sim_range_of(at);

    return range != NULL && range->kind == SIM_RANGE_MAPPED && range->base == at &&
                   at + range->size_bytes <= end
               ? range
               : NULL;
}

/* Whether mappings fill these bytes. */
static bool are_mappings(uintptr_t at, size_t size_bytes)
{
    uintptr_t end = at + size_bytes;

    while (at < end) {
        const struct sim_range *range = mapping_at(at, end);

        if (range == NULL)
            return false;
        at += range->size_bytes;
    }
    return size_bytes > 0;
}

int cuMemUnmap(tutti_cu_address address, size_t size_bytes)
{
    uintptr_t at = (uintptr_t)address, end = at + size_bytes;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (!are_mappings(at, size_bytes))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    sim_allocation_wait(&mapping_at(at, end)->pages->device->primary);
    while (at < end) {
        struct sim_range *range = mapping_at(at, end);

        at += range->size_bytes;
        sim_range_remove(range);
    }
    return sim_leave(0);
}

static int allow(struct sim_range *range, const struct tutti_cu_access *access)
{
    const struct sim_device *device, *owner = range->pages->device;
    uint64_t bit;

    if (access->location.type != TUTTI_CU_LOCATION_DEVICE || access->location.id < 0 ||
        access->location.id >= sim_ndevices)
        return TUTTI_CU_INVALID_DEVICE;
    if (access->flags != 0 && access->flags != TUTTI_CU_ACCESS_READ_WRITE)
        return TUTTI_CU_INVALID_VALUE;
    device = &sim_devices[access->location.id];
    if (device != owner && !sim_can_access_peer(device, owner))
        return TUTTI_CU_INVALID_DEVICE;
    bit = (uint64_t)1 << access->location.id;
    if (access->flags == TUTTI_CU_ACCESS_READ_WRITE)
        __atomic_or_fetch(&range->devices, bit, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&range->devices, ~bit, __ATOMIC_RELAXED);
    sim_rights_shrink();
    if (mprotect((void *)range->base, range->size_bytes,
                 range->devices != 0 ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        sim_die("cannot change access to memory: %s", strerror(errno));
    return TUTTI_CU_SUCCESS;
}

int cuMemSetAccess(tutti_cu_address address, size_t size_bytes,
                   const struct tutti_cu_access *accesses, size_t count)
{
    uintptr_t at = (uintptr_t)address, end = at + size_bytes;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (!are_mappings(at, size_bytes))
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    sim_allocation_wait(&mapping_at(at, end)->pages->device->primary);
    while (at < end && code == 0) {
        struct sim_range *range = mapping_at(at, end);

        for (size_t i = 0; i < count && code == 0; i++)
            code = allow(range, &accesses[i]);
        at += range->size_bytes;
    }
    return sim_leave(code);
}
