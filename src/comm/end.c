/* SPDX-License-Identifier: Apache-2.0
 * Public functions that end a communicator, and those that query it. */
#include "base/system.h"
#include "gpu/comm_gpu.h"
#include "queue/group.h"

#include <sched.h>
#include <stdio.h>

/* Waiting threads first yield this often, and then sleep this long between two looks. */
enum { EAGER_LOOKS = 100, PAUSE_NS = 200000 };

/* Waits until every issued operation is complete, also those on streams. */
static void drain(struct tutti_comm *comm)
{
    for (uint32_t looks = 0;
         /* acquire: pairs with the releases of the threads that finish and issue batches */
         tutti_load_acquire(&comm->turn) != tutti_load_acquire(&comm->next_ticket); looks++) {
        if (looks < EAGER_LOOKS)
            sched_yield();
        else
            tutti_pause_ns(PAUSE_NS);
    }
}

static int finalize(struct tutti_comm *comm)
{
    struct tutti_call call;

    TUTTI_TRY(tutti_group_check_unused(comm, "tuttiCommFinalize"));
    if (comm->gpu != NULL)
        TUTTI_TRY(tutti_gpu_wait(comm));
    tutti_call_of_bytes(TUTTI_BARRIER, TUTTI_FOR_FINALIZE, NULL, NULL, 0, &call);
    TUTTI_TRY(tutti_batch_run_now(comm, &call, NULL));
    return tutti_comm_set_state(comm, TUTTI_COMM_FINALIZED);
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t handle)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, "tuttiCommFinalize", &comm);

    if (rc == TUTTI_OK) {
        rc = finalize(comm);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}

tuttiResult_t tuttiCommDestroy(tuttiComm_t handle)
{
    struct tutti_comm *comm;
    const char **pass;
    int rc;

    if (handle == NULL)
        return tuttiSuccess;
    rc = tutti_handle_enter(handle, "tuttiCommDestroy", &comm);
    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    rc = tutti_group_check_unused(comm, "tuttiCommDestroy");
    if (rc != TUTTI_OK) {
        tutti_comm_leave(comm);
        return tutti_public_result(rc);
    }
    drain(comm);
    tutti_gpu_comm_drain(comm);
    tutti_comm_report_end(comm);
    pass = comm->pass;
    tutti_handle_close(handle);
    tutti_comm_free(comm);
    tutti_gate_leave(pass);
    tutti_handle_release(handle);
    return tutti_public_result(TUTTI_OK);
}

tuttiResult_t tuttiCommAbort(tuttiComm_t handle)
{
    char message[TUTTI_MESSAGE_BYTES];
    struct tutti_comm *comm;
    int rc = tutti_handle_visit(handle, "tuttiCommAbort", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    snprintf(message, sizeof message, "rank %d called tuttiCommAbort", comm->rank);
    tutti_comm_fail(comm, TUTTI_ERR_USAGE, message);
    tutti_handle_unvisit(handle);
    return tutti_public_result(TUTTI_OK);
}

int tutti_comm_set_timeout(struct tutti_comm *comm, const char *function, int timeout_ms)
{
    if (timeout_ms < 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: timeoutMs %d on rank %d is negative; 0 means no "
                          "deadline", function, timeout_ms, comm->rank);
    tutti_store_relaxed(&comm->timeout_ms, timeout_ms);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommSetTimeout(tuttiComm_t handle, int timeoutMs)
{
    static const char *const function = "tuttiCommSetTimeout";
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, function, &comm);

    if (rc == TUTTI_OK) {
        rc = tutti_comm_set_timeout(comm, function, timeoutMs);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}

/* Begins a visit whose result goes to `out`, which messages call `name`. */
static int query(const char *function, tuttiComm_t handle, const void *out, const char *name,
                 struct tutti_comm **ret_comm)
{
    struct tutti_comm *comm;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_handle_visit(handle, function, &comm));
    if (out == NULL) {
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s is NULL on rank %d", function, name,
                        comm->rank);
        tutti_handle_unvisit(handle);
        return rc;
    }
    *ret_comm = comm;
    return TUTTI_OK;
}

