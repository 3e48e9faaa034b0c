/* SPDX-License-Identifier: Apache-2.0
 * Makes and destroys mailboxes, and decides which thread drives the engine of a mailbox. */
#include "queue/mailbox.h"

#include "base/clock.h"
#include "base/long_wait.h"
#include "queue/stream_cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Idle passes between two readings of the clock, and the time between two checks of the peers. */
enum { WATCH_PASSES = 256, WATCH_NS = 5000000 };
/* The time that a mailbox waits, when it is destroyed, for peers to read its last frames. */
enum { LEAVE_MS = 1000 };

struct tuttiMailbox {
    struct tuttiMailbox *next;    /* in the list of live mailboxes */
    uint32_t fork_generation;
    uint32_t visitors;            /* threads in a call on the mailbox; protected by live_lock */
    tuttiComm_t child;
    struct tutti_comm *comm;      /* the state of `child` */

    /* Only the thread that drives touches these. */
    struct tutti_mail mail;
    struct tutti_idle idle;
    struct tutti_long_wait wait;
    uint32_t passes;
    uint64_t watched_ns;
    bool has_failed;              /* every request fails from now on */

    /* Atomic: there are commands for the thread that drives, which are requests to begin and a
     * request to cancel. */
    uint32_t has_commands;
    uint32_t waiters;             /* atomic, changed under the lock: threads that wait */

    pthread_mutex_t lock;         /* protects all fields below */
    pthread_cond_t work;          /* wakes the thread of the mailbox */
    pthread_cond_t changed;       /* wakes threads that wait while another one drives */
    struct tuttiRequest *first_posted, *last_posted;
    struct tuttiRequest *to_cancel; /* NULL: none */
    bool is_driven;               /* some thread drives */
    size_t open_count;            /* requests that are not done */
    bool has_thread, is_closing;
    pthread_t thread;
};

/* The list of live mailboxes. A pointer that is not in it is never dereferenced. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER; /* a mailbox has no visitors any more */
static struct tuttiMailbox *live_boxes;

/* ---- entering and leaving -------------------------------------------------------------- */

int tutti_mailbox_try_enter(struct tuttiMailbox *box)
{
    struct tuttiMailbox *at;
    int rc = TUTTI_ERR_ARGUMENT;

    pthread_mutex_lock(&live_lock);
    for (at = live_boxes; at != NULL && at != box; at = at->next)
        ;
    if (at != NULL)
        rc = at->fork_generation == tutti_comm_fork_generation() ? TUTTI_OK : TUTTI_ERR_USAGE;
    if (rc == TUTTI_OK) {
        at->visitors++;
        tutti_log_enter(&at->comm->scope);
    }
    pthread_mutex_unlock(&live_lock);
    return rc;
}

int tutti_mailbox_enter(struct tuttiMailbox *box, const char *function)
{
    int rc = tutti_mailbox_try_enter(box);

    if (rc == TUTTI_ERR_ARGUMENT)
        return tutti_fail(rc, "%s: mailbox is not one that tuttiMailboxCreate has made, or is "
                          "destroyed", function);
    if (rc == TUTTI_ERR_USAGE)
        return tutti_fail(rc, "%s: mailbox was made before fork; a child must make its own",
                          function);
    return rc;
}

void tutti_mailbox_leave(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&live_lock);
    if (--box->visitors == 0)
        pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&live_lock);
}

struct tutti_comm *tutti_mailbox_comm(const struct tuttiMailbox *box)
{
    return box->comm;
}

/* ---- driving: by one thread at a time --------------------------------------------------- */

/* Called when the engine is done with a request. A thread that waits for the request may free it as
 * soon as is_done is set. */
