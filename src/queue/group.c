/* SPDX-License-Identifier: Apache-2.0
 * Groups. A thread collects its calls, one batch per communicator, and its jobs, such as forming
 * communicators. The outermost tuttiGroupEnd runs everything together.
 *
 * Communicators and streams count the open groups that refer to them. None of them can be destroyed
 * before these groups have ended. */
#include "queue/group_private.h"

#include "base/array.h"
#include "base/hot.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key of each thread's group. A group is made at the thread's first tuttiGroupStart and freed
 * when the thread ends. It is on the heap, because static thread-local storage (initial-exec) is
 * scarce. A library that is loaded late gets little of it. */
static pthread_key_t group_key;
static bool has_group_key;
static int group_key_code; /* result of making the key: 0, or an errno */
static pthread_once_t group_once = PTHREAD_ONCE_INIT;
/* The thread's group while it is open, else NULL. Every call reads it, so it must be fast. */
static _Thread_local struct tutti_group *open_group __attribute__((tls_model("initial-exec")));

/* The groups of all threads, to report open ones when the process ends. */
static struct tutti_group *groups;
static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;

static void end_of_thread(void *group);

static void lock_groups(void)
{
    pthread_mutex_lock(&groups_lock);
}

static void unlock_groups(void)
{
    pthread_mutex_unlock(&groups_lock);
}

static void make_key(void)
{
    group_key_code = pthread_key_create(&group_key, end_of_thread);
    if (group_key_code == 0)
        group_key_code = pthread_atfork(lock_groups, unlock_groups, unlock_groups);
    has_group_key = group_key_code == 0;
}

static void add_to_list(struct tutti_group *group)
{
    lock_groups();
    group->next = groups;
    groups = group;
    unlock_groups();
}

static void remove_from_list(struct tutti_group *group)
{
    struct tutti_group **at = &groups;

    lock_groups();
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    unlock_groups();
}

/* Gets the group of this thread, and makes it at the first call. */
static int this_group(struct tutti_group **ret_group)
{
    struct tutti_group *group;

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
        add_to_list(group);
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
    struct tutti_group *group = open_group;

    if (rc != TUTTI_OK && group != NULL && group->error == 0) {
        group->error = rc;
        strncpy(group->error_text, tutti_message_last(), sizeof group->error_text - 1);
    }
    return rc;
}

/* ---- collecting --------------------------------------------------------------------------- */

/* Makes room for one more part. Returns all parts, or NULL if there is no memory. */
static struct tutti_group_part *grow_parts(struct tutti_group *group)
{
    bool is_first = group->parts == &group->first;
    struct tutti_group_part *parts;

    if (group->part_count == 0)
        return group->parts = &group->first;
    parts = realloc(is_first ? NULL : group->parts, (group->part_count + 1) * sizeof *parts);
    if (parts == NULL)
        return NULL;
    if (is_first)
        parts[0] = group->first;
    return group->parts = parts;
}

/* Finds or makes the part of `comm`. The thread must be inside `comm`. */
static int part_of(struct tutti_group *group, struct tutti_comm *comm,
                   struct tutti_group_part **ret_part)
{
    struct tutti_group_part *parts;

    for (size_t i = 0; i < group->part_count; i++)
        if (group->parts[i].comm == comm) {
            *ret_part = &group->parts[i];
            return TUTTI_OK;
        }
    parts = grow_parts(group);
    if (parts == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu communicators",
                          group->part_count + 1);
    parts[group->part_count] = (struct tutti_group_part){.comm = comm};
    tutti_store_relaxed(&group->is_waiting, 1);
    comm->groups++; /* not atomic: the thread is inside */
    *ret_part = &parts[group->part_count++];
    return TUTTI_OK;
}

/* Makes the batch of a part, if it has none. */
static int make_batch(struct tutti_group *group, struct tutti_group_part *part)
{
    if (part->batch != NULL)
        return TUTTI_OK;
    if (part != &group->first)
        return tutti_batch_create(part->comm, &part->batch);
    tutti_batch_init(&group->batch, part->comm);
    part->batch = &group->batch;
    return TUTTI_OK;
}

/* Records that a call of the part names this stream. */
static int add_stream(struct tutti_group *group, struct tutti_group_part *part,
                      tuttiStream_t stream)
{
    struct tutti_group_use use = {.stream = stream};

    if (stream == NULL) {
        part->is_ours = true;
        return TUTTI_OK;
    }
    if (part->batch == &group->batch)
        TUTTI_TRY(tutti_batch_move(&group->batch, &part->batch));
    for (size_t i = 0; i < part->use_count; i++)
        if (part->uses[i].stream == stream)
            return TUTTI_OK;
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(part->uses, part->use_count, part->use_capacity, "streams of a group"));
    use.item = malloc(sizeof *use.item);
    if (use.item == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the streams of a group");
    tutti_stream_hold(stream);
    part->uses[part->use_count++] = use;
    return TUTTI_OK;
}

