/* SPDX-License-Identifier: Apache-2.0
 * Groups. A thread collects its calls, one batch per communicator, and the
 * communicators it asked to form; the outermost end runs everything together. */
#include "group.h"

#include "stream.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One communicator's part of the group. */
struct part {
    struct tutti_batch *batch;
    tuttiStream_t *streams; /* the different ones it was called with, NULL among them */
    size_t stream_count;
    bool is_done;
};

static _Thread_local struct {
    int depth;
    int error; /* of the first call that failed */
    char error_text[TUTTI_MESSAGE_BYTES];
    struct part *parts;
    size_t part_count;
    struct tutti_job **jobs; /* NULL entries are done */
    size_t job_count;
} group;

bool tutti_group_is_open(void)
{
    return group.depth > 0;
}

int tutti_group_note(int rc)
{
    if (rc != TUTTI_OK && group.depth > 0 && group.error == 0) {
        group.error = rc;
        strncpy(group.error_text, tutti_last_message(), sizeof group.error_text - 1);
    }
    return rc;
}

/* ---- collecting --------------------------------------------------------------------------- */

static int part_of(struct tutti_comm *comm, struct part **ret_part)
{
    struct part *parts;

    for (size_t i = 0; i < group.part_count; i++)
        if (group.parts[i].batch->comm == comm) {
            *ret_part = &group.parts[i];
            return TUTTI_OK;
        }
    parts = realloc(group.parts, (group.part_count + 1) * sizeof *parts);
    if (parts == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu communicators",
                          group.part_count + 1);
    group.parts = parts;
    parts[group.part_count] = (struct part){.batch = NULL};
    TUTTI_TRY(tutti_batch_create(comm, &parts[group.part_count].batch));
    *ret_part = &parts[group.part_count++];
    return TUTTI_OK;
}

static int add_stream(struct part *part, tuttiStream_t stream)
{
    tuttiStream_t *streams;

    for (size_t i = 0; i < part->stream_count; i++)
        if (part->streams[i] == stream)
            return TUTTI_OK;
    streams = realloc(part->streams, (part->stream_count + 1) * sizeof *streams);
    if (streams == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the streams of a group");
    part->streams = streams;
    streams[part->stream_count++] = stream;
    return TUTTI_OK;
}

static int issue(struct part *part);

int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream)
{
    struct part *part, single = {.batch = NULL};
    int rc;

    if (group.depth > 0) {
        TUTTI_TRY(part_of(comm, &part));
        TUTTI_TRY(add_stream(part, stream));
        return tutti_batch_add(part->batch, call);
    }
    if (stream == NULL && call->kind < TUTTI_CALL_SEND)
        return tutti_batch_run_now(comm, call);

    TUTTI_TRY(tutti_batch_create(comm, &single.batch));
    TUTTI_TRY_OR(out, rc, tutti_batch_add(single.batch, call));
    TUTTI_TRY_OR(out, rc, add_stream(&single, stream));
    TUTTI_TRY_OR(out, rc, issue(&single));
    if (stream == NULL)
        rc = tutti_batch_wait(single.batch);
out:
    tutti_batch_release(single.batch);
    free(single.streams);
    return rc;
}

