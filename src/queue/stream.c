/* SPDX-License-Identifier: Apache-2.0
 * Implements host streams. A stream's thread sleeps on a condition while the queue is empty. While
 * a batch runs, the thread waits by the rules of the batch's communicator. Waking the thread takes
 * longer than a small operation. So a thread that synchronizes with a stream serves the queue
 * itself, if the stream's thread has not begun yet and no CPUs were set aside for streams. Only one
 * thread at a time serves a stream, and it serves until the queue is empty. */
#include "queue/stream.h"

#include "base/param.h"
#include "queue/stream_cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct tuttiStream {
    struct tuttiStream *next; /* in the list of live streams */
    uint32_t groups;          /* open groups that refer to the stream; protected by live_lock */
    uint32_t fork_generation; /* of the process that made the stream */
    pthread_t thread;
    int event_fd;
    /* True if TUTTI_STREAM_CPUS sets CPUs aside for streams. Then only `thread` serves the queue,
     * so that other threads keep their own cores free for computing. */
    bool has_own_cpus;
    pthread_mutex_t lock; /* protects all fields below */
    /* Wakes `thread` when there is something to serve and no thread serves, or when `thread` must
     * end. */
    pthread_cond_t work;
    pthread_cond_t idle;  /* wakes threads that synchronize when the queue is empty */
    struct tutti_stream_item *first, *last; /* items that are not finished */
    bool is_served; /* some thread serves: `thread`, or a thread that synchronizes */
    bool is_closing;
    bool has_been_idle;   /* the queue was empty after some operation */
    bool is_watched;      /* the user has asked for event_fd */
    int error;            /* first error since errors were last reported; 0: none */
    char error_text[TUTTI_MESSAGE_BYTES];
};

/* The list of live streams. A pointer that is not in it is never dereferenced. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tuttiStream *live_streams;

static void add_live(struct tuttiStream *stream)
{
    pthread_mutex_lock(&live_lock);
    stream->next = live_streams;
    live_streams = stream;
    pthread_mutex_unlock(&live_lock);
}

/* Removes the stream from the list. Returns false, and does nothing, if a group refers to it. */
static bool remove_live(struct tuttiStream *stream)
{
    bool is_free;

    pthread_mutex_lock(&live_lock);
    is_free = stream->groups == 0;
    for (struct tuttiStream **at = &live_streams; is_free && *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    pthread_mutex_unlock(&live_lock);
    return is_free;
}

void tutti_stream_hold(tuttiStream_t stream)
{
    pthread_mutex_lock(&live_lock);
    stream->groups++;
    pthread_mutex_unlock(&live_lock);
}

void tutti_stream_let_go(tuttiStream_t stream)
{
    pthread_mutex_lock(&live_lock);
    stream->groups--;
    pthread_mutex_unlock(&live_lock);
}

static bool is_live(const struct tuttiStream *stream)
{
    const struct tuttiStream *at;

    pthread_mutex_lock(&live_lock);
    for (at = live_streams; at != NULL && at != stream; at = at->next)
        ;
    pthread_mutex_unlock(&live_lock);
    return at != NULL;
}

bool tutti_stream_is_ours(tuttiStream_t stream)
{
    return is_live(stream);
}

int tutti_stream_check(tuttiStream_t stream, const char *function)
{
    if (stream != NULL && is_live(stream)) {
        if (stream->fork_generation == tutti_comm_fork_generation())
            return TUTTI_OK;
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s: stream was made before fork; a child must make its own", function);
    }
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: stream is not one that tuttiHostStreamCreate has made, or is destroyed",
                      function);
}

/* Runs the batch of `item` until it is done, or waits for it if another stream runs it. */
static int serve(const struct tutti_stream_item *item)
{
    struct tutti_batch *batch = item->batch;
    /* Keeps the state of this thread's waiting. `batch` itself may be run by another thread. */
    struct tutti_batch own_wait = {.comm = batch->comm};
    uint32_t missing;

    /* release: pairs with the acquire below in other streams, and in group_run.c */
    missing = tutti_fetch_add(&batch->streams_missing, (uint32_t)-1);
    tutti_assert(missing > 0);
    /* acquire: pairs with the release above, and with the one in finish() of batch.c */
    while (tutti_load_acquire(&batch->streams_missing) != 0 ||
           (!item->runs_batch && !tutti_load_acquire(&batch->is_done)))
        tutti_batch_idle(&own_wait);
    return item->runs_batch ? tutti_batch_wait(batch) : TUTTI_OK;
}

static void note_error(struct tuttiStream *stream, int rc)
{
    if (rc == TUTTI_OK || stream->error != 0)
        return;
    stream->error = rc;
    strncpy(stream->error_text, tutti_message_last(), sizeof stream->error_text - 1);
}

/* Makes event_fd readable. */
static void signal_event_fd(const struct tuttiStream *stream)
{
    uint64_t one = 1;

    /* The write fails if the counter is full. The descriptor is then readable anyway, so a failure
     * does not matter. */
    if (write(stream->event_fd, &one, sizeof one) < 0)
        return;
}