static void drop_part(struct tutti_group_part *part)
{
    tutti_batch_release(part->batch);
    for (size_t i = 0; i < part->use_count; i++) {
        tutti_stream_let_go(part->uses[i].stream);
        free(part->uses[i].item);
    }
    free(part->uses);
    if (part->is_inside) {
        part->comm->groups--;
        tutti_comm_leave(part->comm);
    } else {
        /* The last access to the communicator, which another thread may be waiting to destroy.
         * release: pairs with the acquire in tutti_group_check_unused */
        (void)tutti_fetch_add(&part->comm->groups_dropped, 1);
    }
}

/* Queues one call on a stream, outside of groups. Uses the batch's inline storage, so the batch is
 * the only allocation. The stream's thread runs it, or the thread that waits for the stream. */
static int queue_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream)
{
    struct tutti_group_use use = {.stream = stream};
    struct tutti_group_part single = {.uses = &use, .use_count = 1};
    int rc;

    TUTTI_TRY(tutti_batch_create(comm, &single.batch));
    TUTTI_TRY_OR(out, rc, tutti_batch_add(single.batch, call));
    use.item = &single.batch->stream_item;
    tutti_group_issue(&single);
out:
    tutti_batch_release(single.batch);
    return rc;
}

/* Counts one more call on `comm` in the open group, and returns the communicator's part. */
static int count_call(struct tutti_group *group, struct tutti_comm *comm,
                      const struct tutti_call *call, struct tutti_group_part **ret_part)
{
    TUTTI_TRY(part_of(group, comm, ret_part));
    (*ret_part)->call_count++;
    if (tutti_call_is_message(call) && call->root == comm->rank)
        (*ret_part)->sends_to_itself = true;
    return TUTTI_OK;
}

TUTTI_HOT
int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call,
                     struct tutti_calls_recalled *found, tuttiStream_t stream)
{
    struct tutti_group *group = open_group;
    struct tutti_group_part *part;

    if (group != NULL) {
        TUTTI_TRY(count_call(group, comm, call, &part));
        TUTTI_TRY(make_batch(group, part));
        TUTTI_TRY(add_stream(group, part, stream));
        return tutti_batch_add(part->batch, call);
    }
    if (stream == NULL)
        return tutti_batch_run_now(comm, call, found);
    return queue_call(comm, call, stream);
}

int tutti_group_gpu_call(struct tutti_comm *comm, const struct tutti_call *call,
                         tuttiStream_t stream)
{
    struct tutti_group *group = open_group;
    struct tutti_group_part *part;

    if (group == NULL)
        return tutti_gpu_call(comm, call, stream);
    TUTTI_TRY(count_call(group, comm, call, &part));
    return tutti_gpu_part_add(&group->gpu_parts, comm, call, stream);
}

static int keep_job(struct tutti_group *group, struct tutti_job *job)
{
    struct tutti_group_part *part;

    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(group->jobs, group->job_count, group->job_capacity, "jobs of a group"));
    if (job->parent != NULL) {
        TUTTI_TRY(part_of(group, job->parent, &part));
        part->call_count++;
    }
    group->jobs[group->job_count++] = job;
    tutti_store_relaxed(&group->is_waiting, 1);
    return TUTTI_OK;
}

int tutti_group_job(struct tutti_job *job)
{
    struct tutti_group *group = open_group;
    int rc;

    if (group != NULL) {
        rc = keep_job(group, job);
        return rc == TUTTI_OK ? rc : job->close(job, rc);
    }
    while ((rc = job->progress(job)) == TUTTI_AGAIN)
        job->idle(job);
    return job->close(job, rc);
}

/* ---- checking messages of a rank to itself --------------------------------------------------- */

/* A message of a part, for host and device memory alike. */
struct message {
    const struct tutti_signature *signature; /* NULL: past the last message */
    int peer;
    bool sends;
};

static struct message host_message(const struct tutti_group *group,
                                   const struct tutti_group_part *part, size_t index)
{
    const struct tutti_engine_message *message;

    (void)group;
    if (part->batch == NULL || index >= part->batch->message_count)
        return (struct message){.signature = NULL};
    message = &part->batch->messages[index];
    return (struct message){&message->header.signature, message->peer, message->sends};
}

static struct message device_message(const struct tutti_group *group,
                                     const struct tutti_group_part *part, size_t index)
{
    const struct tutti_call *call = tutti_gpu_part_call(group->gpu_parts, part->comm, index);

    if (call == NULL)
        return (struct message){.signature = NULL};
    return (struct message){&call->signature, tutti_call_is_message(call) ? call->root : -1,
                            call->kind == TUTTI_CALL_SEND};
}

