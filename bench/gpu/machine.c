/* SPDX-License-Identifier: Apache-2.0
 * Implements machine.h with the CUDA driver. */
#include "machine.h"

#include "base/clock.h"
#include "base/result.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver's functions for graphs, which the library itself does not use. In the order of the
 * names in load_graphs. */
static struct {
    int (*begin)(struct tutti_cu_stream *stream, int mode);
    int (*end)(struct tutti_cu_stream *stream, struct tutti_cu_graph **ret_graph);
    int (*instantiate)(struct bench_graph **ret_exec, struct tutti_cu_graph *graph,
                       unsigned long long flags);
    int (*launch)(struct bench_graph *exec, struct tutti_cu_stream *stream);
    int (*exec_destroy)(struct bench_graph *exec);
    int (*destroy)(struct tutti_cu_graph *graph);
} graphs;

void bench_end(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stdout);
    _exit(EXIT_FAILURE); /* other threads may be inside the driver */
}

void bench_must(const struct bench_gpu *gpu, const char *what, int code)
{
    if (code != TUTTI_CU_SUCCESS)
        bench_end("%s: %s", what, tutti_cu_error(gpu->cuda, code));
}

static void load_graphs(void *library)
{
    static const char *const names[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                        "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                        "cuGraphExecDestroy", "cuGraphDestroy"};
    void *functions[sizeof(names) / sizeof(names[0])];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        functions[i] = dlsym(library, names[i]);
        if (functions[i] == NULL)
            bench_end("the CUDA driver has no %s", names[i]);
    }
    memcpy(&graphs, functions, sizeof(functions));
}

static uint32_t attribute(const struct bench_gpu *gpu, int which, tutti_cu_device device)
{
    int value = 0;

    bench_must(gpu, "cuDeviceGetAttribute", gpu->cuda->device_attribute(&value, which, device));
    return (uint32_t)value;
}

void bench_gpu_open(int ordinal, struct bench_gpu *ret_gpu)
{
    struct bench_gpu gpu = {.cuda = tutti_cu_get(true)};
    tutti_cu_device device;
    size_t total;
    uint64_t begun;

    if (gpu.cuda == NULL)
        bench_end("there is no CUDA driver: %s", tutti_message_last());
    load_graphs(gpu.cuda->library);
    bench_must(&gpu, "cuDeviceGet", gpu.cuda->device(&device, ordinal));
    bench_must(&gpu, "cuDeviceGetName",
               gpu.cuda->device_name(gpu.name, sizeof(gpu.name), device));
    bench_must(&gpu, "cuDevicePrimaryCtxRetain",
               gpu.cuda->primary_retain(&gpu.context, device));
    bench_must(&gpu, "cuCtxSetCurrent", gpu.cuda->context_set(gpu.context));
    gpu.multiprocessors = attribute(&gpu, TUTTI_CU_MULTIPROCESSORS, device);
    gpu.threads = attribute(&gpu, TUTTI_CU_MAX_THREADS_PER_BLOCK, device);
    gpu.threads = gpu.threads < TUTTI_KERNEL_THREADS ? gpu.threads : TUTTI_KERNEL_THREADS;
    bench_must(&gpu, "cuMemGetInfo", gpu.cuda->memory_info(&gpu.free_bytes, &total));
    begun = tutti_now_ns();
    if (tutti_kernel_module_get(gpu.cuda, &gpu.kernels) != TUTTI_OK)
        bench_end("%s", tutti_message_last());
    gpu.load_ms = (double)(tutti_now_ns() - begun) * 1e-6;
    bench_gpu_join(&gpu, ret_gpu);
}

void bench_gpu_close(struct bench_gpu *gpu)
{
    tutti_cu_device device;

    bench_gpu_leave(gpu);
    tutti_kernel_module_put(gpu->kernels);
    bench_must(gpu, "cuCtxGetDevice", gpu->cuda->context_device(&device));
    bench_must(gpu, "cuDevicePrimaryCtxRelease", gpu->cuda->primary_release(device));
}

