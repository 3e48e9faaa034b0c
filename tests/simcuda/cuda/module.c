/* SPDX-License-Identifier: Apache-2.0
 * Modules, functions and launches. Whatever image is loaded, the driver runs the kernels that are
 * compiled for the host into this library. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"
#include "simcuda/launch.h"
#include "simcuda/thread.h"

#include <stdlib.h>
#include <string.h>

#define FAT_BINARY 0xba55ed50u

struct tutti_cu_function {
    struct tutti_cu_module *module;
    const struct sim_kernel *kernel;
    int carveout; /* the shared memory that it prefers, in percent, or SIM_ANY_CARVEOUT */
    struct tutti_cu_function *next;
};

struct tutti_cu_module {
    struct tutti_cu_context *context;
    struct tutti_cu_function *functions;
    struct tutti_cu_module *next;
};

static struct tutti_cu_module *modules;

/* ---- modules --------------------------------------------------------------------------------- */

static bool is_image(const void *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof magic);
    return magic == FAT_BINARY || memcmp(image, "\177ELF", 4) == 0 ||
           strncmp(image, "SIMCUDA", 7) == 0;
}

int cuModuleLoadData(struct tutti_cu_module **ret_module, const void *image)
{
    struct tutti_cu_module *module;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    if (image == NULL || !is_image(image))
        return sim_leave(image == NULL ? TUTTI_CU_INVALID_VALUE : TUTTI_CU_INVALID_IMAGE);
    module = calloc(1, sizeof *module);
    if (module == NULL)
        sim_die("no memory for a module");
    module->context = sim_current();
    module->next = modules;
    modules = module;
    *ret_module = module;
    return sim_leave(0);
}

static bool is_module(const struct tutti_cu_module *module)
{
    const struct tutti_cu_module *at = modules;

    while (at != NULL && at != module)
        at = at->next;
    return at != NULL;
}

static void drop_module(struct tutti_cu_module **link)
{
    struct tutti_cu_module *module = *link;

    *link = module->next;
    while (module->functions != NULL) {
        struct tutti_cu_function *next = module->functions->next;

        free(module->functions);
        module->functions = next;
    }
    free(module);
}

int cuModuleUnload(struct tutti_cu_module *module)
{
    struct tutti_cu_module **link = &modules;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_module(module) || module->context != sim_current())
        return sim_leave(is_module(module) ? TUTTI_CU_INVALID_CONTEXT : TUTTI_CU_INVALID_HANDLE);
    while (*link != module)
        link = &(*link)->next;
    drop_module(link);
    return sim_leave(0);
}

void sim_modules_end(struct tutti_cu_context *context)
{
    struct tutti_cu_module **link = &modules;

    while (*link != NULL)
        if ((*link)->context == context)
            drop_module(link);
        else
            link = &(*link)->next;
}

uint32_t sim_modules_left(void)
{
    uint32_t n = 0;

    for (const struct tutti_cu_module *module = modules; module != NULL; module = module->next)
        n++;
    return n;
}

int cuModuleGetFunction(struct tutti_cu_function **ret_function, struct tutti_cu_module *module,
                        const char *name)
{
    struct tutti_cu_function *function;
    const struct sim_kernel *kernel;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    kernel = sim_kernel_find(name);
    if (!is_module(module) || kernel == NULL)
        return sim_leave(kernel == NULL ? TUTTI_CU_NOT_FOUND : TUTTI_CU_INVALID_HANDLE);
    function = module->functions;
    while (function != NULL && function->kernel != kernel)
        function = function->next;
    if (function == NULL) {
        function = calloc(1, sizeof *function);
        if (function == NULL)
            sim_die("no memory for a function");
        *function = (struct tutti_cu_function){.module = module, .kernel = kernel,
                                               .carveout = SIM_ANY_CARVEOUT,
                                               .next = module->functions};
        module->functions = function;
    }
    *ret_function = function;
    return sim_leave(0);
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_function(const struct tutti_cu_function *function)
{
    for (const struct tutti_cu_module *module = modules; module != NULL; module = module->next)
        for (const struct tutti_cu_function *at = module->functions; at != NULL; at = at->next)
            if (at == function)
                return true;
    return false;
}

static uint32_t most_threads(const struct tutti_cu_function *function)
{
    return function->kernel->most_threads < sim_settings.threads ? function->kernel->most_threads
                                                                 : sim_settings.threads;
}

int cuFuncGetAttribute(int *ret_value, int attribute, struct tutti_cu_function *function)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_function(function))
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    switch (attribute) {
    case TUTTI_CU_FUNCTION_MAX_THREADS: *ret_value = (int)most_threads(function); break;
    case TUTTI_CU_FUNCTION_SHARED_BYTES:
        *ret_value = (int)sim_kernel_shared_bytes(function->kernel);
        break;
    case TUTTI_CU_FUNCTION_REGISTERS:
        *ret_value = (int)sim_kernel_registers(function->kernel);
        break;
    case TUTTI_CU_FUNCTION_CARVEOUT: *ret_value = function->carveout; break;
    default: sim_die("cuFuncGetAttribute: attribute %d is not simulated", attribute);
    }
    return sim_leave(0);
}

