/* SPDX-License-Identifier: Apache-2.0
 * Calls the functions of CUDA's driver API that the measuring programs need. The driver is loaded
 * at run time, so that the programs also start on hosts without a GPU. */
#include "gpu.h"

#include "environment.h"
#include "perf.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_LIBRARY "libcuda.so.1"

typedef unsigned long long device_address;

/* These are values of CUresult, CUstream_flags and CUstreamCaptureMode. */
enum { SUCCESS = 0, OUT_OF_MEMORY = 2 };
enum { STREAM_NON_BLOCKING = 1 };
enum { CAPTURE_THREAD_LOCAL = 1 };

/* The functions of the driver. Their parameters are those of the functions that the table below
 * names; handles are void pointers or ints. */
static struct {
    int (*init)(unsigned flags);
    int (*error_string)(int code, const char **ret_text);
    int (*device_count)(int *ret_count);
    int (*device_get)(int *ret_device, int ordinal);
    int (*device_name)(char *ret_name, int size_bytes, int device);
    int (*primary_retain)(void **ret_context, int device);
    int (*primary_release)(int device);
    int (*context_set)(void *context);
    int (*stream_create)(void **ret_stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*memory_alloc)(device_address *ret_address, size_t size_bytes);
    int (*memory_free)(device_address address);
    int (*copy_async)(device_address to, device_address from, size_t size_bytes, void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **ret_graph);
    int (*graph_instantiate)(void **ret_exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);
} driver;

#define AT(member) offsetof(__typeof__(driver), member)
static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"cuInit", AT(init)},
    {"cuGetErrorString", AT(error_string)},
    {"cuDeviceGetCount", AT(device_count)},
    {"cuDeviceGet", AT(device_get)},
    {"cuDeviceGetName", AT(device_name)},
    {"cuDevicePrimaryCtxRetain", AT(primary_retain)},
    {"cuDevicePrimaryCtxRelease_v2", AT(primary_release)},
    {"cuCtxSetCurrent", AT(context_set)},
    {"cuStreamCreate", AT(stream_create)},
    {"cuStreamDestroy_v2", AT(stream_destroy)},
    {"cuStreamSynchronize", AT(stream_synchronize)},
    {"cuMemAlloc_v2", AT(memory_alloc)},
    {"cuMemFree_v2", AT(memory_free)},
    {"cuMemcpyAsync", AT(copy_async)},
    {"cuStreamBeginCapture_v2", AT(capture_begin)},
    {"cuStreamEndCapture", AT(capture_end)},
    {"cuGraphInstantiateWithFlags", AT(graph_instantiate)},
    {"cuGraphLaunch", AT(graph_launch)},
    {"cuGraphExecDestroy", AT(exec_destroy)},
    {"cuGraphDestroy", AT(graph_destroy)},
};
#undef AT

static int device_count; /* 0: the driver is not loaded yet */
/* Held while a thread loads the driver and sets `driver` and `device_count`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Prints a message and ends the program. _exit skips the exit handlers, because other threads may
 * still be running inside the library. */
static _Noreturn void __attribute__((format(printf, 1, 2))) die(const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s_perf: %s\n", perf_collective.name, line);
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

static const char *text_of(int code)
{
    const char *text = NULL;

    return driver.error_string(code, &text) == SUCCESS && text != NULL ? text : "unknown error";
}

/* Ends the program if a driver call named `what` has failed. */
static void must(const struct perf_gpu *gpu, const char *what, int code)
{
    if (code != SUCCESS)
        die("rank %d on GPU %d: %s: %s", gpu->rank, gpu->device, what, text_of(code));
}

/* ---- loading ---- */

static void *open_library(void)
{
    const char *wanted = perf_environment("TUTTI_CUDA_LIBRARY");
    const char *file = wanted != NULL ? wanted : DEFAULT_LIBRARY;
    void *library = dlopen(file, RTLD_NOW);

    if (library == NULL)
        die("--device gpu: there is no CUDA driver: %s", dlerror());
    return library;
}

void perf_gpu_require(void)
{
    /* Streams share hardware queues, 8 unless the variable says so. A rank's kernel that waits in a
     * queue behind that of another rank on the same GPU would never begin. The program has one
     * thread yet, and the driver reads the variable when it starts. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    dlclose(open_library());
}

/* Loads the driver and initializes it, or ends the program. The library stays loaded. */
static void load(void)
{
    void *library = open_library();
    int code;

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);

        if (function == NULL)
            die("--device gpu: the CUDA driver is too old: it has no %s", functions[i].name);
        memcpy((char *)&driver + functions[i].at, &function, sizeof(function));
    }
    code = driver.init(0);
    if (code == SUCCESS)
        code = driver.device_count(&device_count);
    if (code != SUCCESS)
        die("--device gpu: the CUDA driver does not start: %s", text_of(code));
    if (device_count == 0)
        die("--device gpu: the CUDA driver shows no GPU");
}

