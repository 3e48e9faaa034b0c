/* SPDX-License-Identifier: Apache-2.0
 * Allocates memory that GPUs of several processes share, and opens such memory of other
 * processes. */
#include "transport/gpu_memory/gpu_memory.h"

#include "base/log.h"
#include "base/memfd.h"
#include "base/result.h"
#include "base/round.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* Records that the driver refused to make, map or use memory. */
static int fail_on_device(const struct tutti_cu_driver *cuda, int code, const char *what,
                          size_t size_bytes, tutti_cu_device device)
{
    return tutti_note(TUTTI_ERR_DEVICE, "%s of %zu bytes on GPU %d: %s", what, size_bytes, device,
                      tutti_cu_error(cuda, code));
}

/* ---- virtual memory ------------------------------------------------------------------- */

static struct tutti_cu_memory_kind memory_kind(tutti_cu_device device)
{
    return (struct tutti_cu_memory_kind){
        .type = TUTTI_CU_MEMORY_PINNED, .handle_types = TUTTI_CU_HANDLE_FILE,
        .location = {.type = TUTTI_CU_LOCATION_DEVICE, .id = device}};
}

/* True if the driver and the device support virtual memory that a file descriptor shares. */
static bool has_virtual(const struct tutti_cu_driver *cuda, tutti_cu_device device)
{
    int has_memory = 0, has_files = 0;

    return cuda->memory_create != NULL && cuda->memory_export != NULL &&
           cuda->memory_import != NULL && cuda->address_reserve != NULL &&
           cuda->memory_map != NULL && cuda->memory_access != NULL &&
           cuda->granularity != NULL &&
           cuda->device_attribute(&has_memory, TUTTI_CU_VIRTUAL_MEMORY, device) ==
               TUTTI_CU_SUCCESS &&
           cuda->device_attribute(&has_files, TUTTI_CU_FILE_DESCRIPTOR_HANDLES, device) ==
               TUTTI_CU_SUCCESS &&
           has_memory != 0 && has_files != 0;
}

/* Lets `device` load from and store to virtual memory. Returns the driver's code. */
static int permit(const struct tutti_cu_driver *cuda, tutti_cu_address address, size_t size_bytes,
                  tutti_cu_device device)
{
    struct tutti_cu_access access = {
        .location = {.type = TUTTI_CU_LOCATION_DEVICE, .id = device},
        .flags = TUTTI_CU_ACCESS_READ_WRITE};

    return cuda->memory_access(address, size_bytes, &access, 1);
}

/* Maps `handle` at an address that `device` can use. Returns the driver's code. */
static int map_memory(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                      tutti_cu_memory handle, size_t size_bytes, tutti_cu_address *ret_address)
{
    tutti_cu_address address;
    int code = cuda->address_reserve(&address, size_bytes, 0, 0, 0);

    if (code != TUTTI_CU_SUCCESS)
        return code;
    code = cuda->memory_map(address, size_bytes, 0, handle, 0);
    if (code == TUTTI_CU_SUCCESS) {
        code = permit(cuda, address, size_bytes, device);
        if (code == TUTTI_CU_SUCCESS) {
            *ret_address = address;
            return code;
        }
        cuda->memory_unmap(address, size_bytes);
    }
    cuda->address_free(address, size_bytes);
    return code;
}

static int alloc_virtual(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                         size_t size_bytes, struct tutti_gpumem *ret_memory)
{
    struct tutti_cu_memory_kind kind = memory_kind(device);
    struct tutti_gpumem memory = {.kind = TUTTI_GPUMEM_VIRTUAL, .fd = -1};
    size_t unit;
    int code = cuda->granularity(&unit, &kind, TUTTI_CU_GRANULARITY_MINIMUM);

    if (code != TUTTI_CU_SUCCESS)
        return fail_on_device(cuda, code, "virtual memory", size_bytes, device);
    memory.size_bytes = tutti_round_up(size_bytes, unit);
    code = cuda->memory_create(&memory.handle, memory.size_bytes, &kind, 0);
    if (code != TUTTI_CU_SUCCESS)
        return fail_on_device(cuda, code, "memory", size_bytes, device);
    code = map_memory(cuda, device, memory.handle, memory.size_bytes, &memory.address);
    if (code != TUTTI_CU_SUCCESS) {
        tutti_gpumem_free(cuda, &memory);
        return fail_on_device(cuda, code, "addresses", size_bytes, device);
    }
    *ret_memory = memory;
    return TUTTI_OK;
}

