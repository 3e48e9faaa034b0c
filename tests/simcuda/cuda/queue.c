/* SPDX-License-Identifier: Apache-2.0
 * Runs the work of streams: their queues, their threads, and the waits between them.
 *
 * With SIMCUDA_QUEUES=1 streams share hardware queues, as on a GPU. The commands of such a queue
 * begin in the order in which they were given, whatever their streams are. A command that waits for
 * the command before it on its stream, or for an event, delays all commands behind it in its
 * hardware queue. */
#include "simcuda/cuda/stream.h"
#include "simcuda/die.h"
#include "simcuda/thread.h"

#include <stdlib.h>

/* ---- holding --------------------------------------------------------------------------------- */

void sim_stream_drop(struct tutti_cu_stream *stream)
{
    if (--stream->nrefs > 0)
        return;
    pthread_cond_destroy(&stream->has_more);
    pthread_cond_destroy(&stream->has_done);
    free(stream);
}

static void forget_earlier(struct sim_op *op)
{
    for (uint32_t i = 0; i < op->nearlier; i++)
        sim_op_drop(op->earlier[i]);
    free(op->earlier);
    op->earlier = NULL;
    op->nearlier = 0;
}

void sim_op_drop(struct sim_op *op)
{
    struct tutti_cu_stream *stream = op->stream;

    if (--op->nrefs > 0)
        return;
    forget_earlier(op);
    if (op->ahead != NULL)
        sim_op_drop(op->ahead);
    free(op);
    sim_stream_drop(stream);
}

static void add_earlier(struct sim_op *op, struct sim_op *earlier)
{
    if (earlier == NULL || earlier->is_done)
        return;
    op->earlier = realloc(op->earlier, (op->nearlier + 1) * sizeof *op->earlier);
    if (op->earlier == NULL)
        sim_die("no memory to note what a stream waits for");
    op->earlier[op->nearlier++] = earlier;
    earlier->nrefs++;
}

/* ---- doing ----------------------------------------------------------------------------------- */

/* When the stream has done it. Copies take the time that their rate says, from the event before
 * them to the one behind, so that rates that are measured by events are no chance; all else takes
 * what it takes. */
static uint64_t time_of(struct tutti_cu_stream *stream, const struct sim_work *work)
{
    bool is_copy = work->kind == SIM_WORK_COPY, is_event = work->kind == SIM_WORK_NOTHING;
    bool goes_on = stream->did_last == SIM_WORK_COPY ||
                   (stream->did_last == SIM_WORK_NOTHING && is_copy && stream->time_ns > 0);

    if (!goes_on || !(is_copy || is_event))
        stream->time_ns = sim_now_ns();
    if (is_copy)
        stream->time_ns += work->copy.size_bytes * 1000 / work->copy.mb_per_s;
    stream->did_last = work->kind;
    return stream->time_ns;
}

static void finish(struct sim_op *op)
{
    struct tutti_cu_stream *stream = op->stream;

    op->is_begun = op->is_done = true;
    op->done_ns = time_of(stream, op->work);
    sim_work_drop(op->work);
    op->work = NULL;
    forget_earlier(op);
    pthread_cond_broadcast(&stream->has_done);
}

/* Waits for the command ahead in the hardware queue to begin, then for all that the command itself
 * waits for, and begins it. */
static void begin(struct sim_op *op)
{
    struct sim_op *ahead = op->ahead;

    while (ahead != NULL && !ahead->is_begun)
        pthread_cond_wait(&ahead->stream->has_done, &sim_lock);
    op->ahead = NULL;
    if (ahead != NULL)
        sim_op_drop(ahead);
    for (uint32_t i = 0; i < op->nearlier; i++)
        sim_op_wait(op->earlier[i]);
    op->is_begun = true;
    pthread_cond_broadcast(&op->stream->has_done);
}

static void do_first(struct tutti_cu_stream *stream)
{
    struct sim_op *op = stream->first;

    begin(op);
    pthread_mutex_unlock(&sim_lock);
    sim_work_run(op->work);
    pthread_mutex_lock(&sim_lock);
    stream->first = op->next;
    if (stream->first == NULL)
        stream->last = NULL;
    finish(op);
    sim_op_drop(op);
}

