/* SPDX-License-Identifier: Apache-2.0
 * Captures streams. */
#include "simcuda/cuda/capture.h"

#include "simcuda/cuda/api.h"
#include "simcuda/cuda/graph.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"

#include <stdlib.h>
#include <string.h>

static struct sim_capture *captures; /* that go on */
static unsigned long long ncaptures;
static __thread int thread_mode = TUTTI_CU_CAPTURE_GLOBAL;

/* ---- membership ------------------------------------------------------------------------------ */

static void drop_capture(struct sim_capture *capture)
{
    if (--capture->nrefs > 0)
        return;
    if (capture->graph != NULL)
        sim_graph_destroy(capture->graph);
    free(capture);
}

void sim_membership_leave(struct sim_membership *membership)
{
    if (membership->capture != NULL)
        drop_capture(membership->capture);
    free(membership->front);
    *membership = (struct sim_membership){0};
}

static void add_front(struct sim_membership *membership, uint32_t node)
{
    for (uint32_t i = 0; i < membership->nfront; i++)
        if (membership->front[i] == node)
            return;
    membership->front = realloc(membership->front, (membership->nfront + 1) * sizeof(uint32_t));
    if (membership->front == NULL)
        sim_die("no memory for a capture");
    membership->front[membership->nfront++] = node;
}

void sim_membership_copy(struct sim_membership *ret_membership,
                         const struct sim_membership *membership)
{
    struct sim_membership copy = {.capture = membership->capture};

    copy.capture->nrefs++;
    for (uint32_t i = 0; i < membership->nfront; i++)
        add_front(&copy, membership->front[i]);
    *ret_membership = copy;
}

bool sim_membership_is_active(const struct sim_membership *membership)
{
    return membership->capture != NULL && !membership->capture->is_over;
}

/* ---- going on -------------------------------------------------------------------------------- */

int sim_capture_status(const struct sim_capture *capture)
{
    return capture->is_invalid ? TUTTI_CU_STREAM_CAPTURE_INVALIDATED : TUTTI_CU_SUCCESS;
}

int sim_capture_add(struct sim_membership *membership, struct sim_work *work)
{
    int code = sim_capture_status(membership->capture);
    uint32_t node;

    if (code != 0)
        return code;
    if (work->kind == SIM_WORK_GRAPH) {
        membership->capture->is_invalid = true;
        return TUTTI_CU_NOT_SUPPORTED;
    }
    node = sim_graph_add(membership->capture->graph, work, membership->front, membership->nfront);
    membership->nfront = 0;
    add_front(membership, node);
    return TUTTI_CU_SUCCESS;
}

int sim_capture_wait(struct tutti_cu_stream *stream, const struct sim_membership *event,
                     bool is_recorded_elsewhere)
{
    struct sim_membership *mine = &stream->capture;

    if (!sim_membership_is_active(event)) {
        if (mine->capture->is_invalid)
            return TUTTI_CU_STREAM_CAPTURE_INVALIDATED;
        if (!is_recorded_elsewhere && event->capture == NULL)
            return TUTTI_CU_SUCCESS;
        mine->capture->is_invalid = true;
        return SIM_CU_CAPTURE_ISOLATION;
    }
    if (mine->capture == NULL && stream->is_legacy)
        return SIM_CU_CAPTURE_IMPLICIT;
    if (mine->capture == NULL) {
        sim_membership_copy(mine, event);
        return sim_capture_status(mine->capture);
    }
    if (mine->capture != event->capture) {
        mine->capture->is_invalid = true;
        event->capture->is_invalid = true;
        return SIM_CU_CAPTURE_MERGE;
    }
    for (uint32_t i = 0; i < event->nfront; i++)
        add_front(mine, event->front[i]);
    return sim_capture_status(mine->capture);
}

/* ---- what must not be ------------------------------------------------------------------------ */

int sim_capture_forbids(void)
{
    int code = TUTTI_CU_SUCCESS;

    if (thread_mode == TUTTI_CU_CAPTURE_RELAXED)
        return TUTTI_CU_SUCCESS;
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        bool is_mine = pthread_equal(capture->owner, pthread_self()) &&
                       capture->mode != TUTTI_CU_CAPTURE_RELAXED;

        if (is_mine || (thread_mode == TUTTI_CU_CAPTURE_GLOBAL &&
                        capture->mode == TUTTI_CU_CAPTURE_GLOBAL)) {
            capture->is_invalid = true;
            code = TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return code;
}

int sim_capture_touches(struct tutti_cu_stream *stream)
{
    int code = sim_capture_legacy(stream);

    if (code != 0 || stream->capture.capture == NULL)
        return code;
    stream->capture.capture->is_invalid = true;
    return TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED;
}

int sim_capture_touches_event(const struct sim_membership *event)
{
    if (!sim_membership_is_active(event))
        return TUTTI_CU_SUCCESS;
    event->capture->is_invalid = true;
    return SIM_CU_CAPTURED_EVENT;
}

int sim_capture_legacy(struct tutti_cu_stream *stream)
{
    int code = TUTTI_CU_SUCCESS;

    for (struct tutti_cu_stream *other = stream->context->streams;
         stream->is_legacy && other != NULL; other = other->next)
        if (other->is_blocking && other->capture.capture != NULL) {
            other->capture.capture->is_invalid = true;
            code = SIM_CU_CAPTURE_IMPLICIT;
        }
    return code;
}

/* ---- begin and end --------------------------------------------------------------------------- */

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = thread_mode, code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (*mode < TUTTI_CU_CAPTURE_GLOBAL || *mode > TUTTI_CU_CAPTURE_RELAXED)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    thread_mode = *mode;
    *mode = before;
    return sim_leave(0);
}

