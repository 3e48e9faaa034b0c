/* SPDX-License-Identifier: Apache-2.0
 * Knows the callers' streams: which stream a handle is, how many blocks run there at a time, and
 * which stream has the rank's last operation. */
#include "executor/cuda/private.h"

#include "base/atomic.h"
#include "base/result.h"

/* ---- facts ----------------------------------------------------------------------------------- */

/* Returns a number that no other stream of this process ever has; 0: none is known. An equal handle
 * does not prove that two streams are the same, because the first may have been destroyed. Handles
 * of default streams stand for several streams. */
static uint64_t number_of(const struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream)
{
    unsigned long long number = 0;

    if (gpu->cuda->stream_id == NULL || stream == NULL || stream == TUTTI_CU_STREAM_LEGACY ||
        stream == TUTTI_CU_STREAM_PER_THREAD ||
        gpu->cuda->stream_id(stream, &number) != TUTTI_CU_SUCCESS)
        return 0;
    return number;
}

/* Returns the number of multiprocessors if the stream belongs to a green context, which has only
 * some of the device. 0: it does not, or the driver is too old to have such contexts. */
static uint32_t green_multiprocessors(const struct tutti_cuda_gpu *gpu,
                                      struct tutti_cu_stream *stream)
{
    struct tutti_cu_green *green = NULL;
    struct tutti_cu_resource resource = {0};

    if (gpu->cuda->stream_green == NULL || gpu->cuda->green_resource == NULL ||
        gpu->cuda->stream_green(stream, &green) != TUTTI_CU_SUCCESS || green == NULL ||
        gpu->cuda->green_resource(green, &resource, TUTTI_CU_RESOURCE_MULTIPROCESSORS) !=
            TUTTI_CU_SUCCESS)
        return 0;
    return resource.multiprocessors;
}

/* All ranks of this process on the device may use streams of one green context. */
uint64_t tutti_cuda_stream_look(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream)
{
    const uint64_t number = number_of(gpu, stream);
    uint32_t multiprocessors, resident;

    if (number != 0 && number == gpu->stream.number)
        return number;
    multiprocessors = green_multiprocessors(gpu, stream);
    resident = multiprocessors * gpu->multiprocessor_blocks / gpu->nsharers;
    gpu->stream.number = number;
    gpu->stream.multiprocessors = multiprocessors;
    gpu->stream.blocks =
        multiprocessors == 0 || resident > gpu->blocks ? gpu->blocks : resident;
    return number;
}

int tutti_cuda_stream_is_small(const struct tutti_cuda_gpu *gpu,
                               const struct tutti_cu_stream *stream, uint32_t blocks)
{
    uint32_t wanted = blocks * gpu->nsharers;

    return tutti_fail(TUTTI_ERR_USAGE,
                      "rank %d, GPU %d: the stream %p belongs to a green context of %u "
                      "multiprocessors, where %u blocks of this rank run at a time, but the call "
                      "needs %u; use a stream with at least %u multiprocessors",
                      gpu->args.rank, gpu->args.device, (const void *)stream,
                      gpu->stream.multiprocessors, gpu->stream.blocks, blocks,
                      (wanted + gpu->multiprocessor_blocks - 1) / gpu->multiprocessor_blocks);
}

int tutti_cuda_is_capturing(const struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                            bool *ret_is_capturing)
{
    int status = TUTTI_CU_CAPTURE_NONE;
    int code = gpu->cuda->stream_is_capturing(stream, &status);

    if (code != TUTTI_CU_SUCCESS || status == TUTTI_CU_CAPTURE_INVALIDATED)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %d: the stream %p cannot be used: %s",
                          gpu->args.rank, (void *)stream,
                          code != TUTTI_CU_SUCCESS ? tutti_cu_error(gpu->cuda, code)
                                                   : "its capture was invalidated");
    *ret_is_capturing = status == TUTTI_CU_CAPTURE_ACTIVE;
    return TUTTI_OK;
}

/* ---- the order of streams -------------------------------------------------------------------- */

/* Epochs and FIFOs (device/cuda/core.cuh) require that the kernels of a rank run one after the
 * other. On the stream of the last operation they do so anyway. */
int tutti_cuda_stream_wait_for_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                                    uint64_t number)
{
    int code;

    if (!gpu->has_launched || (number != 0 && number == gpu->last_stream))
        return TUTTI_OK;
    code = gpu->cuda->stream_wait(stream, gpu->last_event, 0);
    return code == TUTTI_CU_SUCCESS
               ? TUTTI_OK
               : tutti_cuda_fail(gpu, code, "making a stream wait for another");
}

int tutti_cuda_wait_for_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream)
{
    return tutti_cuda_stream_wait_for_last(gpu, stream, number_of(gpu, stream));
}

int tutti_cuda_wait_for_stream(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                               struct tutti_cu_stream *other)
{
    int code;

    if (stream == other) /* both streams exist, so equal handles are the same stream */
        return TUTTI_OK;
    code = gpu->cuda->event_record(gpu->order_event, other);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->stream_wait(stream, gpu->order_event, 0);
    return code == TUTTI_CU_SUCCESS
               ? TUTTI_OK
               : tutti_cuda_fail(gpu, code, "making a stream wait for another");
}

int tutti_cuda_stream_mark_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                                uint64_t number)
{
    int code = gpu->cuda->event_record(gpu->last_event, stream);

    gpu->last_stream = code == TUTTI_CU_SUCCESS ? number : 0;
    if (code == TUTTI_CU_SUCCESS)
        /* release: pairs with the acquire in tutti_cuda_check_ended; last_event is recorded */
        tutti_store_release(&gpu->has_launched, true);
    return code;
}

int tutti_cuda_stream_set_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream,
                               uint64_t number)
{
    int code = tutti_cuda_stream_mark_last(gpu, stream, number);

    return code == TUTTI_CU_SUCCESS ? TUTTI_OK : tutti_cuda_fail(gpu, code, "recording an event");
}

int tutti_cuda_set_last(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream *stream)
{
    return tutti_cuda_stream_set_last(gpu, stream, number_of(gpu, stream));
}
