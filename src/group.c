/* SPDX-License-Identifier: Apache-2.0
 * Groups. A thread collects its calls, one batch per communicator, and the
 * communicators it asked to form; the outermost end runs everything together. */
#include "group.h"

#include "comm_gpu.h"
#include "stream.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A stream that a part was called with, and its place in that stream's queue. */
struct use {
    tuttiStream_t stream;
    struct tutti_stream_item *item; /* NULL: pushed */
};

/* One communicator's part of the group. */
struct part {
    struct tutti_batch *batch;
    struct use *uses; /* of different streams */
    size_t use_count;
    bool is_ours; /* called with stream NULL, too: the caller moves it */
    bool is_done;
};

struct group {
    int depth;
    int error; /* of the first call that failed */
    char error_text[TUTTI_MESSAGE_BYTES];
    struct part *parts;
    size_t part_count;
    struct tutti_job **jobs; /* NULL entries are done */
    size_t job_count;
    struct tutti_gpu_part *gpu_parts; /* calls on device memory */
    /* The part of the first communicator and, until a stream is asked for, its batch: most groups
     * have no other, and allocate nothing. */
    struct part first;
    struct tutti_batch batch;
};

/* A thread's group, made at its first and freed with the thread. On the heap: memory of threads
 * that is found without a call is scarce, and a library that is loaded late gets little of it. */
static pthread_key_t group_key;
static int group_key_code; /* of making it: 0, or the process has no key left */
static pthread_once_t group_once = PTHREAD_ONCE_INIT;
/* The same while a group is open, else NULL. Every call asks. */
static _Thread_local struct group *open_group __attribute__((tls_model("initial-exec")));

static void make_key(void)
{
    group_key_code = pthread_key_create(&group_key, free);
}

static int this_group(struct group **ret_group)
{
    struct group *group;

    pthread_once(&group_once, make_key);
    if (group_key_code != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "a key for the groups of threads: %s",
                          strerror(group_key_code));
    group = pthread_getspecific(group_key);
    if (group == NULL) {
        group = calloc(1, sizeof *group);
        if (group == NULL || pthread_setspecific(group_key, group) != 0) {
            free(group);
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group");
        }
    }
    *ret_group = group;
    return TUTTI_OK;
}

bool tutti_group_is_open(void)
{
    return open_group != NULL;
}

int tutti_group_note(int rc)
{
    struct group *group = open_group;

    if (rc != TUTTI_OK && group != NULL && group->error == 0) {
        group->error = rc;
        strncpy(group->error_text, tutti_last_message(), sizeof group->error_text - 1);
    }
    return rc;
}

/* ---- collecting --------------------------------------------------------------------------- */

static struct part *grow_parts(struct group *group)
{
    bool is_first = group->parts == &group->first;
    struct part *parts;

    if (group->part_count == 0)
        return group->parts = &group->first;
    parts = realloc(is_first ? NULL : group->parts, (group->part_count + 1) * sizeof *parts);
    if (parts == NULL)
        return NULL;
    if (is_first)
        parts[0] = group->first;
    return group->parts = parts;
}

static int part_of(struct group *group, struct tutti_comm *comm, struct part **ret_part)
{
    struct part *parts;

    for (size_t i = 0; i < group->part_count; i++)
        if (group->parts[i].batch->comm == comm) {
            *ret_part = &group->parts[i];
            return TUTTI_OK;
        }
    parts = grow_parts(group);
    if (parts == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu communicators",
                          group->part_count + 1);
    parts[group->part_count] = (struct part){.batch = &group->batch};
    if (group->part_count == 0)
        tutti_batch_init(&group->batch, comm);
    else
        TUTTI_TRY(tutti_batch_create(comm, &parts[group->part_count].batch));
    *ret_part = &parts[group->part_count++];
    return TUTTI_OK;
}

