/* SPDX-License-Identifier: Apache-2.0
 * Memory of devices and of the host, and the meaning of addresses. */
#include "simcuda/cuda/memory.h"

#include "simcuda/cuda/api.h"
#include "simcuda/cuda/stream.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)4096)
#define ALIGNMENT ((size_t)256)

static size_t round_up(size_t size_bytes, size_t unit)
{
    return (size_bytes + unit - 1) & ~(unit - 1);
}

/* ---- devices --------------------------------------------------------------------------------- */

static int alloc_device(struct tutti_cu_context *context, size_t size_bytes,
                        tutti_cu_address *ret_address)
{
    size_t pages_bytes = round_up(size_bytes, PAGE_BYTES);
    struct sim_pages *pages;
    struct sim_range range = {.kind = SIM_RANGE_DEVICE, .size_bytes = size_bytes,
                              .pages_bytes = pages_bytes, .context = context};

    if (size_bytes == 0)
        return TUTTI_CU_INVALID_VALUE;
    if (size_bytes > sim_settings.memory_bytes)
        return TUTTI_CU_OUT_OF_MEMORY;
    pages = sim_pages_create(context->device, pages_bytes);
    if (pages == NULL)
        return TUTTI_CU_OUT_OF_MEMORY;
    range.pages = pages;
    range.pages_at = sim_addresses(pages_bytes, PAGE_BYTES);
    if (range.pages_at == 0 ||
        mmap((void *)range.pages_at, pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             pages->file, 0) == MAP_FAILED) {
        sim_pages_drop(pages);
        return TUTTI_CU_OUT_OF_MEMORY;
    }
    range.base = range.pages_at + pages_bytes - round_up(size_bytes, ALIGNMENT);
    sim_range_add(&range);
    *ret_address = range.base;
    return TUTTI_CU_SUCCESS;
}

int cuMemAlloc_v2(tutti_cu_address *ret_address, size_t size_bytes)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    return sim_leave(alloc_device(sim_current(), size_bytes, ret_address));
}

/* The range that begins there; NULL: none of that kind does. */
static struct sim_range *range_at(uintptr_t at, enum sim_range_kind kind)
{
    struct sim_range *range = sim_range_of(at);

    return range != NULL && range->kind == kind && range->base == at ? range : NULL;
}

/* Freeing waits for what the device does. */
static int free_range(uintptr_t at, enum sim_range_kind kind)
{
    struct sim_range *range = range_at(at, kind);

    if (range == NULL)
        return TUTTI_CU_INVALID_VALUE;
    sim_context_wait(range->context);
    range = range_at(at, kind);
    if (range == NULL)
        return TUTTI_CU_INVALID_VALUE;
    sim_range_remove(range);
    return TUTTI_CU_SUCCESS;
}

int cuMemFree_v2(tutti_cu_address address)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    return sim_leave(address == 0 ? 0 : free_range((uintptr_t)address, SIM_RANGE_DEVICE));
}

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    *ret_total = sim_settings.memory_bytes;
    *ret_free = sim_settings.memory_bytes - sim_current()->device->used_bytes;
    return sim_leave(0);
}

int cuMemGetAddressRange_v2(tutti_cu_address *ret_base, size_t *ret_size, tutti_cu_address address)
{
    const struct sim_range *range;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)address);
    if (range == NULL || sim_range_device(range) == NULL)
        return sim_leave(TUTTI_CU_NOT_FOUND);
    if (ret_base != NULL)
        *ret_base = range->base;
    if (ret_size != NULL)
        *ret_size = range->size_bytes;
    return sim_leave(0);
}

/* ---- the host -------------------------------------------------------------------------------- */

