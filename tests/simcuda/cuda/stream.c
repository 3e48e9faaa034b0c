/* SPDX-License-Identifier: Apache-2.0
 * Implements streams and their calls. */
#include "simcuda/cuda/stream.h"

#include "simcuda/cuda/api.h"
#include "simcuda/die.h"

#include <stdlib.h>

/* ---- life ------------------------------------------------------------------------------------ */

/* The first of the hardware queues with the fewest streams. */
static uint32_t take_queue(struct tutti_cu_context *context)
{
    uint32_t queue = 0;

    for (uint32_t i = 1; i < sim_settings.nqueues; i++)
        if (context->nstreams_of_queue[i] < context->nstreams_of_queue[queue])
            queue = i;
    context->nstreams_of_queue[queue]++;
    return queue;
}

static struct tutti_cu_stream *create(struct tutti_cu_context *context, bool is_blocking)
{
    static uint64_t nstreams; /* under sim_lock */
    struct tutti_cu_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL)
        sim_die("no memory for a stream");
    *stream = (struct tutti_cu_stream){.context = context, .number = ++nstreams,
                                       .multiprocessors = sim_settings.multiprocessors,
                                       .is_blocking = is_blocking, .nrefs = 1,
                                       .has_more = PTHREAD_COND_INITIALIZER,
                                       .has_done = PTHREAD_COND_INITIALIZER,
                                       .next = context->streams};
    if (sim_settings.nqueues > 0)
        stream->queue = 1 + take_queue(context);
    context->streams = stream;
    return stream;
}

/* Out of the context; it ends when it has done all. */
static void end(struct tutti_cu_stream *stream)
{
    struct tutti_cu_stream **link = &stream->context->streams;
    struct sim_op *newest = stream->newest;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    if (stream->queue > 0)
        stream->context->nstreams_of_queue[stream->queue - 1]--;
    if (stream == stream->context->legacy)
        stream->context->legacy = NULL;
    stream->is_destroyed = true;
    stream->newest = NULL;
    pthread_cond_signal(&stream->has_more);
    if (newest != NULL)
        sim_op_drop(newest);
    sim_stream_drop(stream);
}

void sim_streams_end(struct tutti_cu_context *context)
{
    while (context->streams != NULL) {
        sim_capture_end_stream(context->streams);
        end(context->streams);
    }
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (context->newest_of_queue[i] != NULL) {
            sim_op_drop(context->newest_of_queue[i]);
            context->newest_of_queue[i] = NULL;
        }
}

uint32_t sim_streams_left(void)
{
    uint32_t n = 0;

    for (int i = 0; i < sim_ndevices; i++)
        for (const struct tutti_cu_stream *stream = sim_devices[i].primary.streams; stream != NULL;
             stream = stream->next)
            n += !stream->is_legacy && !stream->is_of_thread;
    return n;
}

static struct tutti_cu_stream *legacy_of(struct tutti_cu_context *context)
{
    if (context->legacy == NULL) {
        context->legacy = create(context, false);
        context->legacy->is_legacy = true;
    }
    return context->legacy;
}

static struct tutti_cu_stream *of_thread(struct tutti_cu_context *context)
{
    struct tutti_cu_stream *stream = context->streams;

    while (stream != NULL &&
           !(stream->is_of_thread && pthread_equal(stream->owner, pthread_self())))
        stream = stream->next;
    if (stream == NULL) {
        stream = create(context, true);
        stream->is_of_thread = true;
        stream->owner = pthread_self();
    }
    return stream;
}

int sim_stream_find(struct tutti_cu_stream *handle, struct tutti_cu_stream **ret_stream)
{
    if (handle == NULL || handle == TUTTI_CU_STREAM_LEGACY ||
        handle == TUTTI_CU_STREAM_PER_THREAD) {
        struct tutti_cu_context *context = sim_current();

        if (context == NULL)
            return TUTTI_CU_INVALID_CONTEXT;
        *ret_stream = handle == TUTTI_CU_STREAM_PER_THREAD ? of_thread(context)
                                                           : legacy_of(context);
        return TUTTI_CU_SUCCESS;
    }
    for (int i = 0; i < sim_ndevices; i++)
        for (struct tutti_cu_stream *stream = sim_devices[i].primary.streams; stream != NULL;
             stream = stream->next)
            if (stream == handle) {
                *ret_stream = stream;
                return TUTTI_CU_SUCCESS;
            }
    return TUTTI_CU_INVALID_HANDLE;
}

/* At the beginning of calls for a stream: with the lock, or what to return at once. */
static int enter(const char *function, struct tutti_cu_stream *handle,
                 struct tutti_cu_stream **ret_stream)
{
    int code = sim_enter(function, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, ret_stream);
    if (code == 0)
        code = sim_device_lost((*ret_stream)->context->device);
    return code == 0 ? 0 : sim_leave(code);
}