int cuStreamBeginCapture_v2(struct tutti_cu_stream *handle, int mode)
{
    struct tutti_cu_stream *stream;
    struct sim_capture *capture;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0 && (stream->is_legacy || stream->capture.capture != NULL))
        code = TUTTI_CU_STREAM_CAPTURE_UNSUPPORTED;
    if (code == 0 && (mode < TUTTI_CU_CAPTURE_GLOBAL || mode > TUTTI_CU_CAPTURE_RELAXED))
        code = TUTTI_CU_INVALID_VALUE;
    if (code != 0)
        return sim_leave(code);
    capture = calloc(1, sizeof *capture);
    if (capture == NULL)
        sim_die("no memory for a capture");
    *capture = (struct sim_capture){.nrefs = 2, .id = ++ncaptures, .mode = mode,
                                    .owner = pthread_self(), .origin = stream,
                                    .graph = sim_graph_create(), .next = captures};
    captures = capture;
    stream->capture.capture = capture;
    return sim_leave(0);
}

/* All streams leave the capture. Events that were recorded keep nodes that can no longer be
 * used. */
static void end_capture(struct sim_capture *capture)
{
    struct sim_capture **link = &captures;

    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    capture->is_over = true;
    for (int i = 0; i < sim_ndevices; i++)
        for (struct tutti_cu_stream *stream = sim_devices[i].primary.streams; stream != NULL;
             stream = stream->next)
            if (stream->capture.capture == capture)
                sim_membership_leave(&stream->capture);
    drop_capture(capture);
}

/* True if all work of other streams precedes the end of the stream in which the capture began. */
static bool is_joined(const struct sim_capture *capture)
{
    const struct sim_membership *origin = &capture->origin->capture;

    for (int i = 0; i < sim_ndevices; i++)
        for (const struct tutti_cu_stream *stream = sim_devices[i].primary.streams;
             stream != NULL; stream = stream->next)
            for (uint32_t n = 0; stream->capture.capture == capture && n < stream->capture.nfront;
                 n++)
                if (!sim_graph_leads(capture->graph, stream->capture.front[n], origin->front,
                                     origin->nfront))
                    return false;
    return true;
}

static int end_of(const struct tutti_cu_stream *stream)
{
    const struct sim_capture *capture = stream->capture.capture;

    if (capture->mode != TUTTI_CU_CAPTURE_RELAXED &&
        !pthread_equal(capture->owner, pthread_self()))
        return SIM_CU_CAPTURE_WRONG_THREAD;
    if (capture->origin != stream)
        return SIM_CU_CAPTURE_UNMATCHED;
    if (capture->is_invalid)
        return TUTTI_CU_STREAM_CAPTURE_INVALIDATED;
    return is_joined(capture) ? TUTTI_CU_SUCCESS : SIM_CU_CAPTURE_UNJOINED;
}

int cuStreamEndCapture(struct tutti_cu_stream *handle, struct tutti_cu_graph **ret_graph)
{
    struct tutti_cu_stream *stream;
    struct sim_capture *capture;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0 && stream->capture.capture == NULL)
        code = TUTTI_CU_INVALID_VALUE;
    if (code != 0)
        return sim_leave(code);
    capture = stream->capture.capture;
    code = end_of(stream);
    *ret_graph = NULL;
    if (code == SIM_CU_CAPTURE_WRONG_THREAD || code == SIM_CU_CAPTURE_UNMATCHED) {
        capture->is_invalid = true;
        return sim_leave(code);
    }
    if (code == 0) {
        *ret_graph = capture->graph;
        capture->graph = NULL;
    }
    end_capture(capture);
    return sim_leave(code);
}

void sim_capture_end_stream(struct tutti_cu_stream *stream)
{
    if (stream->capture.capture == NULL)
        return;
    if (stream->capture.capture->origin == stream)
        end_capture(stream->capture.capture);
    else
        sim_membership_leave(&stream->capture);
}

/* ---- asking ---------------------------------------------------------------------------------- */

int cuStreamGetCaptureInfo(struct tutti_cu_stream *handle, int *ret_status,
                           unsigned long long *ret_id)
{
    struct tutti_cu_stream *stream;
    const struct sim_capture *capture;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    code = sim_stream_find(handle, &stream);
    if (code == 0)
        code = sim_capture_legacy(stream);
    if (code != 0)
        return sim_leave(code);
    capture = stream->capture.capture;
    if (capture == NULL)
        *ret_status = TUTTI_CU_CAPTURE_NONE;
    else
        *ret_status = capture->is_invalid ? TUTTI_CU_CAPTURE_INVALIDATED : TUTTI_CU_CAPTURE_ACTIVE;
    if (ret_id != NULL && capture != NULL)
        *ret_id = capture->id;
    return sim_leave(0);
}

int cuStreamIsCapturing(struct tutti_cu_stream *stream, int *ret_status)
{
    return cuStreamGetCaptureInfo(stream, ret_status, NULL);
}
