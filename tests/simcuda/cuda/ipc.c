/* SPDX-License-Identifier: Apache-2.0
 * Device memory of other processes: a handle names the process and its file descriptor. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x73696d6375646131)

struct handle {
    uint64_t magic;
    int32_t process, file, device;
    uint32_t unused;
    uint64_t inode; /* so that another file of that number is not taken for it */
    uint64_t pages_bytes, offset, size_bytes;
};
static_assert(sizeof(struct handle) <= TUTTI_CU_IPC_BYTES, "a handle fits");

int cuIpcGetMemHandle(struct tutti_cu_ipc_memory *ret_handle, tutti_cu_address address)
{
    const struct sim_range *range;
    struct handle handle;
    struct stat status;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)address);
    if (range == NULL || range->kind != SIM_RANGE_DEVICE)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (fstat(range->pages->file, &status) != 0)
        sim_die("a file of memory is gone: %s", strerror(errno));
    handle = (struct handle){
        .magic = MAGIC, .process = getpid(), .file = range->pages->file,
        .device = range->pages->device->ordinal, .inode = status.st_ino,
        .pages_bytes = range->pages_bytes, .offset = range->base - range->pages_at,
        .size_bytes = range->size_bytes,
    };
    memset(ret_handle, 0, sizeof *ret_handle);
    memcpy(ret_handle, &handle, sizeof handle);
    return sim_leave(0);
}

/* The same memory, opened in this context before; NULL: it was not. */
static struct sim_range *find_opened(const struct tutti_cu_context *context,
                                     const struct handle *handle)
{
    struct stat status;

    for (struct sim_range *range = sim_ranges; range != NULL; range = range->next)
        if (range->kind == SIM_RANGE_IPC && range->context == context &&
            fstat(range->pages->file, &status) == 0 && status.st_ino == handle->inode)
            return range;
    return NULL;
}

static int map_handle(struct tutti_cu_context *context, const struct handle *handle,
                      tutti_cu_address *ret_address)
{
    struct sim_device *owner = &sim_devices[handle->device];
    struct sim_range range = {.kind = SIM_RANGE_IPC, .size_bytes = handle->size_bytes,
                              .pages_bytes = handle->pages_bytes, .context = context,
                              .devices = (uint64_t)1 << context->device->ordinal, .nopened = 1};
    struct stat status;
    char path[64];
    int file;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->process, handle->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return TUTTI_CU_INVALID_VALUE;
    if (fstat(file, &status) != 0 || status.st_ino != handle->inode) {
        close(file);
        return TUTTI_CU_INVALID_VALUE;
    }
    range.pages = sim_pages_import(file, owner, handle->pages_bytes);
    close(file);
    range.pages_at = sim_addresses(handle->pages_bytes, SIM_GRANULARITY);
    if (range.pages_at == 0 ||
        mmap((void *)range.pages_at, handle->pages_bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, range.pages->file, 0) == MAP_FAILED)
        sim_die("cannot map memory of another process: %s", strerror(errno));
    range.base = range.pages_at + handle->offset;
    sim_range_add(&range);
    *ret_address = range.base;
    return TUTTI_CU_SUCCESS;
}

static int open_handle(struct tutti_cu_context *context, const struct handle *handle,
                       tutti_cu_address *ret_address)
{
    struct sim_range *opened;

    if (handle->magic != MAGIC || handle->device < 0 || handle->device >= sim_ndevices)
        return TUTTI_CU_INVALID_VALUE;
    /* The real driver does not open what this process exports, either. */
    if (handle->process == getpid())
        return TUTTI_CU_INVALID_CONTEXT;
    if (sim_faults.has_no_ipc)
        return TUTTI_CU_INVALID_VALUE;
    if (context->device->ordinal != handle->device &&
        !sim_can_access_peer(context->device, &sim_devices[handle->device]))
        return TUTTI_CU_PEER_ACCESS_UNSUPPORTED;
    opened = find_opened(context, handle);
    if (opened == NULL)
        return map_handle(context, handle, ret_address);
    opened->nopened++;
    *ret_address = opened->base;
    return TUTTI_CU_SUCCESS;
}

int cuIpcOpenMemHandle_v2(tutti_cu_address *ret_address, struct tutti_cu_ipc_memory opaque,
                          unsigned flags)
{
    struct handle handle;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    memcpy(&handle, opaque.bytes, sizeof handle);
    if (flags != TUTTI_CU_IPC_LAZY_PEER_ACCESS)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    return sim_leave(open_handle(sim_current(), &handle, ret_address));
}

int cuIpcCloseMemHandle(tutti_cu_address address)
{
    struct sim_range *range;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    range = sim_range_of((uintptr_t)address);
    if (range == NULL || range->kind != SIM_RANGE_IPC || range->base != address)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (--range->nopened == 0) {
        sim_context_wait(range->context);
        sim_range_remove(range);
    }
    return sim_leave(0);
}
