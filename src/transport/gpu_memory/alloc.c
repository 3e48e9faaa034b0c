/* SPDX-License-Identifier: Apache-2.0
 * Allocates device memory, and keeps the list of device memory to which peers may get access. */
#include "transport/gpu_memory/alloc.h"

#include "base/atomic.h"
#include "base/log.h"
#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct allocation {
    struct tutti_gpumem_allocation part;
    struct tutti_gpumem memory; /* its kind is NONE if the user has allocated the memory */
    struct tutti_cu_context *context;
    int listings; /* calls of tutti_gpumem_list_add less those of tutti_gpumem_list_remove */
    struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /* oldest first */
static uint64_t generation, last_serial;

/* Returns the link to the allocation that begins at `begin`. The link is NULL if there is none. */
static struct allocation **find_link(tutti_cu_address begin)
{
    struct allocation **at = &allocations;

    while (*at != NULL && (*at)->part.begin != begin)
        at = &(*at)->next;
    return at;
}

/* Appends an allocation to the list. The lock is held. */
static void append(struct allocation *allocation)
{
    struct allocation **end = &allocations;

    while (*end != NULL)
        end = &(*end)->next;
    *end = allocation;
    allocation->part.serial = ++last_serial;
    /* release: pairs with the acquire in tutti_gpumem_list_generation */
    tutti_store_release(&generation, generation + 1);
}

/* Frees an allocation that is not on the list, but not its memory. */
static void free_entry(struct allocation *allocation)
{
    if (allocation->part.fd >= 0)
        close(allocation->part.fd);
    free(allocation);
}

/* Lets all devices of this process that can reach the memory use it, because ranks of this process
 * may be on any of them. A failure is only logged. */
static void admit_all_devices(const struct tutti_cu_driver *cuda, tutti_cu_device owner,
                              const struct tutti_gpumem *memory)
{
    int count = 0;

    cuda->device_count(&count);
    for (int device = 0; device < count; device++) {
        int can_access = 0;

        if (device != owner &&
            cuda->can_access_peer(&can_access, device, owner) == TUTTI_CU_SUCCESS && can_access &&
            tutti_gpumem_admit(cuda, memory, device) != TUTTI_OK)
            tutti_log(TUTTI_LOG_INFO, "%s", tutti_message_last());
    }
}

/* ---- allocations of tuttiMemAlloc ------------------------------------------------------------ */

int tutti_gpumem_list_alloc(const struct tutti_cu_driver *cuda, size_t size_bytes,
                            void **ret_address)
{
    struct allocation *allocation = calloc(1, sizeof *allocation);
    struct tutti_cu_stream *stream = NULL;
    tutti_cu_device device = 0;
    int code, rc;

    if (allocation == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "no host memory to list %zu bytes of device memory", size_bytes);
    code = cuda->context_device(&device);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->context_current(&allocation->context);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING);
    if (code != TUTTI_CU_SUCCESS) {
        free(allocation);
        return tutti_fail(TUTTI_ERR_DEVICE, "the current CUDA context: %s",
                          tutti_cu_error(cuda, code));
    }
    rc = tutti_gpumem_alloc(cuda, device, size_bytes, stream, &allocation->memory);
    cuda->stream_destroy(stream);
    if (rc != TUTTI_OK) {
        free(allocation);
        return rc;
    }
    allocation->part.device = device;
    allocation->part.begin = allocation->memory.address;
    allocation->part.size_bytes = allocation->memory.size_bytes;
    allocation->part.token = (struct tutti_gpumem_token){
        .kind = allocation->memory.kind, .size_bytes = allocation->memory.size_bytes};
    allocation->part.fd = -1;
    allocation->part.is_passable =
        tutti_gpumem_export(cuda, &allocation->memory, &allocation->part.token,
                            &allocation->part.fd) == TUTTI_OK;
    if (!allocation->part.is_passable)
        tutti_log(TUTTI_LOG_INFO, "%s", tutti_message_last());
    admit_all_devices(cuda, device, &allocation->memory);
    pthread_mutex_lock(&lock);
    append(allocation);
    pthread_mutex_unlock(&lock);
    *ret_address = (void *)(uintptr_t)allocation->part.begin;
    return TUTTI_OK;
}

