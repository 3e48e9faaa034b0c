/* SPDX-License-Identifier: Apache-2.0
 * Calls on device memory that go through the host.
 *
 *     the caller's stream   copy out -> host function -> wait for a word -> copy in
 *                                           |                ^
 *     the stage's thread                    run the calls ---'
 *
 * The host function hands the calls, as one batch, to the communicator's own host stream, and
 * returns. So no thread of the driver or of the caller has to wait. The word is set even if the
 * calls fail. The caller's stream then goes on, and the communicator reports the error. */
#include "gpu/stage.h"

#include "base/round.h"

#include <stdlib.h>
#include <string.h>

/* ---- where staged buffers are ---------------------------------------------------------------- */

/* Each staged buffer begins on a cache line. */
static size_t padded(size_t bytes)
{
    return tutti_round_up(bytes, TUTTI_CACHE_LINE);
}

/* Returns the staged bytes of a call: its buffers, and a cache line for a scalar that is read only
 * when the call runs. */
static size_t staged_bytes(size_t input_bytes, size_t output_bytes)
{
    return padded(input_bytes) + padded(output_bytes) + TUTTI_CACHE_LINE;
}

/* True if the call's scalar is read only when the call runs. */
static bool is_late(const struct tutti_call *call)
{
    return call->is_premultiplied && call->scalar_address != NULL;
}

/* ---- copies on the stream -------------------------------------------------------------------- */

static int copy(struct tutti_comm *comm, const void *to, const void *from, size_t bytes,
                struct tutti_cu_stream *stream)
{
    int code;

    if (bytes == 0)
        return TUTTI_OK;
    code = comm->cuda->copy_async((tutti_cu_address)(uintptr_t)to,
                                  (tutti_cu_address)(uintptr_t)from, bytes, stream);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(comm->gpu->gpu, code,
                                                      "copying between the device and the host");
}