/* ---- calls ----------------------------------------------------------------------------------- */

int cuStreamCreate(struct tutti_cu_stream **ret_stream, unsigned flags)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (flags & ~(unsigned)TUTTI_CU_STREAM_NON_BLOCKING)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    *ret_stream = create(sim_current(), flags == 0);
    return sim_leave(0);
}

int cuStreamCreateWithPriority(struct tutti_cu_stream **ret_stream, unsigned flags, int priority)
{
    (void)priority; /* where all run at once it changes nothing */
    return cuStreamCreate(ret_stream, flags);
}

int cuSimStreamCreate(struct tutti_cu_stream **ret_stream, unsigned multiprocessors)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (multiprocessors == 0 || multiprocessors >= sim_settings.multiprocessors)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    *ret_stream = create(sim_current(), false);
    (*ret_stream)->multiprocessors = multiprocessors;
    return sim_leave(0);
}

/* Each such stream has a green context of its own, whose handle is that of the stream. */
int cuStreamGetGreenCtx(struct tutti_cu_stream *handle, struct tutti_cu_green **ret_green)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    *ret_green = stream->multiprocessors < sim_settings.multiprocessors
                     ? (struct tutti_cu_green *)(void *)stream
                     : NULL;
    return sim_leave(0);
}

int cuGreenCtxGetDevResource(struct tutti_cu_green *green, struct tutti_cu_resource *ret_resource,
                             int type)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, (struct tutti_cu_stream *)(void *)green, &stream);

    if (code != 0)
        return code;
    if (type != TUTTI_CU_RESOURCE_MULTIPROCESSORS)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    *ret_resource = (struct tutti_cu_resource){.type = type,
                                               .multiprocessors = stream->multiprocessors};
    return sim_leave(0);
}

int cuStreamDestroy_v2(struct tutti_cu_stream *handle)
{
    struct tutti_cu_stream *stream;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (handle == NULL || handle == TUTTI_CU_STREAM_LEGACY || handle == TUTTI_CU_STREAM_PER_THREAD)
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        code = sim_capture_touches(stream);
    if (code == 0)
        end(stream);
    return sim_leave(code);
}

int cuStreamQuery(struct tutti_cu_stream *handle)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    code = sim_capture_touches(stream);
    if (code == 0 && stream->newest != NULL && !stream->newest->is_done)
        code = TUTTI_CU_NOT_READY;
    return sim_leave(code);
}

int cuStreamSynchronize(struct tutti_cu_stream *handle)
{
    struct tutti_cu_stream *stream;
    struct sim_device *device;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    device = stream->context->device;
    code = sim_capture_touches(stream);
    if (code == 0) {
        sim_stream_wait(stream);
        code = sim_device_lost(device);
    }
    return sim_leave(code);
}

int cuStreamGetCtx(struct tutti_cu_stream *handle, struct tutti_cu_context **ret_context)
{
    struct tutti_cu_stream *stream;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        *ret_context = stream->context;
    return sim_leave(code);
}

int cuStreamGetId(struct tutti_cu_stream *handle, unsigned long long *ret_number)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    *ret_number = stream->number;
    return sim_leave(0);
}

int sim_stream_do(struct tutti_cu_stream *stream, struct sim_work *work)
{
    int code = sim_capture_legacy(stream);

    if (code == 0 && stream->capture.capture != NULL)
        code = sim_capture_add(&stream->capture, work);
    else if (code == 0)
        sim_stream_submit(stream, work, NULL);
    if (code != 0)
        sim_work_drop(work);
    return code;
}

int cuLaunchHostFunc(struct tutti_cu_stream *handle, void (*function)(void *), void *argument)
{
    struct tutti_cu_stream *stream;
    struct sim_work *work;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    if (function == NULL)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    work = sim_work_create(SIM_WORK_HOST, stream->context);
    work->host.function = function;
    work->host.argument = argument;
    return sim_leave(sim_stream_do(stream, work));
}

int cuStreamWaitValue32_v2(struct tutti_cu_stream *handle, tutti_cu_address at, uint32_t value,
                           unsigned flags)
{
    struct tutti_cu_stream *stream;
    struct sim_work *work;
    int code = enter(__func__, handle, &stream);

    if (code != 0)
        return code;
    if (at == 0 || at % sizeof(uint32_t) != 0 || flags > TUTTI_CU_WAIT_EQUAL)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    work = sim_work_create(SIM_WORK_WAIT, stream->context);
    work->wait.at = (const uint32_t *)(uintptr_t)at;
    work->wait.value = value;
    work->wait.flags = flags;
    return sim_leave(sim_stream_do(stream, work));
}
