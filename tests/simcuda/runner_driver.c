/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels by a CUDA driver, simulated or real, on its first device. It uses the library's own
 * image of them, or the file that TUTTI_CUDA_KERNELS names. */
#include "simcuda/runner.h"

#include "base/result.h"
#include "device/cuda/cuda_image.h"
#include "device/cuda/cuda_kernels.h"
#include "wrap/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tutti_cu_driver *cuda;
static struct tutti_kernel_module *kernels;
static tutti_cu_device device;
static struct tutti_cu_context *context;
static struct tutti_cu_stream *stream;
static tutti_cu_address memory;
static size_t memory_bytes;

/* Not what is under test. */
static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(int code, const char *what)
{
    if (code != TUTTI_CU_SUCCESS)
        give_up(what, tutti_cu_error(cuda, code));
}
#define MUST(call) must(call, #call)

static bool nothing(const char *why)
{
    printf("skipped: %s\n", why);
    return false;
}

bool runner_open(void)
{
    int count = 0;

    cuda = tutti_cu_get(true);
    if (cuda == NULL)
        return nothing("no CUDA driver");
    MUST(cuda->device_count(&count));
    if (count == 0)
        return nothing("no GPU");
    if (tutti_kernel_image_bytes == 0 && getenv("TUTTI_CUDA_KERNELS") == NULL)
        return nothing("no kernels, for there was no nvcc");
    MUST(cuda->device(&device, 0));
    MUST(cuda->primary_retain(&context, device));
    MUST(cuda->context_set(context));
    MUST(cuda->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    if (tutti_kernel_module_get(cuda, &kernels) != TUTTI_OK)
        give_up("kernels", tutti_message_last());
    return true;
}

void runner_close(void)
{
    MUST(cuda->stream_destroy(stream));
    if (memory != 0)
        MUST(cuda->memory_free(memory));
    tutti_kernel_module_put(kernels);
    MUST(cuda->context_set(NULL));
    MUST(cuda->primary_release(device));
}

uint64_t runner_memory(size_t size_bytes)
{
    if (size_bytes > memory_bytes) {
        if (memory != 0)
            MUST(cuda->memory_free(memory));
        MUST(cuda->memory_alloc(&memory, size_bytes));
        memory_bytes = size_bytes;
    }
    return memory;
}

void runner_upload(size_t at, const void *from, size_t size_bytes)
{
    if (size_bytes == 0)
        return;
    MUST(cuda->copy(memory + at, (tutti_cu_address)(uintptr_t)from, size_bytes));
    MUST(cuda->stream_synchronize(TUTTI_CU_STREAM_LEGACY)); /* `from` is pageable */
}

void runner_download(void *to, size_t at, size_t size_bytes)
{
    if (size_bytes > 0)
        MUST(cuda->copy((tutti_cu_address)(uintptr_t)to, memory + at, size_bytes));
}

void runner_launch(const char *kernel, uint32_t blocks, uint32_t threads, const void *argument,
                   size_t argument_bytes)
{
    static const struct {
        const char *name;
        enum tutti_kernel_name kernel;
        size_t argument_bytes;
    } known[] = {
        {"tutti_kernel_empty", TUTTI_KERNEL_EMPTY, sizeof(struct tutti_kernel_empty_argument)},
        {"tutti_kernel_copy", TUTTI_KERNEL_COPY, sizeof(struct tutti_kernel_copy_argument)},
        {"tutti_kernel_reduce", TUTTI_KERNEL_REDUCE, sizeof(struct tutti_kernel_reduce_argument)},
        {"tutti_kernel_convert", TUTTI_KERNEL_CONVERT, sizeof(struct tutti_kernel_conversion)},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(kernel, known[i].name) != 0)
            continue;
        if (argument_bytes != known[i].argument_bytes)
            give_up(kernel, "an argument of another kernel");
        if (tutti_kernel_module_launch(kernels, known[i].kernel, blocks, threads, argument,
                                       stream) != TUTTI_OK)
            give_up(kernel, tutti_message_last());
        MUST(cuda->stream_synchronize(stream));
        return;
    }
    give_up(kernel, "no such kernel");
}

static uint32_t attribute(int which, uint32_t most)
{
    int value = 1;

    MUST(cuda->device_attribute(&value, which, device));
    return (uint32_t)value < most ? (uint32_t)value : most;
}

uint32_t runner_most_blocks(void)
{
    return attribute(TUTTI_CU_MULTIPROCESSORS, TUTTI_KERNEL_BLOCKS);
}

uint32_t runner_most_threads(void)
{
    return attribute(TUTTI_CU_MAX_THREADS_PER_BLOCK, TUTTI_KERNEL_THREADS);
}
