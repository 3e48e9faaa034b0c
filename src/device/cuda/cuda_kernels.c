/* SPDX-License-Identifier: Apache-2.0
 * Loads the kernels' image into CUDA contexts, and launches kernels. */
#include "device/cuda/cuda_kernels.h"

#include "base/file.h"
#include "base/log.h"
#include "base/param.h"
#include "base/result.h"
#include "device/cuda/cuda_image.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TUTTI_KERNEL_NAME_COUNT] = {
    [TUTTI_KERNEL_EMPTY] = "tutti_kernel_empty",
    [TUTTI_KERNEL_COPY] = "tutti_kernel_copy",
    [TUTTI_KERNEL_REDUCE] = "tutti_kernel_reduce",
    [TUTTI_KERNEL_CONVERT] = "tutti_kernel_convert",
    [TUTTI_KERNEL_TEST_LINES] = "tutti_kernel_test_lines",
    [TUTTI_KERNEL_SMALL] = "tutti_kernel_work_small",
    [TUTTI_KERNEL_DIRECT] = "tutti_kernel_work_direct",
    [TUTTI_KERNEL_GROUP] = "tutti_kernel_group",
    [TUTTI_KERNEL_MEETING] = "tutti_kernel_meeting",
};

/* The size of a launch of tutti_kernel_module_copy. */
enum { COPY_BLOCKS = 2, COPY_THREADS = 32 };

/* The shared memory that all kernels prefer, in percent of the largest that a multiprocessor can
 * have. The rest is first-level cache. Two blocks of each kernel have room in it on all GPUs since
 * compute capability 8.0. */
enum { CARVEOUT_PERCENT = 60 };

#define MOST_IMAGE_BYTES ((size_t)64 << 20) /* far more than any image of kernels has */

struct tutti_kernel_module {
    struct tutti_kernel_module *next;
    uint32_t nusers; /* guarded by `lock` */
    const struct tutti_cu_driver *cuda;
    struct tutti_cu_context *context;
    struct tutti_cu_module *module;
    struct tutti_cu_function *functions[TUTTI_KERNEL_NAME_COUNT];
};

/* A list with one object for each context that has users, guarded by `lock`. The last user removes
 * the object, because a later context may have the same address, but it has none of the modules. */
static struct tutti_kernel_module *loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the image ------------------------------------------------------------------------------ */

/* Reads the file of kernels that the user names. The caller must free *ret_image. */
static int read_file(const char *path, void **ret_image)
{
    enum tutti_file_end end;
    size_t size;
    char *image;

    end = tutti_file_load(path, MOST_IMAGE_BYTES, &image, &size);
    if (end == TUTTI_FILE_NOT_OPENED)
        return tutti_note(TUTTI_ERR_DEVICE, "TUTTI_CUDA_KERNELS: cannot open %s: %s", path,
                          strerror(errno));
    if (end == TUTTI_FILE_TOO_LONG)
        return tutti_note(TUTTI_ERR_DEVICE,
                          "TUTTI_CUDA_KERNELS: %s has more than %zu MiB, so it is "
                          "not a file of kernels",
                          path, MOST_IMAGE_BYTES >> 20);
    if (end == TUTTI_FILE_DONE && size == 0)
        free(image);
    if (end != TUTTI_FILE_DONE || size == 0)
        return tutti_note(TUTTI_ERR_DEVICE, "TUTTI_CUDA_KERNELS: cannot read %s", path);
    *ret_image = image;
    return TUTTI_OK;
}