int cuFuncSetAttribute(struct tutti_cu_function *function, int attribute, int value)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_function(function))
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    if (attribute != TUTTI_CU_FUNCTION_CARVEOUT || value < SIM_ANY_CARVEOUT || value > 100)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    function->carveout = value;
    return sim_leave(0);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks,
                                                struct tutti_cu_function *function, int threads,
                                                size_t shared_bytes)
{
    struct sim_need need;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_function(function) || threads <= 0 || shared_bytes > 0)
        return sim_leave(is_function(function) ? TUTTI_CU_INVALID_VALUE : TUTTI_CU_INVALID_HANDLE);
    need = sim_need_of(function->kernel, (uint32_t)threads, function->carveout);
    *ret_blocks =
        (uint32_t)threads > most_threads(function) ? 0 : (int)sim_need_occupancy(&need);
    return sim_leave(0);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Checks that this launch is possible. */
static int check_launch(const struct tutti_cu_function *function,
                        const struct tutti_cu_stream *stream, unsigned blocks, unsigned threads)
{
    if (stream->context != function->module->context)
        return TUTTI_CU_INVALID_HANDLE;
    if (sim_device_lost(stream->context->device) != 0)
        return sim_device_lost(stream->context->device);
    if (blocks == 0 || threads == 0 || threads > sim_settings.threads)
        return TUTTI_CU_INVALID_VALUE;
    return threads > function->kernel->most_threads ? TUTTI_CU_LAUNCH_OUT_OF_RESOURCES : 0;
}

static struct sim_work *make_launch(const struct tutti_cu_function *function,
                                    const struct tutti_cu_stream *stream, unsigned blocks,
                                    unsigned threads, const void *argument)
{
    struct sim_work *work = sim_work_create(SIM_WORK_KERNEL, stream->context);
    size_t size_bytes = function->kernel->argument_bytes;

    work->kernel.kernel = function->kernel;
    work->kernel.blocks = blocks;
    work->kernel.threads = threads;
    work->kernel.multiprocessors = stream->multiprocessors;
    work->kernel.need = sim_need_of(function->kernel, threads, function->carveout);
    work->kernel.argument = aligned_alloc(64, (size_bytes + 63) & ~(size_t)63);
    if (work->kernel.argument == NULL)
        sim_die("no memory for a launch");
    memcpy(work->kernel.argument, argument, size_bytes);
    return work;
}

int cuLaunchKernel(struct tutti_cu_function *function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_bytes, struct tutti_cu_stream *handle, void **parameters,
                   void **extra)
{
    struct tutti_cu_stream *stream;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (!is_function(function))
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared_bytes != 0 ||
        parameters == NULL || extra != NULL)
        sim_die("kernel %s: only launches of one dimension, without shared memory given at the "
                "launch, with an array of parameters are simulated", function->kernel->name);
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        code = check_launch(function, stream, grid_x, block_x);
    if (code == 0)
        code = sim_stream_do(stream, make_launch(function, stream, grid_x, block_x, parameters[0]));
    return sim_leave(code);
}