static void note_done(void *context, struct tutti_mail_request *mail)
{
    struct tuttiMailbox *box = context;

    pthread_mutex_lock(&box->lock);
    box->open_count--;
    /* release: pairs with the acquire of a thread that waits */
    tutti_store_release(&mail->is_done, 1);
    if (tutti_load_relaxed(&box->waiters) > 0)
        pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

/* Ends all requests, and makes all later ones fail. */
static void fail_all(struct tuttiMailbox *box, int rc)
{
    char message[TUTTI_MESSAGE_BYTES + 128];

    if (tutti_comm_failure(box->comm) == 0) {
        snprintf(message, sizeof message, "%s%srank %d, messages: %s", box->comm->name,
                 *box->comm->name ? ": " : "", box->comm->rank, tutti_message_last());
        tutti_comm_fail(box->comm, rc, message);
    }
    box->has_failed = true;
    tutti_mail_fail(&box->mail, tutti_comm_failure(box->comm));
}

/* Begins the requests of a list. Returns the first error. */
static int post_all(struct tuttiMailbox *box, struct tuttiRequest *at)
{
    int rc = TUTTI_OK;

    while (at != NULL) {
        struct tuttiRequest *next = at->next_posted;
        int one = tutti_mail_post(&box->mail, &at->mail); /* the request may be freed now */

        rc = rc == TUTTI_OK ? one : rc;
        at = next;
    }
    return rc;
}

static bool has_commands(const struct tuttiMailbox *box)
{
    /* acquire: pairs with the release in announce_commands */
    return tutti_load_acquire(&box->has_commands) != 0;
}

/* Begins the requests that other threads have posted, and cancels the one to be canceled. */
static int take_commands(struct tuttiMailbox *box, bool *ret_moved)
{
    struct tuttiRequest *posted, *to_cancel;
    int rc;

    if (!has_commands(box))
        return TUTTI_OK;
    *ret_moved = true;
    pthread_mutex_lock(&box->lock);
    posted = box->first_posted;
    to_cancel = box->to_cancel;
    box->first_posted = box->last_posted = NULL;
    tutti_store_relaxed(&box->has_commands, 0);
    pthread_mutex_unlock(&box->lock);
    rc = post_all(box, posted);
    if (to_cancel == NULL)
        return rc;
    (void)tutti_mail_cancel(&box->mail, &to_cancel->mail);
    pthread_mutex_lock(&box->lock);
    box->to_cancel = NULL;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return rc;
}

/* Writes the call that waits for `rank`, such as "tuttiMailboxRecv(count 4, int32, tag 7)". Writes
 * "a message" if no receive waits for a message. In that case a send waits, or a receive that has
 * its message. */
static void name_call(const struct tuttiMailbox *box, int rank, char *ret_text, size_t size)
{
    const struct tutti_mail_request *receive = tutti_mail_oldest_receive(&box->mail, rank);
    char tag[24] = "any tag";

    if (receive == NULL) {
        snprintf(ret_text, size, "a message");
        return;
    }
    if (receive->tag != TUTTI_MAIL_ANY)
        snprintf(tag, sizeof tag, "tag %lld", (long long)receive->tag);
    snprintf(ret_text, size, "tuttiMailboxRecv(count %zu, %s, %s)", receive->count,
             tutti_type_name(receive->type), tag);
}

static void warn_of_wait(struct tuttiMailbox *box, uint64_t now_ns)
{
    int rank = tutti_mail_waits_for(&box->mail);
    char whom[32] = "any rank", call[96], others[40] = "";
    double seconds;

    if (!tutti_long_wait_is_due(&box->wait, now_ns, &seconds))
        return;
    if (rank >= 0)
        snprintf(whom, sizeof whom, "rank %d", rank);
    if (box->mail.pending > 1)
        snprintf(others, sizeof others, " (with %zu more)", box->mail.pending - 1);
    name_call(box, rank, call, sizeof call);
    tutti_log(TUTTI_LOG_WARN, "%s%s: has been waiting for %s for %.1f s", call, others, whom,
              seconds);
}

/* acquire: pairs with the release in note_done; the result of the request is in place. */
static bool is_done(const struct tuttiRequest *request)
{
    return tutti_load_acquire(&request->mail.is_done) != 0;
}

/* acquire and release: both pair with themselves; the lock orders all other fields. */
static void count_waiter(struct tuttiMailbox *box, int change)
{
    (void)tutti_fetch_add(&box->waiters, (uint32_t)change);
}

/* Called after each idle pass. From time to time it checks for events that end all waits. */
static int watch(struct tuttiMailbox *box)
{
    uint64_t now_ns;

    if (tutti_comm_failure(box->comm) != 0)
        return tutti_comm_error(box->comm);
    if (++box->passes % WATCH_PASSES != 0 && tutti_idle_is_spinning(&box->idle))
        return TUTTI_OK;
    now_ns = tutti_now_ns();
    if (now_ns - box->watched_ns < WATCH_NS)
        return TUTTI_OK;
    box->watched_ns = now_ns;
    if (tutti_load_relaxed(&box->waiters) > 0)
        warn_of_wait(box, now_ns);
    TUTTI_TRY(tutti_fabric_check(box->comm->fabric));
    return tutti_mail_look_for_leavers(&box->mail);
}

/* Makes one pass over all that is pending. */
static void pass(struct tuttiMailbox *box, bool *ret_moved)
{
    int rc = take_commands(box, ret_moved);

    if (rc == TUTTI_OK && box->mail.pending > 0 && !box->has_failed)
        rc = tutti_mail_progress(&box->mail, ret_moved);
    if (rc == TUTTI_OK && box->mail.pending > 0 && !*ret_moved)
        rc = watch(box);
    if (rc != TUTTI_OK || box->has_failed)
        fail_all(box, rc);
    if (*ret_moved) {
        box->idle = (struct tutti_idle){.passes = 0};
        box->wait = (struct tutti_long_wait){.lines = 0};
    }
}

/* Drives until `request` is done or the deadline passes. If `request` is NULL, drives until nothing
 * is pending, or until a thread waits, because that thread drives then. A `deadline_ns` of 0 means
 * one pass. On entry and on return the lock is held and no thread drives. The lock is released in
 * between. */
static void drive(struct tuttiMailbox *box, const struct tuttiRequest *request,
                  uint64_t deadline_ns)
{
    box->is_driven = true;
    pthread_mutex_unlock(&box->lock);
    tutti_log_enter(&box->comm->scope);
    for (;;) {
        bool moved = false;

        pass(box, &moved);
        if (request != NULL ? is_done(request)
                            : tutti_load_relaxed(&box->waiters) > 0 ||
                                  (box->mail.pending == 0 && !has_commands(box)))
            break;
        if (deadline_ns == 0 || (deadline_ns != TUTTI_NEVER && tutti_now_ns() >= deadline_ns))
            break;
        if (!moved)
            tutti_fabric_idle(box->comm->fabric, &box->idle);
    }
    pthread_mutex_lock(&box->lock);
    box->is_driven = false;
}

/* Wakes the threads that can drive next. The lock is held. */
static void hand_over(struct tuttiMailbox *box)
{
    if (tutti_load_relaxed(&box->waiters) > 0)
        pthread_cond_broadcast(&box->changed);
    else if (box->open_count > 0)
        pthread_cond_signal(&box->work);
}

/* The thread of the mailbox. */
static void *run(void *argument)
{
    struct tuttiMailbox *box = argument;

    pthread_mutex_lock(&box->lock);
    while (!box->is_closing) {
        bool has_waiters = tutti_load_relaxed(&box->waiters) > 0;

        if (box->open_count > 0 && !box->is_driven && !has_waiters) {
            drive(box, NULL, TUTTI_NEVER);
            continue;
        }
        if (!box->is_driven && has_waiters)
            pthread_cond_broadcast(&box->changed); /* one of the threads that wait must drive */
        pthread_cond_wait(&box->work, &box->lock);
    }
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Called with the lock held, once the commands are in place. */
static void announce_commands(struct tuttiMailbox *box)
{
    /* release: pairs with the acquire in has_commands */
    tutti_store_release(&box->has_commands, 1);
}

/* The lock is held. */
static void append_posted(struct tuttiMailbox *box, struct tuttiRequest *request)
{
    request->next_posted = NULL;
    if (box->first_posted == NULL)
        box->first_posted = request;
    else
        box->last_posted->next_posted = request;
    box->last_posted = request;
    announce_commands(box);
}

/* Makes one pass, unless another thread drives. Most small messages are sent or received after one
 * pass, so that no thread needs to be woken. The lock is held. */
static void make_one_pass(struct tuttiMailbox *box)
{
    if (box->is_driven) {
        tutti_fabric_wake(box->comm->fabric);
        return;
    }
    drive(box, NULL, 0);
    hand_over(box);
}

/* Starts the thread of the mailbox if there is none. Fails if the mailbox is being destroyed,
 * because nothing would end the request then. The lock is held. */
static int prepare_for_request(struct tuttiMailbox *box)
{
    if (box->is_closing)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %d: another thread destroys the mailbox; begin "
                          "no messages on it any more", box->comm->rank);
    if (!box->has_thread)
        TUTTI_TRY(tutti_stream_thread(run, box, &box->thread));
    box->has_thread = true;
    return TUTTI_OK;
}

int tutti_mailbox_post(struct tuttiMailbox *box, struct tuttiRequest *request)
{
    int rc = tutti_comm_error(box->comm);

    if (rc != TUTTI_OK)
        return rc;
    pthread_mutex_lock(&box->lock);
    TUTTI_TRY_OR(unlock, rc, prepare_for_request(box));
    box->open_count++;
    append_posted(box, request);
    make_one_pass(box);
unlock:
    pthread_mutex_unlock(&box->lock);
    return rc;
}

static struct timespec as_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / TUTTI_NS_PER_S),
                             .tv_nsec = (long)(ns % TUTTI_NS_PER_S)};
}

