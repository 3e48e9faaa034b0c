/* SPDX-License-Identifier: Apache-2.0
 * How a communicator ends, and what may be asked of it. */
#include "comm_gpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Wait until every issued operation is complete, also those on streams. */
static void drain(struct tutti_comm *comm)
{
    for (uint32_t passes = 0;
         tutti_load_acquire(&comm->turn) != tutti_load_acquire(&comm->next_ticket); passes++) {
        if (passes < 100)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static int finalize(tuttiComm_t handle)
{
    struct tutti_call call = {
        .kind = TUTTI_BARRIER, .collective = TUTTI_BARRIER,
        .signature = {.magic = TUTTI_SIGNATURE_MAGIC, .call = TUTTI_BARRIER, .op = TUTTI_OP_NONE,
                      .root = UINT16_MAX}};
    struct tutti_comm *comm;

    TUTTI_TRY(tutti_handle_ready(handle, "tuttiCommFinalize", &comm));
    if (comm->gpu != NULL)
        TUTTI_TRY(tutti_gpu_wait(comm));
    TUTTI_TRY(tutti_batch_run_now(comm, &call, NULL));
    tutti_store_release(&comm->state, TUTTI_COMM_FINALIZED);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t comm)
{
    return tutti_public(finalize(comm));
}

tuttiResult_t tuttiCommDestroy(tuttiComm_t handle)
{
    struct tutti_comm *comm;
    int rc;

    if (handle == NULL)
        return tuttiSuccess;
    rc = tutti_handle_get(handle, "tuttiCommDestroy", &comm);
    if (rc != TUTTI_OK)
        return tutti_public(rc);
    drain(comm);
    tutti_comm_gpu_drain(comm);
    tutti_handle_release(handle);
    tutti_comm_free(comm);
    return tuttiSuccess;
}

tuttiResult_t tuttiCommAbort(tuttiComm_t handle)
{
    char message[TUTTI_MESSAGE_BYTES];
    struct tutti_comm *comm;
    int rc = tutti_handle_get(handle, "tuttiCommAbort", &comm);

    if (rc != TUTTI_OK)
        return tutti_public(rc);
    snprintf(message, sizeof message, "rank %d called tuttiCommAbort", comm->rank);
    tutti_comm_fail(comm, TUTTI_ERR_USAGE, message);
    return tuttiSuccess;
}

static int query(const char *function, tuttiComm_t handle, const void *out, const char *name,
                 struct tutti_comm **ret_comm)
{
    TUTTI_TRY(tutti_handle_get(handle, function, ret_comm));
    if (out == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s is NULL on rank %d", function, name,
                          (*ret_comm)->rank);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommCount(tuttiComm_t handle, int *count)
{
    struct tutti_comm *comm;
    int rc = query("tuttiCommCount", handle, count, "count", &comm);

    if (rc == TUTTI_OK)
        *count = comm->nranks;
    return tutti_public(rc);
}

tuttiResult_t tuttiCommUserRank(tuttiComm_t handle, int *rank)
{
    struct tutti_comm *comm;
    int rc = query("tuttiCommUserRank", handle, rank, "rank", &comm);

    if (rc == TUTTI_OK)
        *rank = comm->rank;
    return tutti_public(rc);
}

tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t handle, tuttiResult_t *asyncError)
{
    struct tutti_comm *comm;
    int rc = query("tuttiCommGetAsyncError", handle, asyncError, "asyncError", &comm);

    if (rc != TUTTI_OK)
        return tutti_public(rc);
    rc = tutti_comm_error(comm);
    if (rc == TUTTI_OK && !comm->is_blocking &&
        tutti_load_acquire(&comm->state) == TUTTI_COMM_FORMING)
        rc = tutti_comm_form(comm);
    if (rc == TUTTI_OK && tutti_load_acquire(&comm->state) == TUTTI_COMM_READY) {
        rc = tutti_fabric_news(comm->fabric);
        /* Of graphs that are played only their kernels tell. */
        if (rc == TUTTI_OK && comm->gpu != NULL)
            rc = tutti_gpu_check(comm->gpu->gpu);
        rc = rc == TUTTI_AGAIN ? TUTTI_OK : rc;
        if (rc != TUTTI_OK)
            tutti_comm_fail(comm, rc, tutti_last_message());
    }
    *asyncError = tutti_public(rc);
    return tuttiSuccess;
}

tuttiResult_t tuttiCommMemStats(tuttiComm_t handle, tuttiMemStats_t *stats)
{
    struct tutti_fabric_usage usage = {.private_bytes = 0};
    tuttiMemStats_t known = {.size = sizeof known};
    struct tutti_comm *comm;
    int rc = query("tuttiCommMemStats", handle, stats, "stats", &comm);

    if (rc == TUTTI_OK && (stats->size < sizeof stats->size || stats->size > 4096))
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommMemStats: stats->size is %zu; set it to "
                        "sizeof(tuttiMemStats_t)", stats->size);
    if (rc != TUTTI_OK)
        return tutti_public(rc);
    tutti_fabric_usage(comm->fabric, &usage);
    known.privateBytes = sizeof *comm + usage.private_bytes;
    if (comm->cache != NULL)
        known.privateBytes += tutti_engine_bytes(&comm->engine) +
                              tutti_mailbox_bytes(&comm->mailbox) +
                              tutti_cache_bytes(comm->cache) + tutti_choices_bytes(comm) +
                              tutti_schedules_bytes(comm->schedules);
    known.sharedBytes = usage.shared_bytes;
    known.sharedReservedBytes = usage.reserved_bytes;
    if (comm->gpu != NULL)
        known.deviceBytes = tutti_gpu_bytes(comm->gpu->gpu);
    known.connections = usage.connections;
    known.sockets = usage.sockets;
    known.size = stats->size;
    memcpy(stats, &known, stats->size < sizeof known ? stats->size : sizeof known);
    return tuttiSuccess;
}
