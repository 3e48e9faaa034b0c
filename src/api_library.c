/* SPDX-License-Identifier: Apache-2.0
 * Version, messages, memory. */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

tuttiResult_t tuttiGetVersion(int *version)
{
    if (version == NULL)
        return tutti_public(tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiGetVersion: version is NULL"));
    *version = TUTTI_VERSION_CODE;
    return tuttiSuccess;
}

const char *tuttiGetErrorString(tuttiResult_t result)
{
    switch (result) {
    case tuttiSuccess: return "no error";
    case tuttiUnhandledCudaError: return "device call failed";
    case tuttiSystemError: return "the operating system refused";
    case tuttiInternalError: return "internal error of the library";
    case tuttiInvalidArgument: return "invalid argument";
    case tuttiInvalidUsage: return "invalid usage";
    case tuttiRemoteError: return "a rank has died, left or cannot be reached";
    case tuttiInProgress: return "in progress";
    case tuttiTimeout: return "a deadline has passed";
    default: return "unknown result code";
    }
}

const char *tuttiGetLastError(tuttiComm_t handle)
{
    struct tutti_comm *comm;

    /* A communicator's own failure; without one, what failed last on this thread. */
    if (handle != NULL && tutti_handle_get(handle, "tuttiGetLastError", &comm) == TUTTI_OK)
        tutti_comm_error(comm);
    return tutti_last_message();
}

/* ---- memory: mappings, remembered in a list ------------ */

enum { HUGE_PAGE = 2 << 20 };

struct allocation {
    void *user;
    void *base;
    size_t mapped_bytes;
    struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static int allocate(void **ptr, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool is_large = size >= HUGE_PAGE;
    size_t align = is_large ? HUGE_PAGE : page, bytes;
    struct allocation *allocation;
    uint8_t *base;

    if (ptr == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMemAlloc: ptr is NULL");
    if (size == 0) {
        *ptr = NULL;
        return TUTTI_OK;
    }
    if (size > (size_t)PTRDIFF_MAX - 2 * HUGE_PAGE)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMemAlloc: size %zu is negative or overflows",
                          size);
    bytes = (size + page - 1) / page * page + (is_large ? align : 0);
    allocation = malloc(sizeof *allocation);
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (allocation == NULL || base == MAP_FAILED) {
        int error = errno;

        free(allocation);
        if (base != MAP_FAILED)
            munmap(base, bytes);
        return tutti_fail(TUTTI_ERR_SYSTEM, "tuttiMemAlloc: %zu bytes: %s", size, strerror(error));
    }
    allocation->base = base;
    allocation->mapped_bytes = bytes;
    allocation->user = (void *)(((uintptr_t)base + align - 1) / align * align);
    if (is_large)
        madvise(allocation->user, size, MADV_HUGEPAGE); /* a wish: without it, small pages */
    pthread_mutex_lock(&lock);
    allocation->next = allocations;
    allocations = allocation;
    pthread_mutex_unlock(&lock);
    *ptr = allocation->user;
    return TUTTI_OK;
}

tuttiResult_t tuttiMemAlloc(void **ptr, size_t size)
{
    return tutti_public(allocate(ptr, size));
}

tuttiResult_t tuttiMemFree(void *ptr)
{
    struct allocation *found = NULL;

    if (ptr == NULL)
        return tuttiSuccess;
    pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at != NULL; at = &(*at)->next)
        if ((*at)->user == ptr) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return tutti_public(tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMemFree: %p is not from "
                                       "tuttiMemAlloc, or is free already", ptr));
    munmap(found->base, found->mapped_bytes);
    free(found);
    return tuttiSuccess;
}