typedef struct message (*message_fn)(const struct tutti_group *group,
                                     const struct tutti_group_part *part, size_t index);

/* Returns the next message from the rank to itself in one direction, from index *at on. Moves *at
 * behind the message. */
static const struct tutti_signature *next_own(const struct tutti_group *group,
                                              const struct tutti_group_part *part, message_fn get,
                                              bool sends, size_t *at)
{
    struct message message;

    do
        message = get(group, part, (*at)++);
    while (message.signature != NULL &&
           (message.peer != part->comm->rank || message.sends != sends));
    return message.signature;
}

/* A rank that sends to itself must receive these messages in the same group and order. */
static int check_own_messages(const struct tutti_group *group, const struct tutti_group_part *part,
                              message_fn get)
{
    char sent_text[TUTTI_SIGNATURE_TEXT_BYTES], received_text[TUTTI_SIGNATURE_TEXT_BYTES];
    const struct tutti_signature *sent, *received;
    size_t next_sent = 0, next_received = 0, number = 0;

    do {
        sent = next_own(group, part, get, true, &next_sent);
        received = next_own(group, part, get, false, &next_received);
        number++;
        if ((sent == NULL) != (received == NULL))
            return tutti_fail(TUTTI_ERR_USAGE, "tuttiGroupEnd: message %zu from rank %d to itself, "
                              "%s, is only %s in this group; the group needs a tuttiSend and a "
                              "tuttiRecv for it", number, part->comm->rank,
                              tutti_signature_format(sent ? sent : received, sent_text),
                              sent ? "sent" : "received");
    } while (sent != NULL && tutti_signature_equal(sent, received));
    if (sent == NULL)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "tuttiGroupEnd: message %zu from rank %d to itself is sent "
                      "as %s and received as %s; count and data type must be equal", number,
                      part->comm->rank, tutti_signature_format(sent, sent_text),
                      tutti_signature_format(received, received_text));
}

/* Checks the messages of all parts. This must be done before anything is started. */
static int check_parts(const struct tutti_group *group)
{
    for (size_t i = 0; i < group->part_count; i++) {
        const struct tutti_group_part *part = &group->parts[i];

        if (!part->sends_to_itself)
            continue;
        TUTTI_TRY(check_own_messages(group, part, host_message));
        TUTTI_TRY(check_own_messages(group, part, device_message));
    }
    return TUTTI_OK;
}

/* ---- refusing and reporting ------------------------------------------------------------------ */

enum { PART_TEXT_BYTES = 320 };

/* Writes "2 calls on rank 0 of 4, among them allreduce(count 10, float32, sum)". */
static const char *describe(const struct tutti_group *group, const struct tutti_group_part *part,
                            char text[PART_TEXT_BYTES])
{
    char first[TUTTI_SIGNATURE_TEXT_BYTES] = "";
    const struct tutti_call *device_call = tutti_gpu_part_call(group->gpu_parts, part->comm, 0);
    const struct tutti_comm *comm = part->comm;
    bool is_single = part->call_count == 1;

    if (part->batch != NULL && part->batch->collective_count > 0)
        tutti_signature_format(&part->batch->collectives[0].signature, first);
    else if (part->batch != NULL && part->batch->message_count > 0)
        tutti_signature_format(&part->batch->messages[0].header.signature, first);
    else if (device_call != NULL)
        tutti_signature_format(&device_call->signature, first);
    snprintf(text, PART_TEXT_BYTES, "%zu call%s on rank %d of %d%s%s%s%s%s", part->call_count,
             is_single ? "" : "s", comm->rank, comm->nranks, *comm->name ? " of communicator " : "",
             comm->name, *first == '\0' ? "" : is_single ? ": " : ", among them ", first,
             group->depth > 1 ? " (groups are nested)" : "");
    return text;
}

int tutti_group_check_unused(const struct tutti_comm *comm, const char *function)
{
    const struct tutti_group *group = open_group;
    char text[PART_TEXT_BYTES];

    /* acquire: pairs with the release in drop_part; those groups are done with the communicator */
    if (comm->groups == tutti_load_acquire(&comm->groups_dropped))
        return TUTTI_OK;
    for (size_t i = 0; group != NULL && i < group->part_count; i++)
        if (group->parts[i].comm == comm)
            return tutti_fail(TUTTI_ERR_USAGE, "%s: an open group of this thread holds %s; call "
                              "tuttiGroupEnd first", function,
                              describe(group, &group->parts[i], text));
    return tutti_fail(TUTTI_ERR_USAGE, "%s: an open group of another thread holds calls on rank "
                      "%d of %d; that thread must call tuttiGroupEnd first", function, comm->rank,
                      comm->nranks);
}