int tutti_group_job(struct tutti_job *job)
{
    struct tutti_job **jobs;
    int rc;

    if (group.depth > 0) {
        jobs = realloc(group.jobs, (group.job_count + 1) * sizeof *jobs);
        if (jobs == NULL)
            return job->close(job, tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group"));
        group.jobs = jobs;
        jobs[group.job_count++] = job;
        return TUTTI_OK;
    }
    while ((rc = job->progress(job)) == TUTTI_AGAIN)
        job->idle(job);
    return job->close(job, rc);
}

/* ---- running ------------------------------------------------------------------------------- */

/* Take the ticket and queue the batch on its streams. The first stream moves it; with NULL among
 * them the caller does. */
static int issue(struct part *part)
{
    struct tutti_batch *batch = part->batch;
    bool is_ours = false;
    uint32_t streams = 0;
    bool moves = true;

    for (size_t i = 0; i < part->stream_count; i++) {
        is_ours |= part->streams[i] == NULL;
        streams += part->streams[i] != NULL;
    }
    tutti_batch_issue(batch);
    batch->streams_missing = streams;
    batch->references += streams;
    for (size_t i = 0; i < part->stream_count; i++) {
        if (part->streams[i] == NULL)
            continue;
        TUTTI_TRY(tutti_stream_push(part->streams[i], batch, moves && !is_ours));
        moves = false;
    }
    return TUTTI_OK;
}

static bool is_ours(const struct part *part)
{
    for (size_t i = 0; i < part->stream_count; i++)
        if (part->streams[i] == NULL)
            return true;
    return false;
}

static void note(int rc, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    if (rc == TUTTI_OK || *first != TUTTI_OK)
        return;
    *first = rc;
    strncpy(text, tutti_last_message(), TUTTI_MESSAGE_BYTES - 1);
}

/* One look at everything that is not done. Returns how much is left. */
static size_t pass(bool *moved, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    size_t left = 0;

    for (size_t i = 0; i < group.part_count; i++) {
        struct part *part = &group.parts[i];
        int rc;

        if (part->is_done)
            continue;
        rc = tutti_load_acquire(&part->batch->streams_missing) > 0
                 ? TUTTI_AGAIN : tutti_batch_progress(part->batch, moved);
        part->is_done = rc != TUTTI_AGAIN;
        left += !part->is_done;
        if (part->is_done)
            note(rc, first, text);
    }
    for (size_t i = 0; i < group.job_count; i++) {
        int rc;

        if (group.jobs[i] == NULL)
            continue;
        rc = group.jobs[i]->progress(group.jobs[i]);
        if (rc == TUTTI_AGAIN) {
            left++;
            continue;
        }
        note(group.jobs[i]->close(group.jobs[i], rc), first, text);
        group.jobs[i] = NULL;
    }
    return left;
}

/* Nothing moved: with one batch left wait as it likes, else give the core away. */
static void idle(size_t left, uint32_t *passes)
{
    struct tutti_batch *last = NULL;

    for (size_t i = 0; i < group.part_count; i++)
        if (!group.parts[i].is_done)
            last = group.parts[i].batch;
    if (left == 1 && last != NULL)
        tutti_batch_idle(last);
    else if (++*passes > 200)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    else
        sched_yield();
}

static int run_all(void)
{
    char text[TUTTI_MESSAGE_BYTES] = "";
    int first = TUTTI_OK;
    uint32_t passes = 0;
    size_t left;

    for (size_t i = 0; i < group.part_count; i++) {
        int rc = issue(&group.parts[i]);

        note(rc, &first, text);
        group.parts[i].is_done = rc != TUTTI_OK || !is_ours(&group.parts[i]);
    }
    for (;;) {
        bool moved = false;

        left = pass(&moved, &first, text);
        if (left == 0)
            break;
        if (!moved) {
            idle(left, &passes);
            continue;
        }
        passes = 0;
        for (size_t i = 0; i < group.part_count; i++)
            if (!group.parts[i].is_done)
                group.parts[i].batch->idle = (struct tutti_idle){.passes = 0};
    }
    if (first != TUTTI_OK)
        tutti_set_last_message(text);
    return first;
}

static void forget(int rc)
{
    for (size_t i = 0; i < group.part_count; i++) {
        tutti_batch_release(group.parts[i].batch);
        free(group.parts[i].streams);
    }
    /* Left over only when the group was spoiled and not run. */
    for (size_t i = 0; i < group.job_count; i++)
        if (group.jobs[i] != NULL)
            group.jobs[i]->close(group.jobs[i], rc);
    free(group.parts);
    free(group.jobs);
    group.parts = NULL;
    group.jobs = NULL;
    group.part_count = group.job_count = 0;
    group.error = TUTTI_OK;
}

tuttiResult_t tuttiGroupStart(void)
{
    group.depth++;
    return tuttiSuccess;
}

tuttiResult_t tuttiGroupEnd(void)
{
    int rc;

    if (group.depth == 0)
        return tutti_public(tutti_fail(TUTTI_ERR_USAGE,
                                       "tuttiGroupEnd without tuttiGroupStart on this thread"));
    if (--group.depth > 0)
        return tuttiSuccess;
    rc = group.error;
    if (rc != TUTTI_OK)
        tutti_set_last_message(group.error_text);
    else
        rc = run_all();
    forget(rc);
    return tutti_public(rc);
}