void bench_gpu_join(const struct bench_gpu *gpu, struct bench_gpu *ret_gpu)
{
    struct bench_gpu mine = *gpu;
    const struct tutti_cu_driver *cuda = gpu->cuda;

    bench_must(gpu, "cuCtxSetCurrent", cuda->context_set(gpu->context));
    bench_must(gpu, "cuStreamCreate",
               cuda->stream_create(&mine.stream, TUTTI_CU_STREAM_NON_BLOCKING));
    bench_must(gpu, "cuEventCreate", cuda->event_create(&mine.from, 0));
    bench_must(gpu, "cuEventCreate", cuda->event_create(&mine.to, 0));
    *ret_gpu = mine;
}

void bench_gpu_leave(struct bench_gpu *gpu)
{
    bench_must(gpu, "cuEventDestroy", gpu->cuda->event_destroy(gpu->from));
    bench_must(gpu, "cuEventDestroy", gpu->cuda->event_destroy(gpu->to));
    bench_must(gpu, "cuStreamDestroy", gpu->cuda->stream_destroy(gpu->stream));
}

/* ---- memory and work ---- */

static tutti_cu_address address_of(const void *memory)
{
    return (tutti_cu_address)(uintptr_t)memory;
}

void *bench_gpu_alloc(const struct bench_gpu *gpu, size_t size_bytes)
{
    tutti_cu_address address = 0;

    bench_must(gpu, "cuMemAlloc", gpu->cuda->memory_alloc(&address, size_bytes));
    return (void *)(uintptr_t)address;
}

void bench_gpu_free(const struct bench_gpu *gpu, void *memory)
{
    bench_must(gpu, "cuMemFree", gpu->cuda->memory_free(address_of(memory)));
}

void bench_gpu_copy(const struct bench_gpu *gpu, void *to, const void *from, size_t size_bytes)
{
    bench_must(gpu, "cuMemcpyAsync",
               gpu->cuda->copy_async(address_of(to), address_of(from), size_bytes, gpu->stream));
    bench_gpu_synchronize(gpu);
}

void bench_gpu_synchronize(const struct bench_gpu *gpu)
{
    bench_must(gpu, "cuStreamSynchronize", gpu->cuda->stream_synchronize(gpu->stream));
}

void bench_gpu_launch(const struct bench_gpu *gpu, enum tutti_kernel_name kernel, uint32_t blocks,
                      uint32_t threads, const void *argument)
{
    if (tutti_kernel_module_launch(gpu->kernels, kernel, blocks, threads, argument, gpu->stream) !=
        TUTTI_OK)
        bench_end("%s", tutti_message_last());
}

/* ---- graphs ---- */

void bench_graph_begin(const struct bench_gpu *gpu)
{
    bench_must(gpu, "cuStreamBeginCapture",
               graphs.begin(gpu->stream, TUTTI_CU_CAPTURE_THREAD_LOCAL));
}

struct bench_graph *bench_graph_end(const struct bench_gpu *gpu)
{
    struct tutti_cu_graph *graph;
    struct bench_graph *exec;

    bench_must(gpu, "cuStreamEndCapture", graphs.end(gpu->stream, &graph));
    bench_must(gpu, "cuGraphInstantiate", graphs.instantiate(&exec, graph, 0));
    bench_must(gpu, "cuGraphDestroy", graphs.destroy(graph));
    return exec;
}

void bench_graph_replay(const struct bench_gpu *gpu, struct bench_graph *graph)
{
    bench_must(gpu, "cuGraphLaunch", graphs.launch(graph, gpu->stream));
}

void bench_graph_free(const struct bench_gpu *gpu, struct bench_graph *graph)
{
    bench_must(gpu, "cuGraphExecDestroy", graphs.exec_destroy(graph));
}

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