int tutti_mailbox_wait(struct tuttiMailbox *box, struct tuttiRequest *request,
                       uint64_t deadline_ns)
{
    struct timespec until = as_timespec(deadline_ns);
    bool is_late = false;

    if (is_done(request))
        return TUTTI_OK;
    pthread_mutex_lock(&box->lock);
    count_waiter(box, 1);
    while (!is_done(request) && !is_late) {
        if (!box->is_driven) {
            drive(box, request, deadline_ns);
            is_late = deadline_ns != TUTTI_NEVER && tutti_now_ns() >= deadline_ns;
            continue;
        }
        /* If the thread of the mailbox drives, it sees the waiter and stops. */
        tutti_fabric_wake(box->comm->fabric);
        if (deadline_ns == TUTTI_NEVER)
            pthread_cond_wait(&box->changed, &box->lock);
        else
            is_late = pthread_cond_timedwait(&box->changed, &box->lock, &until) == ETIMEDOUT;
    }
    count_waiter(box, -1);
    if (!box->is_driven)
        hand_over(box);
    pthread_mutex_unlock(&box->lock);
    return is_done(request) ? TUTTI_OK : TUTTI_AGAIN;
}

void tutti_mailbox_cancel(struct tuttiMailbox *box, struct tuttiRequest *request)
{
    pthread_mutex_lock(&box->lock);
    count_waiter(box, 1);
    while (box->to_cancel != NULL)
        pthread_cond_wait(&box->changed, &box->lock);
    request->is_canceled = true;
    box->to_cancel = request;
    announce_commands(box);
    while (box->to_cancel == request) {
        if (!box->is_driven) {
            drive(box, NULL, 0);
            continue;
        }
        tutti_fabric_wake(box->comm->fabric);
        pthread_cond_wait(&box->changed, &box->lock);
    }
    count_waiter(box, -1);
    if (!box->is_driven)
        hand_over(box);
    pthread_mutex_unlock(&box->lock);
}