static int alloc_host(size_t size_bytes, void **ret_address)
{
    size_t pages_bytes = round_up(size_bytes, PAGE_BYTES);
    struct sim_range range = {.kind = SIM_RANGE_HOST, .size_bytes = size_bytes,
                              .pages_bytes = pages_bytes, .context = sim_current()};

    if (size_bytes == 0)
        return TUTTI_CU_INVALID_VALUE;
    range.pages_at = sim_addresses(pages_bytes, PAGE_BYTES);
    if (range.pages_at == 0 ||
        mmap((void *)range.pages_at, pages_bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return TUTTI_CU_OUT_OF_MEMORY;
    range.base = range.pages_at;
    sim_range_add(&range);
    *ret_address = (void *)range.base;
    return TUTTI_CU_SUCCESS;
}

int cuMemHostAlloc(void **ret_address, size_t size_bytes, unsigned flags)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    if (flags & ~7u)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    sim_allocation_wait(sim_current());
    return sim_leave(alloc_host(size_bytes, ret_address));
}

int cuMemFreeHost(void *address)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    return sim_leave(free_range((uintptr_t)address, SIM_RANGE_HOST));
}

int cuMemHostRegister_v2(void *address, size_t size_bytes, unsigned flags)
{
    struct sim_range range = {.kind = SIM_RANGE_REGISTERED, .base = (uintptr_t)address,
                              .size_bytes = size_bytes};
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    if (address == NULL || size_bytes == 0 || flags & ~15u)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    for (const struct sim_range *other = sim_ranges; other != NULL; other = other->next)
        if (other->base < range.base + size_bytes && range.base < other->base + other->size_bytes)
            return sim_leave(other->kind == SIM_RANGE_REGISTERED
                                 ? TUTTI_CU_HOST_MEMORY_ALREADY_REGISTERED
                                 : TUTTI_CU_INVALID_VALUE);
    range.context = sim_current();
    sim_range_add(&range);
    return sim_leave(0);
}

int cuMemHostUnregister(void *address)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    return sim_leave(free_range((uintptr_t)address, SIM_RANGE_REGISTERED));
}

int cuMemHostGetDevicePointer_v2(tutti_cu_address *ret_address, void *host, unsigned flags)
{
    const struct sim_range *range;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)host);
    if (flags != 0 || range == NULL || sim_range_device(range) != NULL)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    *ret_address = (uintptr_t)host;
    return sim_leave(0);
}

/* ---- what an address is ---------------------------------------------------------------------- */

static int attribute_of(const struct sim_range *range, int attribute, void *ret_value)
{
    const struct sim_device *device = sim_range_device(range);
    bool is_legacy = range != NULL && range->kind == SIM_RANGE_DEVICE;
    int ordinal = -2;

    if (range != NULL)
        ordinal = device != NULL ? device->ordinal : range->context->device->ordinal;
    switch (attribute) {
    case TUTTI_CU_POINTER_CONTEXT:
        *(struct tutti_cu_context **)ret_value = range != NULL ? range->context : NULL;
        break;
    case TUTTI_CU_POINTER_MEMORY_TYPE:
        *(unsigned *)ret_value = range == NULL    ? 0
                                 : device != NULL ? TUTTI_CU_MEMORY_DEVICE
                                                  : TUTTI_CU_MEMORY_HOST;
        break;
    case TUTTI_CU_POINTER_IS_MANAGED: *(unsigned *)ret_value = 0; break;
    case TUTTI_CU_POINTER_DEVICE_ORDINAL: *(int *)ret_value = ordinal; break;
    case TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE: *(unsigned *)ret_value = is_legacy; break;
    case TUTTI_CU_POINTER_RANGE_START:
        *(tutti_cu_address *)ret_value = range != NULL ? range->base : 0;
        break;
    case TUTTI_CU_POINTER_RANGE_SIZE:
        *(size_t *)ret_value = range != NULL ? range->size_bytes : 0;
        break;
    default: return TUTTI_CU_INVALID_VALUE;
    }
    return TUTTI_CU_SUCCESS;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **values, tutti_cu_address address)
{
    const struct sim_range *range;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)address);
    for (unsigned i = 0; i < count && code == 0; i++)
        code = attribute_of(range, attributes[i], values[i]);
    return sim_leave(code);
}

/* ---- a context ends -------------------------------------------------------------------------- */

void sim_memory_end(struct tutti_cu_context *context)
{
    struct sim_range *range = sim_ranges;

    while (range != NULL) {
        struct sim_range *next = range->next;

        if (range->context == context)
            sim_range_remove(range);
        range = next;
    }
}