int tutti_gpumem_list_free(const struct tutti_cu_driver *cuda, void *address)
{
    struct allocation **at, *allocation;
    struct tutti_cu_context *before;

    pthread_mutex_lock(&lock);
    at = find_link((tutti_cu_address)(uintptr_t)address);
    allocation = *at;
    if (allocation != NULL && allocation->memory.kind != TUTTI_GPUMEM_NONE) {
        *at = allocation->next;
        /* release: pairs with the acquire in tutti_gpumem_list_generation */
        tutti_store_release(&generation, generation + 1);
    } else {
        allocation = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (allocation == NULL)
        return tutti_note(TUTTI_ERR_ARGUMENT, "%p was not given by tuttiMemAlloc", address);
    if (cuda->context_push(allocation->context) == TUTTI_CU_SUCCESS) {
        tutti_gpumem_free(cuda, &allocation->memory);
        cuda->context_pop(&before);
    }
    free_entry(allocation);
    return TUTTI_OK;
}

/* ---- allocations of the user ----------------------------------------------------------------- */

/* Finds the allocation of the user that contains these bytes, and exports it for other
 * processes. */
static int export_allocation(const struct tutti_cu_driver *cuda, const void *address,
                             size_t size_bytes, struct tutti_gpumem_allocation *part)
{
    struct tutti_gpumem memory = {.kind = TUTTI_GPUMEM_PLAIN, .fd = -1};
    int is_plain = 0, code, rc;
    int attributes[] = {TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE, TUTTI_CU_POINTER_DEVICE_ORDINAL};
    void *values[] = {&is_plain, &part->device};

    code = cuda->address_range(&memory.address, &memory.size_bytes,
                               (tutti_cu_address)(uintptr_t)address);
    if (code != TUTTI_CU_SUCCESS)
        return tutti_note(TUTTI_ERR_DEVICE, "%p: %s", address, tutti_cu_error(cuda, code));
    if (size_bytes > memory.size_bytes - ((tutti_cu_address)(uintptr_t)address - memory.address))
        return tutti_note(TUTTI_ERR_DEVICE, "%zu bytes at %p go beyond the allocation there, of "
                          "%zu bytes at %p", size_bytes, address, memory.size_bytes,
                          (void *)(uintptr_t)memory.address);
    code = cuda->pointer_attributes(2, attributes, values, memory.address);
    if (code != TUTTI_CU_SUCCESS)
        return tutti_note(TUTTI_ERR_DEVICE, "%p: %s", address, tutti_cu_error(cuda, code));
    if (!is_plain) {
        if (cuda->memory_retain == NULL ||
            cuda->memory_retain(&memory.handle, (void *)(uintptr_t)memory.address) !=
                TUTTI_CU_SUCCESS)
            return tutti_note(TUTTI_ERR_DEVICE, "%p is memory of a kind that cannot be passed on",
                              address);
        memory.kind = TUTTI_GPUMEM_VIRTUAL;
    }
    rc = tutti_gpumem_export(cuda, &memory, &part->token, &part->fd);
    if (!is_plain)
        cuda->memory_release(memory.handle);
    part->begin = memory.address;
    part->size_bytes = memory.size_bytes;
    part->is_passable = rc == TUTTI_OK;
    return rc;
}

int tutti_gpumem_list_add(const struct tutti_cu_driver *cuda, const void *address,
                          size_t size_bytes)
{
    struct allocation *fresh = calloc(1, sizeof *fresh), *known;
    int rc;

    if (fresh == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to register %p", address);
    fresh->part.fd = -1;
    fresh->listings = 1;
    rc = export_allocation(cuda, address, size_bytes, &fresh->part);
    if (rc != TUTTI_OK) {
        free_entry(fresh);
        return rc;
    }
    pthread_mutex_lock(&lock);
    known = *find_link(fresh->part.begin);
    if (known != NULL)
        known->listings++;
    else
        append(fresh);
    pthread_mutex_unlock(&lock);
    if (known != NULL)
        free_entry(fresh);
    return TUTTI_OK;
}

void tutti_gpumem_list_remove(const struct tutti_cu_driver *cuda, const void *address)
{
    tutti_cu_address begin = 0;
    struct allocation **at, *gone = NULL;
    size_t size;

    if (cuda->address_range(&begin, &size, (tutti_cu_address)(uintptr_t)address) !=
        TUTTI_CU_SUCCESS)
        begin = (tutti_cu_address)(uintptr_t)address;
    pthread_mutex_lock(&lock);
    at = find_link(begin);
    if (*at != NULL && (*at)->listings > 0 && --(*at)->listings == 0 &&
        (*at)->memory.kind == TUTTI_GPUMEM_NONE) {
        gone = *at;
        *at = gone->next;
        /* release: pairs with the acquire in tutti_gpumem_list_generation */
        tutti_store_release(&generation, generation + 1);
    }
    pthread_mutex_unlock(&lock);
    if (gone != NULL)
        free_entry(gone);
}

/* ---- the list -------------------------------------------------------------------------------- */

uint64_t tutti_gpumem_list_generation(void)
{
    /* acquire: pairs with the releases in append, tutti_gpumem_list_free and
     * tutti_gpumem_list_remove; the lock orders accesses to the list itself */
    return tutti_load_acquire(&generation);
}

size_t tutti_gpumem_list_get(tutti_cu_device device, bool for_processes,
                             struct tutti_gpumem_allocation *ret_parts, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&lock);
    for (const struct allocation *at = allocations; at != NULL && count < most; at = at->next)
        if (at->part.device == device && (at->part.is_passable || !for_processes))
            ret_parts[count++] = at->part;
    pthread_mutex_unlock(&lock);
    return count;
}

int tutti_gpumem_list_descriptor(uint64_t serial)
{
    int fd = -1, error = ENOENT;

    pthread_mutex_lock(&lock);
    for (const struct allocation *at = allocations; at != NULL; at = at->next)
        if (at->part.serial == serial && at->part.fd >= 0) {
            fd = fcntl(at->part.fd, F_DUPFD_CLOEXEC, 0);
            error = errno;
        }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}
