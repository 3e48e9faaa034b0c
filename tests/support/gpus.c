/* SPDX-License-Identifier: Apache-2.0
 * Puts ranks on GPUs. */
#include "support/gpus.h"

#include "support/hosts.h"

#include <stdlib.h>

static struct {
    int ndevices, on_cpu;
    enum gpu_memory memory;
} use = {.ndevices = 0, .on_cpu = -1};

void gpus_use(int ndevices, int on_cpu, enum gpu_memory memory)
{
    use.ndevices = ndevices;
    use.on_cpu = on_cpu;
    use.memory = memory;
}

bool gpus_are_used(void)
{
    return use.ndevices > 0;
}

bool gpus_has(const struct member *member)
{
    return use.ndevices > 0 && (use.on_cpu < 0 || member->rank % 3 != use.on_cpu);
}

const struct tutti_cu_driver *gpus_driver(void)
{
    return tutti_cu_get(true);
}

/* Complain unless the driver agrees. */
static bool expect_cuda(struct member *member, int code, const char *what)
{
    if (code == TUTTI_CU_SUCCESS)
        return true;
    member_complain(member, "%s: %s", what, tutti_cu_error(gpus_driver(), code));
    return false;
}

int gpus_device(const struct member *member)
{
    int count = 0;

    gpus_driver()->device_count(&count);
    return member->rank % (count > 0 && count < use.ndevices ? count : use.ndevices);
}

void gpus_enter(struct member *member)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    struct tutti_cu_context *context;
    tutti_cu_device device;

    hosts_choose(member->rank, member->nranks);
    if (!gpus_has(member))
        return;
    if (cuda == NULL) {
        member_complain(member, "there is no CUDA driver: TUTTI_CUDA_LIBRARY names one");
        return;
    }
    if (expect_cuda(member, cuda->device(&device, gpus_device(member)), "cuDeviceGet") &&
        expect_cuda(member, cuda->primary_retain(&context, device), "cuDevicePrimaryCtxRetain"))
        expect_cuda(member, cuda->context_set(context), "cuCtxSetCurrent");
}

/* cuMemFree waits for all that runs on the device, kernels included that wait for this very rank:
 * so plain memory is kept until all ranks are done. */
struct kept {
    struct kept *next;
    tutti_cu_address address;
    size_t bytes;
    bool is_used;
};
static _Thread_local struct kept *kept;

static tutti_cu_address take_plain(struct member *member, size_t bytes)
{
    struct kept *at = kept;

    while (at != NULL && (at->is_used || at->bytes < bytes || at->bytes > 4 * bytes))
        at = at->next;
    if (at == NULL) {
        at = calloc(1, sizeof *at);
        if (at == NULL || !expect_cuda(member, gpus_driver()->memory_alloc(&at->address, bytes),
                                       "cuMemAlloc"))
            abort();
        at->bytes = bytes;
        at->next = kept;
        kept = at;
    }
    at->is_used = true;
    return at->address;
}

static void give_plain(tutti_cu_address address)
{
    for (struct kept *at = kept; at != NULL; at = at->next)
        if (at->address == address)
            at->is_used = false;
}

void gpus_leave(struct member *member)
{
    while (kept != NULL) {
        struct kept *next = kept->next;

        expect_cuda(member, gpus_driver()->memory_free(kept->address), "cuMemFree");
        free(kept);
        kept = next;
    }
}

static bool is_tuttis(const struct member *member, size_t bytes)
{
    return use.memory == GPU_MEMORY_TUTTI ||
           (use.memory == GPU_MEMORY_EITHER && (bytes / 64 + (size_t)member->rank) % 2 == 0);
}

int gpus_copy(void *to, const void *from, size_t bytes)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    int code = cuda->copy((tutti_cu_address)(uintptr_t)to, (tutti_cu_address)(uintptr_t)from, bytes);

    return code == TUTTI_CU_SUCCESS ? cuda->stream_synchronize(TUTTI_CU_STREAM_LEGACY) : code;
}

uint8_t *gpus_put(struct member *member, const void *host, size_t bytes)
{
    tutti_cu_address address = 0;
    void *memory = NULL;

    if (is_tuttis(member, bytes)) {
        EXPECT_OK(member, tuttiMemAlloc(&memory, bytes));
        address = (tutti_cu_address)(uintptr_t)memory;
    } else {
        address = take_plain(member, bytes);
    }
    if (address != 0)
        expect_cuda(member, gpus_copy((void *)(uintptr_t)address, host, bytes), "cuMemcpy");
    return (uint8_t *)(uintptr_t)address;
}

void gpus_take_back(struct member *member, void *host, uint8_t *device, size_t bytes)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    tutti_cu_address address = (tutti_cu_address)(uintptr_t)device;

    if (device == NULL)
        return;
    expect_cuda(member, cuda->copy((tutti_cu_address)(uintptr_t)host, address, bytes), "cuMemcpy");
    if (is_tuttis(member, bytes))
        EXPECT_OK(member, tuttiMemFree(device));
    else
        give_plain(address);
}

tuttiStream_t gpus_stream(struct member *member)
{
    struct tutti_cu_stream *stream = NULL;

    expect_cuda(member, gpus_driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING),
                "cuStreamCreate");
    return (tuttiStream_t)(void *)stream;
}

void gpus_drop_stream(struct member *member, tuttiStream_t stream)
{
    expect_cuda(member, gpus_driver()->stream_destroy((struct tutti_cu_stream *)(void *)stream),
                "cuStreamDestroy");
}

void gpus_synchronize(struct member *member, tuttiStream_t stream)
{
    expect_cuda(member, gpus_driver()->stream_synchronize((struct tutti_cu_stream *)(void *)stream),
                "cuStreamSynchronize");
}