/* Reports collected calls that can never run any more. A child of fork reports nothing, because its
 * copy of the group belongs to its parent. */
static void report_unrun(const struct tutti_group *group, const char *when)
{
    char text[PART_TEXT_BYTES];

    if ((group->part_count == 0 && group->job_count == 0) ||
        group->fork_generation != tutti_comm_fork_generation())
        return;
    if (group->part_count == 0)
        snprintf(text, sizeof text, "%zu call%s to form communicators",
                 group->job_count, group->job_count == 1 ? "" : "s");
    else
        describe(group, &group->parts[0], text);
    if (group->part_count > 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", and calls on %zu other "
                 "communicators", group->part_count - 1);
    tutti_log(TUTTI_LOG_ERROR, "%s inside a group that tuttiGroupStart had opened: %s. They never "
              "ran, and their results were not computed; call tuttiGroupEnd", when, text);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Releases everything that the group holds. `rc` is the result for jobs that were not run. */
static void forget(struct tutti_group *group, int rc)
{
    /* Jobs are left only if the group was not run. Close them before the parts are dropped, because
     * jobs refer to the communicators of the parts. */
    for (size_t i = 0; i < group->job_count; i++)
        if (group->jobs[i] != NULL)
            group->jobs[i]->close(group->jobs[i], rc);
    for (size_t i = 0; i < group->part_count; i++)
        drop_part(&group->parts[i]);
    if (group->parts != &group->first)
        free(group->parts);
    free(group->jobs);
    tutti_gpu_parts_free(group->gpu_parts);
    group->gpu_parts = NULL;
    group->parts = NULL;
    group->jobs = NULL;
    group->part_count = group->job_count = 0;
    group->job_capacity = 0;
    group->error = TUTTI_OK;
}

/* Called by pthreads when a thread ends that has a group. */
static void end_of_thread(void *argument)
{
    struct tutti_group *group = argument;

    open_group = NULL;
    if (group->depth > 0) {
        report_unrun(group, "a thread ended");
        forget(group, TUTTI_ERR_USAGE);
    }
    remove_from_list(group);
    free(group);
}

/* The other threads still run and may be adding calls, so it is safe only to count their groups. */
static void report_other_threads(void)
{
    size_t count = 0;

    lock_groups();
    for (const struct tutti_group *at = groups; at != NULL; at = at->next)
        if (at != open_group && at->fork_generation == tutti_comm_fork_generation() &&
            tutti_load_relaxed(&at->is_waiting) != 0)
            count++;
    unlock_groups();
    if (count > 0)
        tutti_log(TUTTI_LOG_ERROR, "the process ended inside a group that tuttiGroupStart had "
                  "opened on %s. Its calls never ran, and their results were not computed; call "
                  "tuttiGroupEnd before the process ends", count == 1 ? "another thread"
                                                                      : "each of several threads");
}

/* Runs when the process ends or unloads the library. After that the code of end_of_thread may be
 * gone, so the key is deleted, and threads that end no longer call that function. */
__attribute__((destructor)) static void unload(void)
{
    if (open_group != NULL)
        report_unrun(open_group, "the process ended");
    report_other_threads();
    if (has_group_key)
        pthread_key_delete(group_key);
}

tuttiResult_t tuttiGroupStart(void)
{
    int rc = open_group == NULL ? this_group(&open_group) : TUTTI_OK;

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    if (open_group->depth++ == 0)
        open_group->fork_generation = tutti_comm_fork_generation();
    return tuttiSuccess;
}

/* Gives this thread exclusive use of all communicators of the group. */
static int enter_all(struct tutti_group *group)
{
    for (size_t i = 0; i < group->part_count; i++) {
        TUTTI_TRY(tutti_comm_enter(group->parts[i].comm, "tuttiGroupEnd"));
        group->parts[i].is_inside = true;
    }
    return TUTTI_OK;
}

static int run(struct tutti_group *group)
{
    TUTTI_TRY(enter_all(group));
    TUTTI_TRY(check_parts(group));
    return tutti_group_run(group);
}

tuttiResult_t tuttiGroupEnd(void)
{
    struct tutti_group *group = open_group;
    int rc;

    if (group == NULL)
        return tutti_public_result(tutti_fail(TUTTI_ERR_USAGE,
                                       "tuttiGroupEnd without tuttiGroupStart on this thread"));
    if (--group->depth > 0)
        return tuttiSuccess;
    open_group = NULL;
    tutti_store_relaxed(&group->is_waiting, 0);
    rc = group->error;
    if (rc != TUTTI_OK)
        tutti_message_set_last(group->error_text);
    else
        rc = run(group);
    forget(group, rc);
    return tutti_public_result(rc);
}