tuttiResult_t tuttiCommCount(tuttiComm_t handle, int *count)
{
    struct tutti_comm *comm;
    int rc = query("tuttiCommCount", handle, count, "count", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    *count = comm->nranks;
    tutti_handle_unvisit(handle);
    return tutti_public_result(TUTTI_OK);
}

tuttiResult_t tuttiCommUserRank(tuttiComm_t handle, int *rank)
{
    struct tutti_comm *comm;
    int rc = query("tuttiCommUserRank", handle, rank, "rank", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    *rank = comm->rank;
    tutti_handle_unvisit(handle);
    return tutti_public_result(TUTTI_OK);
}

/* A non-blocking initialization progresses in the thread that queries it. A second thread that
 * queries at the same time gets TUTTI_AGAIN. */
static int go_on_forming(struct tutti_comm *comm, const char *function)
{
    const char **pass = tutti_comm_try_enter(comm, function);
    int rc = TUTTI_AGAIN;

    if (pass == NULL)
        return rc;
    if (tutti_comm_state(comm) == TUTTI_COMM_FORMING)
        rc = tutti_comm_form(comm);
    else
        rc = tutti_comm_error(comm);
    tutti_gate_leave(pass);
    return rc;
}

tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t handle, tuttiResult_t *asyncError)
{
    const char *function = "tuttiCommGetAsyncError";
    struct tutti_comm *comm;
    int rc = query(function, handle, asyncError, "asyncError", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    rc = tutti_comm_error(comm);
    if (rc == TUTTI_OK && !comm->is_blocking && tutti_comm_state(comm) == TUTTI_COMM_FORMING)
        rc = go_on_forming(comm, function);
    if (rc == TUTTI_OK && tutti_comm_state(comm) == TUTTI_COMM_READY) {
        rc = tutti_fabric_find_abort(comm->fabric);
        /* Errors in replayed CUDA graphs are known only to their kernels. */
        if (rc == TUTTI_OK && comm->gpu != NULL)
            rc = tutti_cuda_check(comm->gpu->gpu);
        rc = rc == TUTTI_AGAIN ? TUTTI_OK : rc; /* kernels still run */
        if (rc != TUTTI_OK)
            tutti_comm_fail(comm, rc, tutti_message_last());
    }
    tutti_handle_unvisit(handle);
    *asyncError = tutti_public_result(rc);
    return tutti_public_result(TUTTI_OK);
}

static int measure(struct tutti_comm *comm, tuttiMemStats_t *stats)
{
    struct tutti_fabric_usage usage = {.private_bytes = 0};
    tuttiMemStats_t known = {.size = sizeof known};

    if (stats == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommMemStats: stats is NULL on rank %d",
                          comm->rank);
    TUTTI_TRY(
        tutti_public_check_size("tuttiCommMemStats", "stats", "tuttiMemStats_t", stats->size));
    tutti_fabric_usage(comm->fabric, &usage);
    known.privateBytes = sizeof *comm + usage.private_bytes;
    if (comm->cache != NULL) /* the engine was started (form.c) */
        known.privateBytes += tutti_engine_bytes(&comm->engine) +
                              tutti_numbering_bytes(&comm->numbering) +
                              tutti_cache_bytes(comm->cache) + tutti_choices_bytes(comm) +
                              tutti_schedules_bytes(comm->schedules);
    known.sharedBytes = usage.shared_bytes;
    known.sharedReservedBytes = usage.reserved_bytes;
    if (comm->gpu != NULL) {
        known.privateBytes += tutti_gpu_plan_bytes(&comm->gpu->plan);
        known.deviceBytes = tutti_cuda_bytes(comm->gpu->gpu);
    }
    known.connections = usage.connections;
    known.sockets = usage.sockets;
    tutti_public_copy(&known, sizeof known, stats);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommMemStats(tuttiComm_t handle, tuttiMemStats_t *stats)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter(handle, "tuttiCommMemStats", &comm);

    if (rc == TUTTI_OK) {
        rc = measure(comm, stats);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}
