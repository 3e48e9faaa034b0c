/* SPDX-License-Identifier: Apache-2.0
 * Finds out whether the buffers of a call are in device memory. Enqueues calls on device memory,
 * alone or in groups. */
#include "gpu/comm_gpu.h"

#include "base/array.h"
#include "base/clock.h"
#include "queue/stream.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- where buffers are ----------------------------------------------------------------------- */

bool tutti_gpu_is_device_memory(const struct tutti_comm *comm, const void *buffer)
{
    const struct tutti_cu_driver *cuda = comm->cuda;
    unsigned type = 0; /* stays 0 for memory that the driver does not know */
    int is_managed = 0;
    int attributes[] = {TUTTI_CU_POINTER_MEMORY_TYPE, TUTTI_CU_POINTER_IS_MANAGED};
    void *values[] = {&type, &is_managed};

    return cuda->pointer_attributes(2, attributes, values,
                                    (tutti_cu_address)(uintptr_t)buffer) == TUTTI_CU_SUCCESS &&
           (type == TUTTI_CU_MEMORY_DEVICE || is_managed);
}

/* True if a call without any buffer runs on the GPU. The stream of the call decides, or else the
 * last call with a buffer. A rank may have no data in an all-to-all, for example, and must still
 * run the call where the other ranks run it. */
static bool is_blind_call_on_gpu(const struct tutti_comm *comm, tuttiStream_t stream)
{
    if (comm->gpu == NULL)
        return false;
    if (stream != NULL)
        return !tutti_stream_is_ours(stream);
    return comm->gpu->has_domain && !tutti_load_relaxed(&comm->gpu->calls_on_host);
}

/* Remembers where the call runs, for later calls without a buffer. Writes only if that changes. */
static void remember_side(const struct tutti_comm *comm, bool is_on_gpu)
{
    uint8_t on_host = !is_on_gpu;

    if (comm->gpu != NULL && tutti_load_relaxed(&comm->gpu->calls_on_host) != on_host)
        tutti_store_relaxed(&comm->gpu->calls_on_host, on_host);
}

int tutti_gpu_classify_call(const struct tutti_comm *comm, const char *function, const void *send,
                            size_t send_bytes, const void *recv, size_t recv_bytes,
                            tuttiStream_t stream, bool *ret_is_on_gpu)
{
    bool is_sent = send != NULL && tutti_gpu_is_device_memory(comm, send);
    bool is_received = recv == send ? is_sent
                                    : recv != NULL && tutti_gpu_is_device_memory(comm, recv);

    if (send_bytes > 0 && recv_bytes > 0 && is_sent != is_received)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s %p on rank %d is in device memory, the other "
                          "buffer is not; put both in the memory of one side", function,
                          is_sent ? "sendbuff" : "recvbuff", is_sent ? send : recv, comm->rank);
    *ret_is_on_gpu = (is_sent && (send_bytes > 0 || recv_bytes == 0)) ||
                     (is_received && (recv_bytes > 0 || send_bytes == 0));
    if (send == NULL && recv == NULL)
        *ret_is_on_gpu = is_blind_call_on_gpu(comm, stream);
    else
        remember_side(comm, *ret_is_on_gpu);
    if (*ret_is_on_gpu && comm->gpu == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: the buffers are in device memory, but rank %d "
                          "is on the CPU: no CUDA context was current when its communicator was "
                          "made; set config.device", function, comm->rank);
    if (*ret_is_on_gpu && stream != NULL && tutti_stream_is_ours(stream))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: the buffers of rank %d are in device memory, "
                          "but the stream is one for host memory; pass a CUDA stream, or NULL",
                          function, comm->rank);
    return TUTTI_OK;
}

int tutti_gpu_check_scalar(const struct tutti_comm *comm, const char *function,
                           const struct tutti_call *call)
{
    unsigned type = 0; /* stays 0 for memory that the driver does not know */
    int attributes[] = {TUTTI_CU_POINTER_MEMORY_TYPE};
    void *values[] = {&type};

    if (!call->is_premultiplied || call->scalar_address == NULL ||
        (comm->cuda->pointer_attributes(1, attributes, values,
                                        (tutti_cu_address)(uintptr_t)call->scalar_address) ==
             TUTTI_CU_SUCCESS && type != 0))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: the buffers of rank %d are in device memory, but "
                      "the scalar of its operation is in host memory that the device does not see; "
                      "put it into device memory, or make the operation with "
                      "tuttiScalarHostImmediate", function, comm->rank);
}

/* ---- enqueueing ------------------------------------------------------------------------------ */

struct entry {
    struct tutti_call call;     /* a copy that the part owns */
    struct tutti_header header; /* its number, once it is launched */
    tuttiStream_t stream;
};

struct tutti_gpu_part {
    struct tutti_comm *comm;
    struct entry *entries;
    size_t count;
    uint32_t capacity;
    struct tutti_gpu_part *next;
};

static uint64_t timeout_ns(const struct tutti_comm *comm)
{
    return (uint64_t)tutti_comm_timeout_ms(comm) * TUTTI_NS_PER_MS;
}