void perf_gpu_init(struct perf_gpu *gpu, int rank, int device)
{
    int handle;

    pthread_mutex_lock(&lock);
    if (device_count == 0)
        load();
    pthread_mutex_unlock(&lock);
    if (device >= device_count)
        die("--device gpu:%d: the CUDA driver shows only %d", device, device_count);
    *gpu = (struct perf_gpu){.rank = rank, .device = device < 0 ? rank % device_count : device};
    must(gpu, "cuDeviceGet", driver.device_get(&handle, gpu->device));
    must(gpu, "cuDeviceGetName", driver.device_name(gpu->name, sizeof(gpu->name), handle));
    must(gpu, "cuDevicePrimaryCtxRetain", driver.primary_retain(&gpu->context, handle));
    must(gpu, "cuCtxSetCurrent", driver.context_set(gpu->context));
    must(gpu, "cuStreamCreate", driver.stream_create(&gpu->stream, STREAM_NON_BLOCKING));
}

void perf_gpu_fini(struct perf_gpu *gpu)
{
    int handle;

    if (gpu->context == NULL)
        return;
    must(gpu, "cuStreamDestroy", driver.stream_destroy(gpu->stream));
    must(gpu, "cuCtxSetCurrent", driver.context_set(NULL));
    must(gpu, "cuDeviceGet", driver.device_get(&handle, gpu->device));
    must(gpu, "cuDevicePrimaryCtxRelease", driver.primary_release(handle));
    gpu->context = NULL;
}

/* ---- memory ---- */

static device_address address_of(const void *memory)
{
    return (device_address)(uintptr_t)memory;
}

void *perf_gpu_alloc(const struct perf_gpu *gpu, size_t size_bytes)
{
    device_address address = 0;
    int code = driver.memory_alloc(&address, size_bytes);

    if (code == OUT_OF_MEMORY)
        return NULL;
    must(gpu, "cuMemAlloc", code);
    return (void *)(uintptr_t)address;
}

void perf_gpu_free(const struct perf_gpu *gpu, void *memory)
{
    must(gpu, "cuMemFree", driver.memory_free(address_of(memory)));
}

/* The copy runs on the rank's stream. A copy without a stream may return before the GPU has all
 * bytes, and non-blocking streams do not wait for such a copy. */
void perf_gpu_copy(const struct perf_gpu *gpu, void *to, const void *from, size_t size_bytes)
{
    must(gpu, "cuMemcpyAsync",
         driver.copy_async(address_of(to), address_of(from), size_bytes, gpu->stream));
    perf_gpu_synchronize(gpu);
}

void perf_gpu_synchronize(const struct perf_gpu *gpu)
{
    must(gpu, "cuStreamSynchronize", driver.stream_synchronize(gpu->stream));
}

/* ---- graphs ---- */

void perf_gpu_capture_begin(const struct perf_gpu *gpu)
{
    must(gpu, "cuStreamBeginCapture", driver.capture_begin(gpu->stream, CAPTURE_THREAD_LOCAL));
}

void *perf_gpu_capture_end(const struct perf_gpu *gpu)
{
    void *graph, *exec;

    must(gpu, "cuStreamEndCapture", driver.capture_end(gpu->stream, &graph));
    must(gpu, "cuGraphInstantiate", driver.graph_instantiate(&exec, graph, 0));
    must(gpu, "cuGraphDestroy", driver.graph_destroy(graph));
    return exec;
}

void perf_gpu_replay(const struct perf_gpu *gpu, void *graph)
{
    must(gpu, "cuGraphLaunch", driver.graph_launch(graph, gpu->stream));
}

void perf_gpu_graph_free(const struct perf_gpu *gpu, void *graph)
{
    must(gpu, "cuGraphExecDestroy", driver.exec_destroy(graph));
}
