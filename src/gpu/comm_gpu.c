/* SPDX-License-Identifier: Apache-2.0
 * The life of a communicator's GPU. This file opens the GPU of a rank, lets it meet the GPUs of the
 * other ranks, and frees it at the end. */
#include "gpu/comm_gpu.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- which device ---------------------------------------------------------------------------- */

/* Finds the device number `wanted`, or, with TUTTI_CONFIG_UNDEF_INT, that of the current
 * context. */
static int find_device(const struct tutti_cu_driver *cuda, int wanted, struct tutti_cuda_args *args)
{
    int count = 0, code;

    if (wanted == TUTTI_CONFIG_UNDEF_INT) {
        code = cuda->context_device(&args->device);
        if (code == TUTTI_CU_SUCCESS)
            code = cuda->context_current(&args->context);
        return code == TUTTI_CU_SUCCESS
                   ? TUTTI_OK : tutti_fail(TUTTI_ERR_DEVICE, "the current CUDA context: %s",
                                           tutti_cu_error(cuda, code));
    }
    code = cuda->device_count(&count);
    if (code == TUTTI_CU_SUCCESS && wanted >= count)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "config.device is %d; this process sees %d GPUs",
                          wanted, count);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->device(&args->device, wanted);
    return code == TUTTI_CU_SUCCESS
               ? TUTTI_OK : tutti_fail(TUTTI_ERR_DEVICE, "GPU %d: %s", wanted,
                                       tutti_cu_error(cuda, code));
}

static bool has_current_context(const struct tutti_cu_driver *cuda)
{
    struct tutti_cu_context *context = NULL;

    return cuda->context_current(&context) == TUTTI_CU_SUCCESS && context != NULL;
}