static int add_stream(struct group *group, struct part *part, tuttiStream_t stream)
{
    struct use *uses, use = {.stream = stream};

    if (stream == NULL) {
        part->is_ours = true;
        return TUTTI_OK;
    }
    if (part->batch == &group->batch)
        TUTTI_TRY(tutti_batch_move(&group->batch, &part->batch));
    for (size_t i = 0; i < part->use_count; i++)
        if (part->uses[i].stream == stream)
            return TUTTI_OK;
    uses = realloc(part->uses, (part->use_count + 1) * sizeof *uses);
    if (uses != NULL)
        part->uses = uses;
    use.item = malloc(sizeof *use.item);
    if (uses == NULL || use.item == NULL) {
        free(use.item);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the streams of a group");
    }
    uses[part->use_count++] = use;
    return TUTTI_OK;
}

static void drop_part(struct part *part)
{
    tutti_batch_release(part->batch);
    for (size_t i = 0; i < part->use_count; i++)
        free(part->uses[i].item);
    free(part->uses);
}

static void issue(struct part *part);

/* One call on a stream, outside of groups, in the memory that a batch has anyway. */
static int run_single(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream)
{
    struct use use = {.stream = stream};
    struct part single = {.uses = &use, .use_count = 1};
    int rc;

    TUTTI_TRY(tutti_batch_create(comm, &single.batch));
    TUTTI_TRY_OR(out, rc, tutti_batch_add(single.batch, call));
    use.item = &single.batch->place;
    issue(&single);
out:
    tutti_batch_release(single.batch);
    return rc;
}

int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call,
                     struct tutti_found *found, tuttiStream_t stream)
{
    struct group *group = open_group;
    struct part *part;

    if (group != NULL) {
        TUTTI_TRY(part_of(group, comm, &part));
        TUTTI_TRY(add_stream(group, part, stream));
        return tutti_batch_add(part->batch, call);
    }
    if (stream == NULL)
        return tutti_batch_run_now(comm, call, found);
    return run_single(comm, call, stream);
}

int tutti_group_gpu_call(struct tutti_comm *comm, const struct tutti_call *call,
                         tuttiStream_t stream)
{
    struct group *group = open_group;

    return group != NULL ? tutti_gpu_part_add(&group->gpu_parts, comm, call, stream)
                         : tutti_gpu_call(comm, call, stream);
}