static void *serve(void *argument)
{
    struct tutti_cu_stream *stream = argument;

    pthread_mutex_lock(&sim_lock);
    while (stream->first != NULL || !stream->is_destroyed) {
        if (stream->first != NULL)
            do_first(stream);
        else
            pthread_cond_wait(&stream->has_more, &sim_lock);
    }
    sim_stream_drop(stream);
    pthread_mutex_unlock(&sim_lock);
    return NULL;
}

static void start_worker(struct tutti_cu_stream *stream)
{
    pthread_attr_t attributes;
    pthread_t thread;

    stream->has_worker = true;
    stream->nrefs++;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, serve, stream) != 0)
        sim_die("no thread for a stream");
    pthread_attr_destroy(&attributes);
}

static void put_into_queue(struct tutti_cu_stream *stream, struct sim_op *op)
{
    op->nrefs++;
    if (stream->first == NULL)
        stream->first = op;
    else
        stream->last->next = op;
    stream->last = op;
    if (!stream->has_worker)
        start_worker(stream);
    pthread_cond_signal(&stream->has_more);
}

/* The legacy stream waits for all blocking ones, and they for it. */
static void wait_as_of_old(struct tutti_cu_stream *stream, struct sim_op *op)
{
    struct tutti_cu_stream *legacy = stream->context->legacy;

    if (stream->is_legacy) {
        for (struct tutti_cu_stream *other = stream->context->streams; other != NULL;
             other = other->next)
            if (other != stream && other->is_blocking)
                add_earlier(op, other->newest);
    } else if (stream->is_blocking && legacy != NULL) {
        add_earlier(op, legacy->newest);
    }
}

/* Puts the command behind the newest one of its hardware queue. */
static void follow(struct tutti_cu_stream *stream, struct sim_op *op)
{
    struct sim_op **newest;

    if (stream->queue == 0)
        return;
    newest = &stream->context->newest_of_queue[stream->queue - 1];
    if (*newest != NULL && !(*newest)->is_begun)
        op->ahead = *newest;
    else if (*newest != NULL)
        sim_op_drop(*newest);
    *newest = op;
    op->nrefs++;
}

void sim_stream_submit(struct tutti_cu_stream *stream, struct sim_work *work,
                       struct sim_op *earlier)
{
    struct sim_op *op = calloc(1, sizeof *op);

    if (op == NULL)
        sim_die("no memory to note what a stream does");
    *op = (struct sim_op){.nrefs = 1, .stream = stream, .work = work};
    stream->nrefs++;
    add_earlier(op, earlier);
    wait_as_of_old(stream, op);
    if (stream->newest != NULL)
        sim_op_drop(stream->newest);
    stream->newest = op;
    follow(stream, op);
    if (work->kind == SIM_WORK_NOTHING && op->nearlier == 0 && op->ahead == NULL &&
        stream->first == NULL)
        finish(op);
    else
        put_into_queue(stream, op);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void sim_op_wait(struct sim_op *op)
{
    op->nrefs++;
    while (!op->is_done)
        pthread_cond_wait(&op->stream->has_done, &sim_lock);
    sim_op_drop(op);
}

void sim_stream_wait(struct tutti_cu_stream *stream)
{
    if (stream->newest != NULL)
        sim_op_wait(stream->newest);
}

/* Streams may come and go meanwhile: from the beginning each time. */
void sim_context_wait(struct tutti_cu_context *context)
{
    struct tutti_cu_stream *stream = context->streams;

    while (stream != NULL) {
        if (stream->newest == NULL || stream->newest->is_done) {
            stream = stream->next;
            continue;
        }
        sim_op_wait(stream->newest);
        stream = context->streams;
    }
}

void sim_allocation_wait(struct tutti_cu_context *context)
{
    if (sim_settings.allocations_wait)
        sim_context_wait(context);
}