static int create(struct tutti_comm *comm, const struct tutti_cuda_args *args)
{
    struct tutti_gpu_comm *gpu_comm = calloc(1, sizeof *gpu_comm);

    if (gpu_comm == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a rank's GPU");
    pthread_mutex_init(&gpu_comm->lock, NULL);
    pthread_cond_init(&gpu_comm->wake, NULL);
    comm->gpu = gpu_comm;
    gpu_comm->sequences = calloc(2 * (size_t)comm->nranks, sizeof *gpu_comm->sequences);
    if (gpu_comm->sequences == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a rank's GPU");
    return tutti_cuda_open(comm->cuda, args, &gpu_comm->gpu);
}

int tutti_gpu_comm_open(struct tutti_comm *comm, int wanted, const struct tutti_comm *parent)
{
    struct tutti_cuda_args args = {.nranks = comm->nranks, .rank = comm->rank,
                                   .deadline_ns = comm->deadline_ns};

    /* A process that has not loaded CUDA has no device memory. In other processes, ranks on the CPU
     * need the driver, too. They use it to recognize device memory and refuse it. */
    comm->cuda = tutti_cu_get(wanted >= 0);
    if (wanted == TUTTI_CONFIG_UNDEF_INT && parent != NULL) {
        if (parent->gpu == NULL)
            return TUTTI_OK;
        tutti_cuda_args_of(parent->gpu->gpu, &args);
        return create(comm, &args);
    }
    if (wanted == -1)
        return TUTTI_OK;
    if (comm->cuda == NULL && wanted != TUTTI_CONFIG_UNDEF_INT)
        return tutti_fail(TUTTI_ERR_DEVICE, "config.device is %d, but there is no CUDA driver: %s",
                          wanted, tutti_message_last());
    if (comm->cuda == NULL || (wanted == TUTTI_CONFIG_UNDEF_INT &&
                               !has_current_context(comm->cuda)))
        return TUTTI_OK;
    TUTTI_TRY(find_device(comm->cuda, wanted, &args));
    return create(comm, &args);
}

/* ---- meeting --------------------------------------------------------------------------------- */

static int begin_exchange(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_ALLGATHER, TUTTI_FOR_FORMING, tutti_cuda_message(gpu_comm->gpu),
                        gpu_comm->messages, TUTTI_CUDA_MESSAGE_BYTES, &call);
    return tutti_batch_begin(comm, &call, &gpu_comm->batch);
}

/* Continues the all-gather under way, if there is one. */
static int continue_exchange(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    bool is_under_way = gpu_comm->batch != NULL;

    TUTTI_TRY(tutti_batch_continue(&gpu_comm->batch));
    if (is_under_way)
        tutti_cuda_take_messages(gpu_comm->gpu, gpu_comm->messages);
    return TUTTI_OK;
}

/* Check the other ranks, because kernels that wait for another rank's kernels do not notice that
 * the rank has died or given up. */
static int check_others(struct tutti_comm *comm)
{
    TUTTI_TRY(tutti_fabric_find_abort(comm->fabric));
    return tutti_fabric_find_death(comm->fabric);
}

/* Runs on the thread of the proxy. */
static void fail_network(void *context, int rc, const char *message)
{
    struct tutti_comm *comm = context;

    /* After tuttiCommFinalize no rank needs the others. */
    if (tutti_comm_state(comm) == TUTTI_COMM_FINALIZED)
        return;
    tutti_log_enter(&comm->scope);
    tutti_comm_fail(comm, rc, message);
}

int tutti_gpu_comm_form(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    int rc;

    TUTTI_TRY(tutti_gpu_plan_form(comm));
    TUTTI_TRY(tutti_gpu_network_form(comm));
    if (gpu_comm->messages == NULL) {
        const struct tutti_cuda_network network = {
            .fabric = gpu_comm->network.fabric, .fail = fail_network, .context = comm};

        gpu_comm->messages = malloc((size_t)comm->nranks * TUTTI_CUDA_MESSAGE_BYTES);
        if (gpu_comm->messages == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the GPUs of %d ranks",
                              comm->nranks);
        tutti_cuda_prepare(
            gpu_comm->gpu, comm->secret,
            tutti_fabric_is_one_domain(comm->fabric) ? tutti_fabric_domain(comm->fabric) : NULL,
            &network, tutti_gpu_plan_nvlinked(comm));
    }
    for (;;) {
        TUTTI_TRY(continue_exchange(comm));
        rc = tutti_cuda_form(gpu_comm->gpu);
        if (rc == TUTTI_AGAIN)
            TUTTI_TRY(check_others(comm));
        if (rc != TUTTI_CUDA_EXCHANGE)
            break;
        TUTTI_TRY(begin_exchange(comm));
    }
    if (rc != TUTTI_OK)
        return rc;
    gpu_comm->has_domain = tutti_cuda_has_domain(gpu_comm->gpu);
    if (!gpu_comm->has_domain)
        tutti_gpu_network_fini(gpu_comm);
    free(gpu_comm->messages);
    gpu_comm->messages = NULL;
    return tutti_gpu_plan_fill_view(comm);
}

/* ---- the end --------------------------------------------------------------------------------- */

void tutti_gpu_comm_drain(struct tutti_comm *comm)
{
    if (comm->gpu == NULL)
        return;
    tutti_gpu_wait(comm);
    tutti_gpu_watch_end(comm);
}

void tutti_gpu_comm_free(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;

    if (gpu_comm == NULL)
        return;
    if (gpu_comm->gpu != NULL) {
        tutti_gpu_comm_drain(comm);
        tutti_cuda_end_network(gpu_comm->gpu, tutti_comm_failure(comm) == TUTTI_OK);
        tutti_gpu_stage_fini(comm);
        tutti_gpu_programs_fini(comm);
    }
    tutti_batch_release(gpu_comm->batch);
    tutti_gpu_plan_fini(&gpu_comm->plan);
    free(gpu_comm->messages);
    free(gpu_comm->sequences);
    tutti_cuda_destroy(gpu_comm->gpu, gpu_comm->is_stuck);
    tutti_gpu_network_fini(gpu_comm);
    pthread_cond_destroy(&gpu_comm->wake);
    pthread_mutex_destroy(&gpu_comm->lock);
    free(gpu_comm);
    comm->gpu = NULL;
}