/* Frees an item, and drops its reference to its batch. */
static void drop_item(struct tutti_stream_item *item)
{
    struct tutti_batch *batch = item->batch;

    if (item != &batch->stream_item)
        free(item);
    tutti_batch_release(batch);
}

/* Serves until the queue is empty. The lock is held, and no other thread serves. */
static void serve_all(struct tuttiStream *stream)
{
    tutti_assert(!stream->is_served);
    stream->is_served = true;
    while (stream->first != NULL) {
        struct tutti_stream_item *item = stream->first;
        int rc;

        pthread_mutex_unlock(&stream->lock);
        rc = serve(item);
        tutti_log_enter(NULL); /* leaves the log scope that serve() may have entered */
        pthread_mutex_lock(&stream->lock);
        note_error(stream, rc);
        stream->first = item->next;
        if (stream->first == NULL)
            stream->last = NULL;
        drop_item(item);
    }
    stream->is_served = false;
    stream->has_been_idle = true;
    if (stream->is_watched)
        signal_event_fd(stream);
    pthread_cond_broadcast(&stream->idle);
}

/* The thread of the stream. */
static void *run(void *argument)
{
    struct tuttiStream *stream = argument;

    pthread_mutex_lock(&stream->lock);
    while (!stream->is_closing || stream->first != NULL) {
        if (stream->first != NULL && !stream->is_served)
            serve_all(stream);
        else
            pthread_cond_wait(&stream->work, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

void tutti_stream_push(tuttiStream_t stream, struct tutti_stream_item *item,
                       struct tutti_batch *batch, bool runs_batch)
{
    *item = (struct tutti_stream_item){.batch = batch, .runs_batch = runs_batch};
    pthread_mutex_lock(&stream->lock);
    if (stream->last == NULL)
        stream->first = item;
    else
        stream->last->next = item;
    stream->last = item;
    if (!stream->is_served)
        pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

/* Returns the error to report and clears it. The lock is held. */
static int take_error(struct tuttiStream *stream)
{
    int rc = stream->error;

    if (rc != 0)
        tutti_message_set_last(stream->error_text);
    stream->error = 0;
    return rc;
}

tuttiResult_t tuttiHostStreamCreate(tuttiStream_t *stream)
{
    struct tuttiStream *made;
    int rc;

    if (stream == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiHostStreamCreate: stream is NULL"));
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return tutti_public_result(tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a stream"));
    made->fork_generation = tutti_comm_fork_generation();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->idle, NULL);
    made->has_own_cpus = *tutti_param_text(TUTTI_PARAM_STREAM_CPUS) != '\0';
    made->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (made->event_fd < 0) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "eventfd for a stream: %s", strerror(errno));
        goto fail;
    }
    TUTTI_TRY_OR(close_event, rc, tutti_stream_thread(run, made, &made->thread));
    add_live(made);
    *stream = made;
    return tuttiSuccess;

close_event:
    close(made->event_fd);
fail:
    pthread_cond_destroy(&made->work);
    pthread_cond_destroy(&made->idle);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return tutti_public_result(rc);
}

tuttiResult_t tuttiHostStreamDestroy(tuttiStream_t stream)
{
    int rc;

    if (stream == NULL)
        return tuttiSuccess;
    rc = tutti_stream_check(stream, "tuttiHostStreamDestroy");
    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    if (!remove_live(stream))
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_USAGE, "tuttiHostStreamDestroy: an open group holds calls on the "
                                        "stream; call tuttiGroupEnd first"));
    pthread_mutex_lock(&stream->lock);
    stream->is_closing = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    close(stream->event_fd);
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->idle);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
    return tuttiSuccess;
}

tuttiResult_t tuttiStreamSynchronize(tuttiStream_t stream)
{
    int rc = tutti_stream_check(stream, "tuttiStreamSynchronize");

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    pthread_mutex_lock(&stream->lock);
    while (stream->first != NULL) {
        if (stream->is_served || stream->has_own_cpus)
            pthread_cond_wait(&stream->idle, &stream->lock);
        else
            serve_all(stream);
    }
    rc = take_error(stream);
    pthread_mutex_unlock(&stream->lock);
    return tutti_public_result(rc);
}

tuttiResult_t tuttiStreamQuery(tuttiStream_t stream)
{
    int rc = tutti_stream_check(stream, "tuttiStreamQuery");

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    pthread_mutex_lock(&stream->lock);
    rc = stream->first != NULL ? TUTTI_AGAIN : take_error(stream);
    pthread_mutex_unlock(&stream->lock);
    return tutti_public_result(rc);
}

tuttiResult_t tuttiStreamEventFd(tuttiStream_t stream, int *fd)
{
    int rc = tutti_stream_check(stream, "tuttiStreamEventFd");

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    if (fd == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiStreamEventFd: fd is NULL"));
    pthread_mutex_lock(&stream->lock);
    if (!stream->is_watched && stream->has_been_idle)
        signal_event_fd(stream);
    stream->is_watched = true;
    pthread_mutex_unlock(&stream->lock);
    *fd = stream->event_fd;
    return tuttiSuccess;
}