int tutti_group_job(struct tutti_job *job)
{
    struct group *group = open_group;
    struct tutti_job **jobs;
    int rc;

    if (group != NULL) {
        jobs = realloc(group->jobs, (group->job_count + 1) * sizeof *jobs);
        if (jobs == NULL)
            return job->close(job, tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group"));
        group->jobs = jobs;
        jobs[group->job_count++] = job;
        return TUTTI_OK;
    }
    while ((rc = job->progress(job)) == TUTTI_AGAIN)
        job->idle(job);
    return job->close(job, rc);
}

/* ---- running ------------------------------------------------------------------------------- */

/* Take the ticket and queue the batch on its streams. The first stream moves it; with NULL among
 * them the caller does. Cannot fail: a batch that some of its streams hold must reach the others,
 * or all would wait for ever. */
static void issue(struct part *part)
{
    struct tutti_batch *batch = part->batch;
    bool moves = !part->is_ours;

    tutti_batch_issue(batch);
    batch->streams_missing = (uint32_t)part->use_count;
    batch->references += (uint32_t)part->use_count;
    for (size_t i = 0; i < part->use_count; i++) {
        struct use *use = &part->uses[i];

        tutti_stream_push(use->stream, use->item, batch, moves);
        use->item = NULL;
        moves = false;
    }
}

static void note(int rc, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    if (rc == TUTTI_OK || *first != TUTTI_OK)
        return;
    *first = rc;
    strncpy(text, tutti_last_message(), TUTTI_MESSAGE_BYTES - 1);
}

/* One look at everything that is not done. Returns how much is left. */
static size_t pass(struct group *group, bool *moved, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    size_t left = 0;

    for (size_t i = 0; i < group->part_count; i++) {
        struct part *part = &group->parts[i];
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
    for (size_t i = 0; i < group->job_count; i++) {
        int rc;

        if (group->jobs[i] == NULL)
            continue;
        rc = group->jobs[i]->progress(group->jobs[i]);
        if (rc == TUTTI_AGAIN) {
            left++;
            continue;
        }
        note(group->jobs[i]->close(group->jobs[i], rc), first, text);
        group->jobs[i] = NULL;
    }
    return left;
}

/* Nothing moved: with one batch left wait as it likes, else give the core away. */
static void idle(const struct group *group, size_t left, uint32_t *passes)
{
    struct tutti_batch *last = NULL;

    for (size_t i = 0; i < group->part_count; i++)
        if (!group->parts[i].is_done)
            last = group->parts[i].batch;
    if (left == 1 && last != NULL)
        tutti_batch_idle(last);
    else if (++*passes > 200)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    else
        sched_yield();
}

static int run_all(struct group *group)
{
    char text[TUTTI_MESSAGE_BYTES] = "";
    int first = TUTTI_OK;
    uint32_t passes = 0;
    size_t left;

    for (size_t i = 0; i < group->part_count; i++) {
        issue(&group->parts[i]);
        group->parts[i].is_done = !group->parts[i].is_ours;
    }
    note(tutti_gpu_parts_launch(group->gpu_parts), &first, text);
    for (;;) {
        bool moved = false;

        left = pass(group, &moved, &first, text);
        if (left == 0)
            break;
        if (!moved) {
            idle(group, left, &passes);
            continue;
        }
        passes = 0;
        for (size_t i = 0; i < group->part_count; i++)
            if (!group->parts[i].is_done)
                group->parts[i].batch->idle = (struct tutti_idle){.passes = 0};
    }
    note(tutti_gpu_parts_wait(group->gpu_parts), &first, text);
    if (first != TUTTI_OK)
        tutti_set_last_message(text);
    return first;
}

/* Is it one communicator's alone, and on no stream? Most groups are. */
static bool is_simple(const struct group *group)
{
    return group->part_count == 1 && group->job_count == 0 && group->gpu_parts == NULL &&
           group->first.batch == &group->batch;
}

static int run_simple(struct group *group)
{
    tutti_batch_issue(&group->batch);
    return tutti_batch_wait(&group->batch);
}

static void forget(struct group *group, int rc)
{
    for (size_t i = 0; i < group->part_count; i++)
        drop_part(&group->parts[i]);
    /* Left over only when the group was spoiled and not run. */
    for (size_t i = 0; i < group->job_count; i++)
        if (group->jobs[i] != NULL)
            group->jobs[i]->close(group->jobs[i], rc);
    if (group->parts != &group->first)
        free(group->parts);
    free(group->jobs);
    tutti_gpu_parts_free(group->gpu_parts);
    group->gpu_parts = NULL;
    group->parts = NULL;
    group->jobs = NULL;
    group->part_count = group->job_count = 0;
    group->error = TUTTI_OK;
}

tuttiResult_t tuttiGroupStart(void)
{
    int rc = open_group == NULL ? this_group(&open_group) : TUTTI_OK;

    if (rc != TUTTI_OK)
        return tutti_public(rc);
    open_group->depth++;
    return tuttiSuccess;
}

tuttiResult_t tuttiGroupEnd(void)
{
    struct group *group = open_group;
    int rc;

    if (group == NULL)
        return tutti_public(tutti_fail(TUTTI_ERR_USAGE,
                                       "tuttiGroupEnd without tuttiGroupStart on this thread"));
    if (--group->depth > 0)
        return tuttiSuccess;
    open_group = NULL;
    rc = group->error;
    if (rc != TUTTI_OK)
        tutti_set_last_message(group->error_text);
    else
        rc = is_simple(group) ? run_simple(group) : run_all(group);
    forget(group, rc);
    return tutti_public(rc);
}
