/* SPDX-License-Identifier: Apache-2.0
 * An event is the last position at which it was recorded, in a stream or in a captured graph. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"

#include <stdlib.h>

struct tutti_cu_event {
    struct tutti_cu_context *context;
    bool has_no_time;
    struct sim_op *op;             /* held; NULL: not recorded in a stream */
    struct sim_membership capture; /* recorded in a capture */
    struct tutti_cu_event *next;
};

static struct tutti_cu_event *events;

uint32_t sim_events_left(void)
{
    uint32_t n = 0;

    for (const struct tutti_cu_event *event = events; event != NULL; event = event->next)
        n++;
    return n;
}

/* Whether it is one that has not been destroyed. */
static bool is_event(const struct tutti_cu_event *event)
{
    const struct tutti_cu_event *at = events;

    while (at != NULL && at != event)
        at = at->next;
    return at != NULL;
}

static int enter(const char *function, const struct tutti_cu_event *event)
{
    int code = sim_enter(function, SIM_NEEDS_CONTEXT);

    if (code == 0 && !is_event(event))
        code = sim_leave(TUTTI_CU_INVALID_HANDLE);
    return code;
}

static void forget(struct tutti_cu_event *event)
{
    if (event->op != NULL)
        sim_op_drop(event->op);
    event->op = NULL;
    sim_membership_leave(&event->capture);
}

int cuEventCreate(struct tutti_cu_event **ret_event, unsigned flags)
{
    struct tutti_cu_event *event;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    if (flags & ~7u)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    event = calloc(1, sizeof *event);
    if (event == NULL)
        sim_die("no memory for an event");
    event->context = sim_current();
    event->has_no_time = flags & TUTTI_CU_EVENT_DISABLE_TIMING;
    event->next = events;
    events = event;
    *ret_event = event;
    return sim_leave(0);
}

int cuEventDestroy_v2(struct tutti_cu_event *event)
{
    struct tutti_cu_event **link = &events;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (!is_event(event))
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    forget(event);
    free(event);
    return sim_leave(0);
}

int cuEventRecord(struct tutti_cu_event *event, struct tutti_cu_stream *handle)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, event);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        code = stream->context != event->context ? TUTTI_CU_INVALID_HANDLE
                                                 : sim_device_lost(stream->context->device);
    if (code == 0)
        code = sim_capture_legacy(stream);
    if (code != 0)
        return sim_leave(code);
    if (stream->capture.capture != NULL) {
        code = sim_capture_status(stream->capture.capture);
        if (code == 0) {
            forget(event);
            sim_membership_copy(&event->capture, &stream->capture);
        }
        return sim_leave(code);
    }
    sim_stream_submit(stream, sim_work_create(SIM_WORK_NOTHING, stream->context), NULL);
    forget(event);
    event->op = stream->newest;
    event->op->nrefs++;
    return sim_leave(0);
}

int cuEventQuery(struct tutti_cu_event *event)
{
    int code = enter(__func__, event);

    if (code != 0)
        return code;
    code = sim_capture_touches_event(&event->capture);
    if (code == 0)
        code = sim_capture_forbids();
    if (code == 0)
        code = sim_device_lost(event->context->device);
    if (code == 0 && event->op != NULL && !event->op->is_done)
        code = TUTTI_CU_NOT_READY;
    return sim_leave(code);
}

int cuEventSynchronize(struct tutti_cu_event *event)
{
    struct sim_device *device;
    int code = enter(__func__, event);

    if (code != 0)
        return code;
    device = event->context->device;
    code = sim_capture_touches_event(&event->capture);
    if (code == 0)
        code = sim_capture_forbids();
    if (code == 0) {
        if (event->op != NULL)
            sim_op_wait(event->op);
        code = sim_device_lost(device);
    }
    return sim_leave(code);
}

int cuEventElapsedTime(float *ret_ms, struct tutti_cu_event *from, struct tutti_cu_event *to)
{
    int code = enter(__func__, from);

    if (code != 0)
        return code;
    if (!is_event(to) || from->has_no_time || to->has_no_time || from->op == NULL ||
        to->op == NULL || from->context != to->context)
        return sim_leave(TUTTI_CU_INVALID_HANDLE);
    if (!from->op->is_done || !to->op->is_done)
        return sim_leave(TUTTI_CU_NOT_READY);
    *ret_ms = (float)((double)(int64_t)(to->op->done_ns - from->op->done_ns) / 1e6);
    return sim_leave(0);
}

int cuStreamWaitEvent(struct tutti_cu_stream *handle, struct tutti_cu_event *event, unsigned flags)
{
    struct tutti_cu_stream *stream;
    int code = enter(__func__, event);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        code = flags > 1 ? TUTTI_CU_INVALID_VALUE : sim_device_lost(stream->context->device);
    if (code != 0)
        return sim_leave(code);
    if (stream->capture.capture != NULL || sim_membership_is_active(&event->capture))
        return sim_leave(sim_capture_wait(stream, &event->capture, event->op != NULL));
    code = sim_capture_legacy(stream);
    if (code == 0 && event->op != NULL)
        sim_stream_submit(stream, sim_work_create(SIM_WORK_NOTHING, stream->context), event->op);
    return sim_leave(code);
}