/* Copies the result to the device. In a v-form the memory between the blocks must stay as it is. */
static int copy_in(struct tutti_comm *comm, const struct tutti_call *call, const uint8_t *staged,
                   size_t bytes, struct tutti_cu_stream *stream)
{
    size_t size = tutti_type_size(call->type), at = 0;

    if (call->output_counts == NULL || call->output_displs == NULL ||
        !tutti_output_is_per_rank(call->collective))
        return copy(comm, call->output, staged, bytes, stream);
    for (int rank = 0; rank < comm->nranks; rank++) {
        at = call->output_displs[rank] * size;
        TUTTI_TRY(copy(comm, (uint8_t *)call->output + at, staged + at,
                       call->output_counts[rank] * size, stream));
    }
    return TUTTI_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Hands the batch to the communicator's host stream. */
static void push(struct tutti_stage *stage, struct tutti_batch *batch)
{
    if (stage->is_issued_late)
        tutti_batch_issue(batch);
    batch->streams_missing = 1;
    tutti_stream_push(stage->comm->gpu->stage, &batch->stream_item, batch, true);
}

/* Pushes the batch once, either for the driver or for tutti_gpu_stage_give_up. */
static void push_once(struct tutti_stage *stage)
{
    /* acquire: pairs with the release in run() */
    struct tutti_batch *batch = tutti_exchange(&stage->batch, NULL);

    if (batch != NULL)
        push(stage, batch);
}

/* Runs on a thread of the driver, where calls of the CUDA API are forbidden. */
static void hand_over(void *argument)
{
    struct tutti_stage *stage = argument;
    struct tutti_batch *batch;

    if (stage->pattern == NULL) {
        push_once(stage);
        return;
    }
    if (tutti_batch_copy(stage->pattern, &batch) != TUTTI_OK) {
        tutti_comm_fail(stage->comm, TUTTI_ERR_SYSTEM, tutti_message_last());
        /* release: pairs with the wait of the stream for this value, in run() */
        tutti_store_release(stage->word, 1);
        return;
    }
    /* release: pairs with the same wait, which must not see the 1 of the run before */
    tutti_store_release(stage->word, 0);
    push(stage, batch);
}

void tutti_gpu_stage_give_up(struct tutti_comm *comm)
{
    pthread_mutex_lock(&comm->gpu->lock);
    for (struct tutti_stage *stage = comm->gpu->stages; stage != NULL; stage = stage->next)
        push_once(stage);
    pthread_mutex_unlock(&comm->gpu->lock);
}

/* Adds the calls, on staged buffers, to the batch. Enqueues the copies of the inputs to the
 * host. */
static int stage_out(struct tutti_comm *comm, struct tutti_stage *stage,
                     const struct tutti_call *const *calls, size_t count,
                     struct tutti_cu_stream *stream, struct tutti_batch *batch)
{
    uint8_t *at = stage->bytes + TUTTI_STAGE_HEAD_BYTES;

    for (size_t i = 0; i < count; i++) {
        struct tutti_call staged = *calls[i];
        size_t input_bytes, output_bytes;

        tutti_call_buffer_bytes(calls[i], comm->nranks, comm->rank, &input_bytes, &output_bytes);
        staged.input = at;
        staged.output = at + padded(input_bytes);
        TUTTI_TRY(copy(comm, at, calls[i]->input, input_bytes, stream));
        at += padded(input_bytes) + padded(output_bytes);
        if (is_late(calls[i])) {
            staged.scalar_address = at;
            TUTTI_TRY(copy(comm, at, calls[i]->scalar_address, tutti_type_size(calls[i]->type),
                           stream));
        }
        at += TUTTI_CACHE_LINE;
        TUTTI_TRY(tutti_batch_add(batch, &staged));
    }
    return TUTTI_OK;
}

/* Enqueues the copies of the results to the device. */
static int stage_in(struct tutti_comm *comm, const struct tutti_stage *stage,
                    const struct tutti_call *const *calls, size_t count,
                    struct tutti_cu_stream *stream)
{
    const uint8_t *at = stage->bytes + TUTTI_STAGE_HEAD_BYTES;

    for (size_t i = 0; i < count; i++) {
        size_t input_bytes, output_bytes;

        tutti_call_buffer_bytes(calls[i], comm->nranks, comm->rank, &input_bytes, &output_bytes);
        TUTTI_TRY(copy_in(comm, calls[i], at + padded(input_bytes), output_bytes, stream));
        at += staged_bytes(input_bytes, output_bytes);
    }
    return TUTTI_OK;
}

/* Enqueues the host function and the wait for its calls. */
static int run(struct tutti_comm *comm, struct tutti_stage *stage, struct tutti_batch *batch,
               struct tutti_cu_stream *stream)
{
    const struct tutti_cu_driver *cuda = comm->cuda;
    tutti_cu_address word;
    int code;

    batch->done_word = stage->word;
    if (stage->is_captured)
        stage->pattern = batch;
    else
        tutti_store_release(&stage->batch, batch); /* pairs with the acquire in push_once */
    code = cuda->host_device_address(&word, stage->word, 0);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->host_function(stream, hand_over, stage);
    if (code == TUTTI_CU_SUCCESS)
        code = cuda->wait_value(stream, word, 1, TUTTI_CU_WAIT_EQUAL);
    if (code == TUTTI_CU_SUCCESS)
        return TUTTI_OK;
    return tutti_cuda_fail(comm->gpu->gpu, code, "a call through the host");
}

/* Records that the stage is in use until the stream has passed this point. Also needed after an
 * error, because some of the work may have been enqueued. */
static int note(struct tutti_comm *comm, struct tutti_stage *stage, struct tutti_cu_stream *stream)
{
    int code = comm->cuda->event_record(stage->event, stream);

    if (code != TUTTI_CU_SUCCESS)
        return tutti_cuda_fail(comm->gpu->gpu, code, "an event");
    stage->is_recorded = true;
    TUTTI_TRY(tutti_cuda_set_last(comm->gpu->gpu, stream));
    return tutti_gpu_watch(comm);
}

static int stage_all(struct tutti_comm *comm, const struct tutti_call *const *calls, size_t count,
                     struct tutti_cu_stream *stream, bool is_captured)
{
    struct tutti_stage *stage;
    struct tutti_batch *batch;
    size_t bytes = 0;
    int rc, noted = TUTTI_OK;

    if (comm->cuda->wait_value == NULL)
        return tutti_fail(TUTTI_ERR_DEVICE, "rank %d: this CUDA driver lacks "
                          "cuStreamWaitValue32, by which streams wait for the host; a newer one "
                          "has it", comm->rank);
    for (size_t i = 0; i < count; i++) {
        size_t input_bytes, output_bytes;

        tutti_call_buffer_bytes(calls[i], comm->nranks, comm->rank, &input_bytes, &output_bytes);
        bytes += staged_bytes(input_bytes, output_bytes);
    }
    if (comm->gpu->stage == NULL && tuttiHostStreamCreate(&comm->gpu->stage) != tuttiSuccess)
        return TUTTI_ERR_SYSTEM;
    TUTTI_TRY(tutti_stage_take(comm, bytes, is_captured, &stage));
    /* Host functions of different streams run in any order, but calls must keep theirs. */
    if (!is_captured)
        TUTTI_TRY(tutti_cuda_wait_for_last(comm->gpu->gpu, stream));
    TUTTI_TRY(tutti_batch_create(comm, &batch));
    rc = stage_out(comm, stage, calls, count, stream, batch);
    if (rc != TUTTI_OK) {
        tutti_batch_release(batch);
        if (!is_captured)
            note(comm, stage, stream);
        return rc;
    }
    /* This library learns of the calls of a replayed graph only when their host function runs. So
     * once a graph may exist, every call takes its ticket in the host function, in stream order. */
    comm->gpu->has_captured = comm->gpu->has_captured || is_captured;
    stage->is_issued_late = comm->gpu->has_captured;
    if (!stage->is_issued_late)
        tutti_batch_issue(batch);
    rc = run(comm, stage, batch, stream);
    if (rc == TUTTI_OK)
        rc = stage_in(comm, stage, calls, count, stream);
    if (!is_captured)
        noted = note(comm, stage, stream);
    return rc != TUTTI_OK ? rc : noted;
}

int tutti_gpu_stage_calls(struct tutti_comm *comm, const struct tutti_call *const *calls,
                          size_t count, struct tutti_cu_stream *stream, bool is_captured)
{
    int rc = stage_all(comm, calls, count, stream, is_captured);

    if (rc == TUTTI_OK || rc == TUTTI_ERR_ARGUMENT)
        return rc;
    /* A batch that has a ticket must take its turn and fail, or later batches wait forever. */
    tutti_comm_fail(comm, rc, tutti_message_last());
    tutti_gpu_stage_give_up(comm);
    return rc;
}
