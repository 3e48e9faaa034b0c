/* SPDX-License-Identifier: Apache-2.0
 * Opens, enters and destroys a rank's GPU. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tutti_cuda_fail(const struct tutti_cuda_gpu *gpu, int code, const char *what)
{
    return tutti_fail(TUTTI_ERR_DEVICE, "rank %d, GPU %d (%s): %s: %s", gpu->args.rank,
                      gpu->args.device, gpu->name, what, tutti_cu_error(gpu->cuda, code));
}

void tutti_cuda_args_of(const struct tutti_cuda_gpu *gpu, struct tutti_cuda_args *ret_args)
{
    ret_args->device = gpu->args.device;
    ret_args->context = gpu->args.context;
}

int tutti_cuda_enter(const struct tutti_cuda_gpu *gpu)
{
    int code = gpu->cuda->context_push(gpu->context);

    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "making its context current");
}

void tutti_cuda_leave(const struct tutti_cuda_gpu *gpu)
{
    struct tutti_cu_context *ours;

    gpu->cuda->context_pop(&ours);
}

int tutti_cuda_enter_relaxed(const struct tutti_cuda_gpu *gpu, int *ret_mode)
{
    TUTTI_TRY(tutti_cuda_enter(gpu));
    *ret_mode = TUTTI_CU_CAPTURE_RELAXED;
    gpu->cuda->exchange_capture_mode(ret_mode);
    return TUTTI_OK;
}

void tutti_cuda_leave_relaxed(const struct tutti_cuda_gpu *gpu, int mode)
{
    gpu->cuda->exchange_capture_mode(&mode);
    tutti_cuda_leave(gpu);
}

int tutti_cuda_wait_setup(const struct tutti_cuda_gpu *gpu)
{
    int code = gpu->cuda->stream_synchronize(gpu->setup_stream);

    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "setting up its domain");
}

int tutti_cuda_copy_and_wait(const struct tutti_cuda_gpu *gpu, tutti_cu_address to,
                             tutti_cu_address from, size_t size_bytes)
{
    int code = gpu->cuda->copy_async(to, from, size_bytes, gpu->setup_stream);

    return code == TUTTI_CU_SUCCESS ? tutti_cuda_wait_setup(gpu)
                                    : tutti_cuda_fail(gpu, code, "copying a table");
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Sets the context, and the device's name for messages. If the caller has given no context, retains
 * the device's primary context. */
static int take_context(struct tutti_cuda_gpu *gpu)
{
    int code;

    gpu->cuda->device_name(gpu->name, sizeof gpu->name, gpu->args.device);
    gpu->context = gpu->args.context;
    if (gpu->context != NULL)
        return TUTTI_OK;
    code = gpu->cuda->primary_retain(&gpu->context, gpu->args.device);
    if (code != TUTTI_CU_SUCCESS)
        return tutti_cuda_fail(gpu, code, "retaining its primary context");
    gpu->holds_primary = true;
    return TUTTI_OK;
}

static int read_properties(struct tutti_cuda_gpu *gpu)
{
    int code = gpu->cuda->device_attribute(&gpu->multiprocessors, TUTTI_CU_MULTIPROCESSORS,
                                           gpu->args.device);

    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->device_attribute(&gpu->most_threads, TUTTI_CU_MAX_THREADS_PER_BLOCK,
                                           gpu->args.device);
    if (code != TUTTI_CU_SUCCESS)
        return tutti_cuda_fail(gpu, code, "reading its properties");
    gpu->threads = gpu->most_threads < TUTTI_KERNEL_THREADS ? (uint32_t)gpu->most_threads
                                                         : TUTTI_KERNEL_THREADS;
    return TUTTI_OK;
}

int tutti_cuda_bus_id(const struct tutti_cuda_gpu *gpu, int64_t *ret_busid)
{
    static const int attributes[] = {TUTTI_CU_PCI_DOMAIN, TUTTI_CU_PCI_BUS, TUTTI_CU_PCI_DEVICE};
    int values[3] = {0}, code = TUTTI_CU_SUCCESS;

    for (int i = 0; i < 3 && code == TUTTI_CU_SUCCESS; i++)
        code = gpu->cuda->device_attribute(&values[i], attributes[i], gpu->args.device);
    *ret_busid = (int64_t)values[0] << 20 | (int64_t)values[1] << 12 | (int64_t)values[2] << 4;
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "reading its address");
}

static int make_streams(struct tutti_cuda_gpu *gpu)
{
    int code = gpu->cuda->stream_create(&gpu->setup_stream, TUTTI_CU_STREAM_NON_BLOCKING);

    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_create(&gpu->last_event, TUTTI_CU_EVENT_DISABLE_TIMING);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_create(&gpu->order_event, TUTTI_CU_EVENT_DISABLE_TIMING);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "creating streams and events");
}