/* ---- allocating ------------------------------------------------------------------------ */

static int alloc_plain(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                       size_t size_bytes, struct tutti_gpumem *ret_memory)
{
    struct tutti_gpumem memory = {.kind = TUTTI_GPUMEM_PLAIN, .size_bytes = size_bytes,
                                  .fd = -1};
    int code = cuda->memory_alloc(&memory.address, size_bytes);

    if (code != TUTTI_CU_SUCCESS)
        return fail_on_device(cuda, code, "memory", size_bytes, device);
    *ret_memory = memory;
    return TUTTI_OK;
}

int tutti_gpumem_alloc(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                       size_t size_bytes, struct tutti_cu_stream *stream,
                       struct tutti_gpumem *ret_memory)
{
    struct tutti_gpumem memory;
    int code;

    /* Virtual memory is preferred, because cuMemFree of plain memory waits for all work on the
     * device, and the release of virtual memory does not. */
    if (!(has_virtual(cuda, device) &&
          alloc_virtual(cuda, device, size_bytes, &memory) == TUTTI_OK) &&
        alloc_plain(cuda, device, size_bytes, &memory) != TUTTI_OK)
        return tutti_fail(TUTTI_ERR_DEVICE, "%s", tutti_message_last());
    /* Do not use the default stream, which may wait for kernels that wait for this rank. */
    code = cuda->set8_async(memory.address, 0, memory.size_bytes, stream);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->stream_synchronize(stream);
    if (code != TUTTI_CU_SUCCESS) {
        tutti_gpumem_free(cuda, &memory);
        fail_on_device(cuda, code, "clearing", size_bytes, device);
        return tutti_fail(TUTTI_ERR_DEVICE, "%s", tutti_message_last());
    }
    *ret_memory = memory;
    return TUTTI_OK;
}

int tutti_gpumem_alloc_host(const struct tutti_cu_driver *cuda, size_t size_bytes,
                            struct tutti_gpumem *ret_memory)
{
    struct tutti_gpumem_token token = {.kind = TUTTI_GPUMEM_HOST,
                                       .size_bytes = tutti_round_up(size_bytes, PAGE_BYTES)};
    int fd, rc;

    if (tutti_memfd_create("tutti-gpu", (size_t)token.size_bytes, &fd) != TUTTI_OK)
        return tutti_fail(TUTTI_ERR_DEVICE, "%zu bytes of memory to share between GPUs: %s",
                          size_bytes, tutti_message_last());
    rc = tutti_gpumem_open(cuda, 0, &token, fd, ret_memory);
    if (rc != TUTTI_OK) {
        close(fd);
        return tutti_fail(rc, "%s", tutti_message_last());
    }
    ret_memory->is_borrowed = false;
    ret_memory->fd = fd;
    return TUTTI_OK;
}

int tutti_gpumem_admit(const struct tutti_cu_driver *cuda, const struct tutti_gpumem *memory,
                       tutti_cu_device device)
{
    int code;

    /* Access to plain memory is granted per context, by cuCtxEnablePeerAccess. */
    if (memory->kind != TUTTI_GPUMEM_VIRTUAL)
        return TUTTI_OK;
    code = permit(cuda, memory->address, memory->size_bytes, device);
    return code == TUTTI_CU_SUCCESS
               ? TUTTI_OK
               : fail_on_device(cuda, code, "access to memory", memory->size_bytes, device);
}

/* ---- exporting and opening ------------------------------------------------------------- */

int tutti_gpumem_export(const struct tutti_cu_driver *cuda, const struct tutti_gpumem *memory,
                        struct tutti_gpumem_token *ret_token, int *ret_fd)
{
    struct tutti_gpumem_token token = {.kind = memory->kind, .size_bytes = memory->size_bytes};
    int fd = -1, code = TUTTI_CU_SUCCESS;

