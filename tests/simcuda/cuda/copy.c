/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills memory on streams. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/faults.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/cuda/stream.h"
#include "simcuda/cuda/traffic.h"

#include <stdlib.h>
#include <string.h>

/* The rates of copies: within a device, and over its link. */
enum { MEMORY_MB_PER_S = 1000000, LINK_MB_PER_S = 25000 };

static void add_faults(struct sim_work *work, const struct sim_device *from,
                       const struct sim_device *to)
{
    work->copy.mb_per_s = from == to ? MEMORY_MB_PER_S : LINK_MB_PER_S;
    if (from != to)
        sim_traffic_add(from != NULL ? from->ordinal : -1, to != NULL ? to->ordinal : -1,
                        work->copy.size_bytes);
    if (from == NULL || to == NULL)
        return;
    work->copy.is_corrupt =
        from->ordinal == sim_faults.corrupt_from && to->ordinal == sim_faults.corrupt_to;
    if (from->ordinal == sim_faults.slow_from && to->ordinal == sim_faults.slow_to)
        work->copy.mb_per_s = sim_faults.slow_mb_per_s;
}

/* From pageable memory of the host to a device: the driver may return once it has its own copy. */
static bool is_late(const struct tutti_cu_stream *stream, const struct sim_range *to,
                    const struct sim_range *from)
{
    return sim_settings.copies_are_late && from == NULL && sim_range_device(to) != NULL &&
           stream->capture.capture == NULL;
}

/* A copy, and whether the host's memory on one side is none that streams can use by themselves:
 * then the caller must wait. */
static int make_copy(struct tutti_cu_stream *stream, tutti_cu_address to, tutti_cu_address from,
                     size_t size_bytes, struct sim_work **ret_work, bool *ret_must_wait)
{
    struct sim_range *to_range = NULL, *from_range = NULL;
    struct sim_work *work;
    int code = sim_range_check((uintptr_t)to, size_bytes, &to_range);

    if (code == 0)
        code = sim_range_check((uintptr_t)from, size_bytes, &from_range);
    if (code == 0 && size_bytes > 0 && (to == 0 || from == 0))
        code = TUTTI_CU_INVALID_VALUE;
    if (code != 0)
        return code;
    work = sim_work_create(SIM_WORK_COPY, stream->context);
    work->copy.to = (void *)(uintptr_t)to;
    work->copy.from = (const void *)(uintptr_t)from;
    work->copy.size_bytes = size_bytes;
    add_faults(work, sim_range_device(from_range), sim_range_device(to_range));
    *ret_work = work;
    *ret_must_wait = to_range == NULL || from_range == NULL;
    if (is_late(stream, to_range, from_range) && size_bytes > 0) {
        work->copy.staged = malloc(size_bytes);
        memcpy(work->copy.staged, work->copy.from, size_bytes);
        *ret_must_wait = false;
    }
    return TUTTI_CU_SUCCESS;
}

static int make_set(struct tutti_cu_stream *stream, tutti_cu_address to, unsigned char value,
                    size_t size_bytes, struct sim_work **ret_work)
{
    struct sim_range *range = NULL;
    struct sim_work *work;
    int code = sim_range_check((uintptr_t)to, size_bytes, &range);

    if (code == 0 && range == NULL && size_bytes > 0)
        code = TUTTI_CU_INVALID_VALUE;
    if (code != 0)
        return code;
    work = sim_work_create(SIM_WORK_SET, stream->context);
    work->set.to = (void *)(uintptr_t)to;
    work->set.value = value;
    work->set.size_bytes = size_bytes;
    *ret_work = work;
    return TUTTI_CU_SUCCESS;
}

/* The stream is to do it; where it `must_wait`, before the call returns. */
static int do_work(struct tutti_cu_stream *stream, struct sim_work *work, bool must_wait)
{
    struct sim_device *device = stream->context->device;
    bool is_captured = stream->capture.capture != NULL;
    int code = sim_device_lost(device);

    if (code != 0) {
        sim_work_drop(work);
        return code;
    }
    code = sim_stream_do(stream, work);
    if (code != 0 || !must_wait || is_captured)
        return code;
    sim_stream_wait(stream);
    return sim_device_lost(device);
}

static int copy(tutti_cu_address to, tutti_cu_address from, size_t size_bytes,
                struct tutti_cu_stream *handle, bool must_wait)
{
    struct tutti_cu_stream *stream;
    struct sim_work *work = NULL;
    bool has_pageable = false;
    int code = sim_stream_find(handle, &stream);

    if (code == 0)
        code = make_copy(stream, to, from, size_bytes, &work, &has_pageable);
    return code != 0 ? code
                     : do_work(stream, work,
                               has_pageable || (must_wait && work->copy.staged == NULL));
}

static int set(tutti_cu_address to, unsigned char value, size_t size_bytes,
               struct tutti_cu_stream *handle, bool must_wait)
{
    struct tutti_cu_stream *stream;
    struct sim_work *work = NULL;
    int code = sim_stream_find(handle, &stream);

    if (code == 0)
        code = make_set(stream, to, value, size_bytes, &work);
    return code != 0 ? code : do_work(stream, work, must_wait);
}

int cuMemcpy(tutti_cu_address to, tutti_cu_address from, size_t size_bytes)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    return code != 0 ? code : sim_leave(copy(to, from, size_bytes, TUTTI_CU_STREAM_LEGACY, true));
}

int cuMemcpyAsync(tutti_cu_address to, tutti_cu_address from, size_t size_bytes,
                  struct tutti_cu_stream *stream)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    return code != 0 ? code : sim_leave(copy(to, from, size_bytes, stream, false));
}

int cuMemsetD8_v2(tutti_cu_address to, unsigned char value, size_t size_bytes)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    return code != 0 ? code : sim_leave(set(to, value, size_bytes, TUTTI_CU_STREAM_LEGACY, true));
}

int cuMemsetD8Async(tutti_cu_address to, unsigned char value, size_t size_bytes,
                    struct tutti_cu_stream *stream)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    return code != 0 ? code : sim_leave(set(to, value, size_bytes, stream, false));
}