/* Finds the stream on which a call runs. If `stream` is NULL, the call runs on the rank's own
 * stream, which no other stream waits for. That stream first waits for the thread's default
 * stream. */
static int find_stream(const struct tutti_comm *comm, tuttiStream_t stream,
                       struct tutti_cu_stream **ret_stream)
{
    if (stream == NULL) {
        TUTTI_TRY(tutti_cuda_await_default(comm->gpu->gpu));
        return tutti_cuda_stream(comm->gpu->gpu, ret_stream);
    }
    *ret_stream = (struct tutti_cu_stream *)stream;
    return TUTTI_OK;
}

static int launch(struct tutti_comm *comm, const struct tutti_cuda_item *items, size_t count,
                  struct tutti_cu_stream *stream, bool is_captured)
{
    int rc = tutti_cuda_run(comm->gpu->gpu, items, count, stream, is_captured, timeout_ns(comm));

    if (rc == TUTTI_OK)
        rc = tutti_gpu_watch(comm);
    if (rc != TUTTI_OK && rc != TUTTI_ERR_ARGUMENT)
        tutti_comm_fail(comm, rc, tutti_message_last());
    return rc;
}

/* Gives a call its number. Collectives share one sequence of numbers. Messages have a sequence for
 * each peer and direction. */
static struct tutti_header number(struct tutti_comm *comm, const struct tutti_call *call)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    struct tutti_header header = {.signature = call->signature};
    size_t at = (size_t)call->root + (call->kind == TUTTI_CALL_SEND ? (size_t)comm->nranks : 0);

    if (!tutti_call_is_message(call)) {
        if (tutti_call_is_vector(call) && !tutti_call_has_pairs(call))
            tutti_cuda_show_counts(gpu_comm->gpu, gpu_comm->history.sequence + 1,
                                   tutti_call_shared_counts(call));
        return *tutti_call_history_add(&gpu_comm->history, &call->signature);
    }
    header.sequence = ++gpu_comm->sequences[at];
    return header;
}

static int find_program(struct tutti_comm *comm, bool is_captured, struct tutti_cuda_item *item)
{
    int rc = tutti_gpu_programs_find(comm, is_captured, item);

    return rc == TUTTI_OK ? TUTTI_OK : tutti_comm_fail(comm, rc, tutti_message_last());
}

/* Enqueues one call. The GPU's context must be current. A stream that cannot be used is refused
 * before the call gets a number. Otherwise this rank would have used a number that its peers have
 * not used. */
static int enqueue(struct tutti_comm *comm, const struct tutti_call *call,
                   struct tutti_cu_stream *stream)
{
    struct tutti_cuda_item item = {.call = call};
    struct tutti_header header;
    bool is_captured;

    TUTTI_TRY(tutti_cuda_is_capturing(comm->gpu->gpu, stream, &is_captured));
    if (!comm->gpu->has_domain)
        return tutti_gpu_stage_calls(comm, &call, 1, stream, is_captured);
    TUTTI_TRY(find_program(comm, is_captured, &item));
    header = number(comm, call);
    item.header = &header;
    return launch(comm, &item, 1, stream, is_captured);
}