    switch (memory->kind) {
    case TUTTI_GPUMEM_VIRTUAL:
        code = cuda->memory_export(&fd, memory->handle, TUTTI_CU_HANDLE_FILE, 0);
        break;
    case TUTTI_GPUMEM_PLAIN: code = cuda->ipc_export(&token.ipc, memory->address); break;
    default:
        fd = dup(memory->fd);
        if (fd < 0)
            return tutti_note(TUTTI_ERR_DEVICE, "dup: %s", strerror(errno));
    }
    if (code != TUTTI_CU_SUCCESS)
        return tutti_note(TUTTI_ERR_DEVICE, "memory of a GPU cannot be passed on to other "
                          "processes: %s", tutti_cu_error(cuda, code));
    *ret_token = token;
    *ret_fd = fd;
    return TUTTI_OK;
}

/* Both return the driver's code. */
static int open_virtual(const struct tutti_cu_driver *cuda, tutti_cu_device device, int fd,
                        struct tutti_gpumem *memory)
{
    int code = cuda->memory_import(&memory->handle, (void *)(intptr_t)fd, TUTTI_CU_HANDLE_FILE);

    if (code != TUTTI_CU_SUCCESS)
        return code;
    code = map_memory(cuda, device, memory->handle, memory->size_bytes, &memory->address);
    if (code != TUTTI_CU_SUCCESS)
        cuda->memory_release(memory->handle);
    return code;
}

static int open_host(const struct tutti_cu_driver *cuda, int fd, struct tutti_gpumem *memory)
{
    struct stat status;
    int code;

    /* Pages beyond the file's end could be mapped, but an access to them would kill the process. */
    if (fstat(fd, &status) != 0 || (uint64_t)status.st_size < memory->size_bytes)
        return TUTTI_CU_INVALID_VALUE;
    memory->host = mmap(NULL, memory->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory->host == MAP_FAILED)
        return TUTTI_CU_OUT_OF_MEMORY;
    code = cuda->host_register(memory->host, memory->size_bytes,
                               TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
    if (code == TUTTI_CU_SUCCESS) {
        code = cuda->host_device_address(&memory->address, memory->host, 0);
        if (code != TUTTI_CU_SUCCESS)
            cuda->host_unregister(memory->host);
    }
    if (code != TUTTI_CU_SUCCESS)
        munmap(memory->host, memory->size_bytes);
    return code;
}

int tutti_gpumem_open(const struct tutti_cu_driver *cuda, tutti_cu_device device,
                      const struct tutti_gpumem_token *token, int fd,
                      struct tutti_gpumem *ret_memory)
{
    struct tutti_gpumem memory = {.kind = token->kind, .size_bytes = token->size_bytes,
                                  .is_borrowed = true, .fd = -1};
    int code;

    switch (memory.kind) {
    case TUTTI_GPUMEM_VIRTUAL: code = open_virtual(cuda, device, fd, &memory); break;
    case TUTTI_GPUMEM_PLAIN:
        code = cuda->ipc_open(&memory.address, token->ipc, TUTTI_CU_IPC_LAZY_PEER_ACCESS);
        break;
    case TUTTI_GPUMEM_HOST: code = open_host(cuda, fd, &memory); break;
    default: return tutti_note(TUTTI_ERR_DEVICE, "memory of an unknown kind, %u", token->kind);
    }
    if (code != TUTTI_CU_SUCCESS)
        return fail_on_device(cuda, code, "another process's memory", memory.size_bytes, device);
    *ret_memory = memory;
    return TUTTI_OK;
}

void tutti_gpumem_free(const struct tutti_cu_driver *cuda, struct tutti_gpumem *memory)
{
    switch (memory->kind) {
    case TUTTI_GPUMEM_VIRTUAL:
        if (memory->address != 0) {
            cuda->memory_unmap(memory->address, memory->size_bytes);
            cuda->address_free(memory->address, memory->size_bytes);
        }
        cuda->memory_release(memory->handle);
        break;
    case TUTTI_GPUMEM_PLAIN:
        if (memory->is_borrowed)
            cuda->ipc_close(memory->address);
        else
            cuda->memory_free(memory->address);
        break;
    case TUTTI_GPUMEM_HOST:
        cuda->host_unregister(memory->host);
        munmap(memory->host, memory->size_bytes);
        if (memory->fd >= 0)
            close(memory->fd);
        break;
    default: break;
    }
    *memory = (struct tutti_gpumem){.fd = -1};
}