/* The caller must free *ret_file after it has loaded the image. *ret_file may be NULL. */
static int find_image(const void **ret_image, void **ret_file)
{
    const char *path = tutti_param_text(TUTTI_PARAM_CUDA_KERNELS);

    *ret_file = NULL;
    if (path[0] != '\0') {
        TUTTI_TRY(read_file(path, ret_file));
        *ret_image = *ret_file;
        return TUTTI_OK;
    }
    if (tutti_kernel_image_bytes == 0)
        return tutti_note(TUTTI_ERR_DEVICE, "this library was built without nvcc and has no "
                          "kernels; build it with CUDA's compiler, or name a file of kernels in "
                          "TUTTI_CUDA_KERNELS");
    *ret_image = tutti_kernel_image;
    return TUTTI_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Records why loading failed, and returns TUTTI_ERR_DEVICE. */
static int explain(const struct tutti_cu_driver *cuda, int code)
{
    tutti_cu_device device;
    int major = 0, minor = 0;

    if ((code == TUTTI_CU_NO_BINARY_FOR_GPU || code == TUTTI_CU_INVALID_IMAGE) &&
        cuda->context_device(&device) == TUTTI_CU_SUCCESS &&
        cuda->device_attribute(&major, TUTTI_CU_CAPABILITY_MAJOR, device) == TUTTI_CU_SUCCESS &&
        cuda->device_attribute(&minor, TUTTI_CU_CAPABILITY_MINOR, device) == TUTTI_CU_SUCCESS)
        return tutti_note(TUTTI_ERR_DEVICE, "the kernels were not built for a GPU of compute "
                          "capability %d.%d; build with TUTTI_CUDA_ARCHITECTURES=%d%d or =all",
                          major, minor, major, minor);
    return tutti_note(TUTTI_ERR_DEVICE, "loading the kernels: %s", tutti_cu_error(cuda, code));
}

/* Makes all kernels prefer the same division of first-level cache and shared memory. A
 * multiprocessor changes it only while no kernel runs there. So a kernel with another preference
 * would wait for kernels that may wait for it. A driver may refuse, because this is a hint. */
static void set_carveout(const struct tutti_kernel_module *kernels)
{
    for (int i = 0; kernels->cuda->set_function_attribute != NULL && i < TUTTI_KERNEL_NAME_COUNT;
         i++)
        kernels->cuda->set_function_attribute(kernels->functions[i], TUTTI_CU_FUNCTION_CARVEOUT,
                                              CARVEOUT_PERCENT);
}

/* Loads the kernels into the current context. */
static int load(const struct tutti_cu_driver *cuda, struct tutti_cu_context *context,
                struct tutti_kernel_module **ret_kernels)
{
    struct tutti_kernel_module *kernels = calloc(1, sizeof *kernels);
    const void *image;
    void *file = NULL;
    int code, rc;

    if (kernels == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for kernels");
    kernels->cuda = cuda;
    kernels->context = context;
    TUTTI_TRY_OR(fail, rc, find_image(&image, &file));
    code = cuda->module_load(&kernels->module, image);
    free(file);
    if (code != TUTTI_CU_SUCCESS) {
        rc = explain(cuda, code);
        goto fail;
    }
    for (int i = 0; i < TUTTI_KERNEL_NAME_COUNT; i++) {
        code = cuda->module_function(&kernels->functions[i], kernels->module, names[i]);
        if (code == TUTTI_CU_SUCCESS)
            continue;
        rc = tutti_note(TUTTI_ERR_DEVICE, "the kernel %s: %s; the kernels are of another version",
                        names[i], tutti_cu_error(cuda, code));
        cuda->module_unload(kernels->module);
        goto fail;
    }
    set_carveout(kernels);
    *ret_kernels = kernels;
    return TUTTI_OK;

fail:
    free(kernels);
    return rc;
}

/* Does the work of tutti_kernel_module_get. The caller holds `lock`. */
static int get_locked(const struct tutti_cu_driver *cuda, struct tutti_kernel_module **ret_kernels)
{
    struct tutti_cu_context *context = NULL;
    struct tutti_kernel_module *kernels = loaded;
    int code = cuda->context_current(&context);

    if (code != TUTTI_CU_SUCCESS || context == NULL)
        return tutti_note(TUTTI_ERR_DEVICE, "no CUDA context is current");
    while (kernels != NULL && (kernels->context != context || kernels->cuda != cuda))
        kernels = kernels->next;
    if (kernels == NULL) {
        TUTTI_TRY(load(cuda, context, &kernels));
        kernels->next = loaded;
        loaded = kernels;
    }
    kernels->nusers++;
    *ret_kernels = kernels;
    return TUTTI_OK;
}

int tutti_kernel_module_get(const struct tutti_cu_driver *cuda,
                            struct tutti_kernel_module **ret_kernels)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = get_locked(cuda, ret_kernels);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* A context that is not current may have been destroyed, and its modules with it. Then the module
 * must not be unloaded. */
static void unload(struct tutti_kernel_module *kernels)
{
    struct tutti_cu_context *context = NULL;

    if (kernels->cuda->context_current(&context) == TUTTI_CU_SUCCESS &&
        context == kernels->context)
        kernels->cuda->module_unload(kernels->module);
    free(kernels);
}

void tutti_kernel_module_put(struct tutti_kernel_module *kernels)
{
    struct tutti_kernel_module **link = &loaded;

    if (kernels == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--kernels->nusers == 0) {
        while (*link != kernels)
            link = &(*link)->next;
        *link = kernels->next;
        unload(kernels);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- launching ------------------------------------------------------------------------------- */

int tutti_kernel_module_occupancy(const struct tutti_kernel_module *kernels, uint32_t threads)
{
    int least = 0;

    for (int i = TUTTI_KERNEL_SMALL; i < TUTTI_KERNEL_NAME_COUNT; i++) {
        int blocks = 0;

        if (kernels->cuda->occupancy(&blocks, kernels->functions[i], (int)threads, 0) !=
            TUTTI_CU_SUCCESS)
            return 1;
        least = least == 0 || blocks < least ? blocks : least;
    }
    return least > 1 ? least : 1;
}

int tutti_kernel_module_launch(const struct tutti_kernel_module *kernels,
                               enum tutti_kernel_name kernel, uint32_t blocks, uint32_t threads,
                               const void *argument, struct tutti_cu_stream *stream)
{
    void *parameters[] = {(void *)(uintptr_t)argument};
    int code = kernels->cuda->launch(kernels->functions[kernel], blocks, 1, 1, threads, 1, 1, 0,
                                     stream, parameters, NULL);

    return code == TUTTI_CU_SUCCESS
               ? TUTTI_OK
               : tutti_fail(TUTTI_ERR_DEVICE, "launch of %s (%u blocks of %u threads): %s",
                            names[kernel], blocks, threads,
                            tutti_cu_error(kernels->cuda, code));
}

int tutti_kernel_module_copy(const struct tutti_kernel_module *kernels, void *to, const void *from,
                             size_t size_bytes, struct tutti_cu_stream *stream)
{
    struct tutti_kernel_copy_argument argument = {.src = from, .dst = to, .size_bytes = size_bytes};

    return tutti_kernel_module_launch(kernels, TUTTI_KERNEL_COPY, COPY_BLOCKS, COPY_THREADS,
                                      &argument, stream);
}