/* Allocates the arrays that have an entry for each rank. */
static int reserve_lists(struct tutti_cuda_gpu *gpu)
{
    size_t nranks = (size_t)gpu->args.nranks;

    gpu->records = calloc(nranks, sizeof *gpu->records);
    gpu->excluded = calloc(nranks, sizeof *gpu->excluded);
    gpu->passes = calloc(nranks, sizeof *gpu->passes);
    gpu->passed_fds = malloc(nranks * sizeof *gpu->passed_fds);
    gpu->board_fds = malloc(nranks * sizeof *gpu->board_fds);
    gpu->neighbors = calloc(nranks, sizeof *gpu->neighbors);
    for (size_t rank = 0; gpu->board_fds != NULL && rank < nranks; rank++)
        gpu->board_fds[rank] = -1;
    if (gpu->records == NULL || gpu->excluded == NULL || gpu->passes == NULL ||
        gpu->passed_fds == NULL || gpu->board_fds == NULL || gpu->neighbors == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the GPUs of %zu ranks", nranks);
    for (size_t rank = 0; rank < nranks; rank++)
        gpu->passed_fds[rank] = -1;
    return TUTTI_OK;
}

int tutti_cuda_open(const struct tutti_cu_driver *cuda, const struct tutti_cuda_args *args,
                    struct tutti_cuda_gpu **ret_gpu)
{
    struct tutti_cuda_gpu *gpu = calloc(1, sizeof *gpu);
    int rc;

    if (gpu == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the GPU of rank %d", args->rank);
    gpu->cuda = cuda;
    gpu->args = *args;
    gpu->board = (struct tutti_board){.near_fd = -1, .far_fd = -1};
    TUTTI_TRY_OR(fail, rc, reserve_lists(gpu));
    TUTTI_TRY_OR(fail, rc, take_context(gpu));
    TUTTI_TRY_OR(fail, rc, read_properties(gpu));
    TUTTI_TRY_OR(fail, rc, tutti_cuda_enter(gpu));
    rc = make_streams(gpu);
    /* Missing kernels are not an error, because data in device memory can go through the host. */
    if (rc == TUTTI_OK && tutti_kernel_module_get(cuda, &gpu->kernels) != TUTTI_OK)
        tutti_log(TUTTI_LOG_WARN, "rank %d, GPU %d: device memory goes through the host: %s",
                  args->rank, args->device, tutti_message_last());
    tutti_cuda_leave(gpu);
    if (rc != TUTTI_OK)
        goto fail;
    *ret_gpu = gpu;
    return TUTTI_OK;

fail:
    tutti_cuda_destroy(gpu, false);
    return rc;
}

const struct tutti_cuda_grid *tutti_cuda_grid(const struct tutti_cuda_gpu *gpu)
{
    return &gpu->grid;
}

bool tutti_cuda_spans_hosts(const struct tutti_cuda_gpu *gpu)
{
    return gpu->spans_hosts;
}

bool tutti_cuda_reaches_all(const struct tutti_cuda_gpu *gpu)
{
    return gpu->is_all_open && gpu->is_one_device;
}

/* ---- destroying ----------------------------------------------------------------------------- */

void tutti_cuda_destroy(struct tutti_cuda_gpu *gpu, bool is_stuck)
{
    bool is_inside;

    if (gpu == NULL)
        return;
    tutti_cuda_end_network(gpu, false);
    tutti_cuda_sharers_leave(gpu);
    tutti_cuda_residency_leave(gpu);
    tutti_cuda_close_boards(gpu);
    is_inside = gpu->context != NULL && !is_stuck && tutti_cuda_enter(gpu) == TUTTI_OK;
    if (is_inside) {
        /* Forming may have been broken off while its test kernels ran. */
        tutti_cuda_abort(gpu);
        if (gpu->setup_stream != NULL)
            gpu->cuda->stream_synchronize(gpu->setup_stream);
        tutti_cuda_slabs_fini(gpu);
        tutti_cuda_scratch_fini(gpu);
        tutti_cuda_maps_destroy(gpu);
        if (gpu->own_stream != NULL)
            gpu->cuda->stream_destroy(gpu->own_stream);
        if (gpu->setup_stream != NULL)
            gpu->cuda->stream_destroy(gpu->setup_stream);
        if (gpu->last_event != NULL)
            gpu->cuda->event_destroy(gpu->last_event);
        if (gpu->order_event != NULL)
            gpu->cuda->event_destroy(gpu->order_event);
        if (gpu->report != NULL)
            gpu->cuda->host_free(gpu->report);
        tutti_cuda_unshare(gpu);
        tutti_gpumem_free(gpu->cuda, &gpu->far);
        tutti_gpumem_free(gpu->cuda, &gpu->state);
        tutti_cuda_take_back(gpu, &gpu->own);
        tutti_cuda_take_back(gpu, &gpu->host);
    }
    if (!is_stuck)
        tutti_kernel_module_put(gpu->kernels);
    if (is_inside)
        tutti_cuda_leave(gpu);
    if (gpu->holds_primary && !is_stuck)
        gpu->cuda->primary_release(gpu->args.device);
    free(gpu->records);
    free(gpu->excluded);
    free(gpu->passes);
    free(gpu->passed_fds);
    free(gpu->neighbors);
    free(gpu);
}

size_t tutti_cuda_bytes(const struct tutti_cuda_gpu *gpu)
{
    return gpu->own.size_bytes + gpu->state.size_bytes + tutti_cuda_scratch_bytes(gpu);
}