int tutti_gpu_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream)
{
    struct tutti_cu_stream *on;
    int rc, mode;

    TUTTI_TRY(find_stream(comm, stream, &on));
    TUTTI_TRY(tutti_cuda_enter_relaxed(comm->gpu->gpu, &mode));
    rc = enqueue(comm, call, on);
    tutti_cuda_leave_relaxed(comm->gpu->gpu, mode);
    return rc == TUTTI_OK && stream == NULL ? tutti_gpu_wait(comm) : rc;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Finds the part of `comm`, which is added to the list if there is none. */
static int part_of(struct tutti_gpu_part **parts, struct tutti_comm *comm,
                   struct tutti_gpu_part **ret_part)
{
    while (*parts != NULL && (*parts)->comm != comm)
        parts = &(*parts)->next;
    if (*parts == NULL) {
        *parts = calloc(1, sizeof **parts);
        if (*parts == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group");
        (*parts)->comm = comm;
    }
    *ret_part = *parts;
    return TUTTI_OK;
}

int tutti_gpu_part_add(struct tutti_gpu_part **parts, struct tutti_comm *comm,
                       const struct tutti_call *call, tuttiStream_t stream)
{
    struct entry entry = {.stream = stream};
    struct tutti_gpu_part *part;

    TUTTI_TRY(part_of(parts, comm, &part));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(part->entries, part->count, part->capacity, "calls of a group"));
    TUTTI_TRY(tutti_call_copy(call, comm->nranks, &entry.call));
    part->entries[part->count++] = entry;
    return TUTTI_OK;
}

const struct tutti_call *tutti_gpu_part_call(const struct tutti_gpu_part *parts,
                                             const struct tutti_comm *comm, size_t index)
{
    while (parts != NULL && parts->comm != comm)
        parts = parts->next;
    return parts != NULL && index < parts->count ? &parts->entries[index].call : NULL;
}

/* Fills in the item of entry `at`, whose call gets its number. */
static int fill_item(struct tutti_gpu_part *part, size_t at, bool is_captured,
                     struct tutti_cuda_item *item)
{
    struct entry *entry = &part->entries[at];

    *item = (struct tutti_cuda_item){.call = &entry->call, .header = &entry->header};
    TUTTI_TRY(find_program(part->comm, is_captured, item));
    entry->header = number(part->comm, &entry->call);
    return TUTTI_OK;
}

static int launch_all(struct tutti_gpu_part *part, struct tutti_cu_stream *stream, bool is_captured)
{
    struct tutti_cuda_item *items = malloc(part->count * sizeof *items);
    int rc = TUTTI_OK;

    if (items == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu calls", part->count);
    for (size_t i = 0; rc == TUTTI_OK && i < part->count; i++)
        rc = fill_item(part, i, is_captured, &items[i]);
    if (rc == TUTTI_OK)
        rc = launch(part->comm, items, part->count, stream, is_captured);
    free(items);
    return rc;
}

static int stage_all(struct tutti_gpu_part *part, struct tutti_cu_stream *stream, bool is_captured)
{
    const struct tutti_call **calls = malloc(part->count * sizeof *calls);
    int rc;

    if (calls == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu calls", part->count);
    for (size_t i = 0; i < part->count; i++)
        calls[i] = &part->entries[i].call;
    rc = tutti_gpu_stage_calls(part->comm, calls, part->count, stream, is_captured);
    free(calls);
    return rc;
}

/* Enqueues all calls of a group on the stream of the first call. That stream first waits for the
 * other streams, and the other streams then wait for that stream. */
static int enqueue_all(struct tutti_gpu_part *part, struct tutti_cu_stream *const *streams)
{
    struct tutti_cuda_gpu *gpu = part->comm->gpu->gpu;
    bool is_captured;

    TUTTI_TRY(tutti_cuda_is_capturing(gpu, streams[0], &is_captured));
    for (size_t i = 1; i < part->count; i++)
        if (streams[i] != streams[i - 1])
            TUTTI_TRY(tutti_cuda_wait_for_stream(gpu, streams[0], streams[i]));
    TUTTI_TRY(part->comm->gpu->has_domain ? launch_all(part, streams[0], is_captured)
                                          : stage_all(part, streams[0], is_captured));
    for (size_t i = 1; i < part->count; i++)
        if (streams[i] != streams[i - 1])
            TUTTI_TRY(tutti_cuda_wait_for_stream(gpu, streams[i], streams[0]));
    return TUTTI_OK;
}

static int find_streams(struct tutti_gpu_part *part, struct tutti_cu_stream **streams)
{
    const struct entry *entries = part->entries;

    for (size_t i = 0; i < part->count; i++) {
        if (i > 0 && entries[i].stream == entries[i - 1].stream)
            streams[i] = streams[i - 1];
        else
            TUTTI_TRY(find_stream(part->comm, entries[i].stream, &streams[i]));
    }
    return TUTTI_OK;
}

static int launch_part(struct tutti_gpu_part *part)
{
    struct tutti_cu_stream **streams = malloc(part->count * sizeof *streams);
    int rc = TUTTI_OK, mode;

    if (streams == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu calls", part->count);
    TUTTI_TRY_OR(out, rc, find_streams(part, streams));
    TUTTI_TRY_OR(out, rc, tutti_cuda_enter_relaxed(part->comm->gpu->gpu, &mode));
    rc = enqueue_all(part, streams);
    tutti_cuda_leave_relaxed(part->comm->gpu->gpu, mode);
out:
    free(streams);
    return rc;
}

/* After a failure the other parts are still launched, because their peers would otherwise wait. */
int tutti_gpu_parts_launch(struct tutti_gpu_part *parts)
{
    char message[TUTTI_MESSAGE_BYTES];
    int first = TUTTI_OK;

    for (; parts != NULL; parts = parts->next) {
        int rc;

        tutti_log_enter(&parts->comm->scope);
        rc = launch_part(parts);
        if (rc == TUTTI_OK || first != TUTTI_OK)
            continue;
        first = rc;
        snprintf(message, sizeof message, "%s", tutti_message_last());
    }
    if (first != TUTTI_OK)
        tutti_message_set_last(message);
    return first;
}

int tutti_gpu_parts_wait(struct tutti_gpu_part *parts)
{
    int first = TUTTI_OK;

    for (; parts != NULL; parts = parts->next) {
        bool waits = false;
        int rc = TUTTI_OK;

        for (size_t i = 0; i < parts->count; i++)
            waits = waits || parts->entries[i].stream == NULL;
        tutti_log_enter(&parts->comm->scope);
        if (waits)
            rc = tutti_gpu_wait(parts->comm);
        first = first != TUTTI_OK ? first : rc;
    }
    return first;
}

void tutti_gpu_parts_free(struct tutti_gpu_part *parts)
{
    while (parts != NULL) {
        struct tutti_gpu_part *next = parts->next;

        for (size_t i = 0; i < parts->count; i++)
            tutti_call_fini(&parts->entries[i].call);
        free(parts->entries);
        free(parts);
        parts = next;
    }
}