/* ---- life ------------------------------------------------------------------------------- */

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int tutti_mailbox_create(tuttiComm_t child, struct tutti_comm *comm, struct tuttiMailbox **ret_box)
{
    struct tuttiMailbox *box = calloc(1, sizeof *box);
    int rc = TUTTI_ERR_SYSTEM;

    if (box == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a mailbox");
        goto destroy_child;
    }
    box->child = child;
    box->comm = comm;
    box->fork_generation = tutti_comm_fork_generation();
    TUTTI_TRY_OR(free_box, rc, tutti_mail_init(&box->mail, comm->fabric, comm->nranks, comm->rank,
                                               note_done, box));
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->work, NULL);
    init_condition(&box->changed);
    pthread_mutex_lock(&live_lock);
    box->next = live_boxes;
    live_boxes = box;
    pthread_mutex_unlock(&live_lock);
    *ret_box = box;
    return TUTTI_OK;

free_box:
    free(box);
destroy_child:
    (void)tuttiCommDestroy(child);
    return rc;
}

/* Refuses new visitors. Visitors that are inside are not affected. */
static void remove_live(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&live_lock);
    for (struct tuttiMailbox **at = &live_boxes; *at != NULL; at = &(*at)->next)
        if (*at == box) {
            *at = box->next;
            break;
        }
    pthread_mutex_unlock(&live_lock);
}

static void stop_thread(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->is_closing = true;
    pthread_cond_signal(&box->work);
    pthread_mutex_unlock(&box->lock);
    if (box->has_thread)
        pthread_join(box->thread, NULL);
}

/* Fails all open requests, so that the threads that wait for them return. */
static void end_requests(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&box->lock);
    while (box->open_count > 0) {
        if (box->is_driven) {
            tutti_fabric_wake(box->comm->fabric);
            pthread_cond_wait(&box->changed, &box->lock);
            continue;
        }
        box->is_driven = true;
        pthread_mutex_unlock(&box->lock);
        (void)take_commands(box, &(bool){false});
        tutti_mail_fail(&box->mail, TUTTI_ERR_USAGE);
        pthread_mutex_lock(&box->lock);
        box->is_driven = false;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&box->lock);
}

/* Tells the peers that this rank leaves the mailbox, for at most LEAVE_MS. */
static void say_bye(struct tuttiMailbox *box)
{
    uint64_t deadline_ns = tutti_deadline_ns(LEAVE_MS);
    struct tutti_idle idle = {.passes = 0};

    while (tutti_comm_failure(box->comm) == 0 && tutti_mail_leave(&box->mail) == TUTTI_AGAIN &&
           tutti_now_ns() < deadline_ns)
        tutti_fabric_idle(box->comm->fabric, &idle);
}

void tutti_mailbox_destroy(struct tuttiMailbox *box)
{
    remove_live(box);
    /* Count this thread as a waiter, so that the thread of the mailbox stops driving. */
    count_waiter(box, 1);
    tutti_fabric_wake(box->comm->fabric);
    stop_thread(box);
    end_requests(box);
    pthread_mutex_lock(&live_lock);
    while (box->visitors > 0)
        pthread_cond_wait(&left, &live_lock);
    pthread_mutex_unlock(&live_lock);
    say_bye(box);
    tutti_mail_fini(&box->mail);
    tutti_log_enter(NULL);
    (void)tuttiCommDestroy(box->child);
    pthread_cond_destroy(&box->work);
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
    free(box);
}
