/* SPDX-License-Identifier: Apache-2.0
 * Makes and destroys mailboxes, and decides which thread drives the engine of a mailbox.
 *
 * To drive means to make passes over the engine (mail/mail.h): each pass moves the bytes that can
 * be moved. `is_driven` is set while a thread drives, so that only one thread at a time uses the
 * engine. The driving thread does not hold the lock during a pass. Three kinds of threads drive:
 *
 *  - A thread that begins a request makes one pass, unless another thread drives.
 *  - A thread that waits for a request drives until that request is done. If another thread drives
 *    already, the waiting thread sleeps on `changed` instead.
 *  - The mailbox's own thread drives while requests are open and no thread waits. It sleeps on
 *    `work` otherwise. The first request starts this thread.
 *
 * `waiters` counts the threads that want to drive or to sleep on `changed`. While the count is not
 * 0, the mailbox's own thread stops after its current pass. A thread that stops driving calls
 * hand_over, which wakes the next driver.
 *
 * A thread that does not drive never touches the engine. It leaves commands, which are a list of
 * requests to begin and one request to cancel. Every pass begins with these commands. Since the
 * driving thread may sleep in tutti_fabric_idle, tutti_fabric_wake must follow a command.
 *
 * Visitors are threads inside a function that has entered the mailbox. They keep the mailbox from
 * being freed. */
#include "queue/mailbox.h"

#include "base/clock.h"
#include "base/long_wait.h"
#include "queue/stream_cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WATCH_PASSES = 256, /* passes without progress between two readings of the clock */
    WATCH_NS = 5000000, /* time between two checks of the peers */
    LEAVE_MS = 1000,    /* longest time that destroying a mailbox tries to send BYE to all peers */
};

struct tuttiMailbox {
    struct tuttiMailbox *next;    /* in the list of live mailboxes */
    uint32_t fork_generation;     /* of the process that made the mailbox */
    uint32_t visitors;            /* threads in a call on the mailbox; protected by live_lock */
    tuttiComm_t child;            /* the mailbox's own communicator */
    struct tutti_comm *comm;      /* the state of `child` */

    /* Only the driving thread touches the next six members. */
    struct tutti_mail mail;       /* the engine */
    struct tutti_idle idle;       /* of the passes since the last progress */
    struct tutti_long_wait wait;  /* decides when to warn of a wait without progress */
    uint32_t passes;              /* passes that watch() has counted; wraps around */
    uint64_t watched_ns;          /* time at which watch() last checked the peers */
    bool has_failed;              /* every request fails from now on */

    /* Atomic flag: there are commands for the driving thread. */
    uint32_t has_commands;
    /* Atomic: threads that wait for a request or for a cancel, and the thread that destroys. */
    uint32_t waiters;
    /* Atomic flag, set under the lock: the mailbox is being destroyed. A thread that drives stops
     * after its pass, so that the destroying thread can drive, and `thread` ends. */
    bool is_closing;

    pthread_mutex_t lock;         /* protects all members below */
    pthread_cond_t work;          /* wakes the mailbox's own thread */
    pthread_cond_t changed;       /* wakes threads that wait while another one drives */
    struct tuttiRequest *first_posted, *last_posted; /* requests to begin; NULL: none */
    struct tuttiRequest *to_cancel; /* NULL: none; NULL again as soon as the cancel is done */
    bool is_driven;               /* some thread drives */
    size_t open_count;            /* requests that are not done */
    bool has_thread;              /* `thread` has been started */
    pthread_t thread;             /* the mailbox's own thread */
};

/* The list of live mailboxes. A pointer that is not in the list is never dereferenced. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tuttiMailbox *live_boxes;
/* Wakes threads that destroy mailboxes: some mailbox has no visitors any more. */
static pthread_cond_t last_visitor_left = PTHREAD_COND_INITIALIZER;

/* ---- entering and leaving -------------------------------------------------------------- */

int tutti_mailbox_try_enter(struct tuttiMailbox *box)
{
    struct tuttiMailbox *found;
    int rc = TUTTI_ERR_ARGUMENT;

    pthread_mutex_lock(&live_lock);
    for (found = live_boxes; found != NULL && found != box; found = found->next)
        ;
    if (found != NULL)
        rc = found->fork_generation == tutti_comm_fork_generation() ? TUTTI_OK : TUTTI_ERR_USAGE;
    if (rc == TUTTI_OK) {
        found->visitors++;
        tutti_log_enter(&found->comm->scope);
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
        pthread_cond_broadcast(&last_visitor_left);
    pthread_mutex_unlock(&live_lock);
}

struct tutti_comm *tutti_mailbox_comm(const struct tuttiMailbox *box)
{
    return box->comm;
}

/* ---- driving: by one thread at a time --------------------------------------------------- */

/* The engine calls this function when it is done with a request. A thread that waits for the
 * request may free the request as soon as is_done is set. */
static void note_done(void *context, struct tutti_mail_request *mail)
{
    struct tuttiMailbox *box = context;

    pthread_mutex_lock(&box->lock);
    box->open_count--;
    /* release: pairs with the acquires in is_done here and in api/mailbox.c */
    tutti_store_release(&mail->is_done, 1);
    if (tutti_load_relaxed(&box->waiters) > 0)
        pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

/* Ends all requests, and makes all later ones fail. If the communicator has not failed yet, records
 * the failure `rc` with this thread's last message. Otherwise the earlier failure counts, and `rc`
 * is ignored. */
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

/* Begins all requests of a list, even after an error. Returns the first error. */
static int post_all(struct tuttiMailbox *box, struct tuttiRequest *request)
{
    int first_error = TUTTI_OK;

    while (request != NULL) {
        struct tuttiRequest *next = request->next_posted; /* read before the request may be freed */
        int rc = tutti_mail_post(&box->mail, &request->mail);

        if (first_error == TUTTI_OK)
            first_error = rc;
        request = next;
    }
    return first_error;
}

static bool has_commands(const struct tuttiMailbox *box)
{
    /* acquire: pairs with the release in announce_commands */
    return tutti_load_acquire(&box->has_commands) != 0;
}

/* Begins the posted requests, and cancels the one to be canceled. *ret_moved is set to true if
 * there were commands, and left alone if not. */
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
    /* False if the request has a message or is done. Such a request stays as it is. */
    (void)tutti_mail_cancel(&box->mail, &to_cancel->mail);
    /* Tell the thread in tutti_mailbox_cancel that the cancel is done. */
    pthread_mutex_lock(&box->lock);
    box->to_cancel = NULL;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return rc;
}

/* Writes the call that waits for `rank`, such as "tuttiMailboxRecv(count 4, int32, tag 7)". Writes
 * "a message" if no unmatched receive waits for the rank. Then a send waits, or a receive whose
 * message is still arriving. */
static void describe_waiting_call(const struct tuttiMailbox *box, int rank, char *ret_text,
                                  size_t size)
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

/* Logs a warning if one is due, because nothing has moved for long. */
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
    describe_waiting_call(box, rank, call, sizeof call);
    tutti_log(TUTTI_LOG_WARN, "%s%s: has been waiting for %s for %.1f s", call, others, whom,
              seconds);
}

/* True if the request is done. Its result is then in place. */
static bool is_done(const struct tuttiRequest *request)
{
    /* acquire: pairs with the release in note_done */
    return tutti_load_acquire(&request->mail.is_done) != 0;
}

/* Adds `change`, which is 1 or -1, to the number of waiters. */
static void count_waiter(struct tuttiMailbox *box, int change)
{
    /* acquire and release: each addition pairs with those of other threads. The lock orders all
     * other members. */
    (void)tutti_fetch_add(&box->waiters, (uint32_t)change);
}

/* Called after each pass without progress. Returns an error that must end all requests, or
 * TUTTI_OK. A recorded failure of the communicator is returned at once. The peers are checked about
 * every WATCH_NS. */
static int watch(struct tuttiMailbox *box)
{
    uint64_t now_ns;

    if (tutti_comm_failure(box->comm) != 0)
        return tutti_comm_error(box->comm);
    /* Reading the clock would slow down passes that spin. A pass that may sleep always reads it. */
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

/* Takes the commands and makes progress on all pending requests, once. On failure all requests end.
 * *ret_moved is set to true if anything moved or began, and left alone if not. */
static void make_pass(struct tuttiMailbox *box, bool *ret_moved)
{
    int rc = take_commands(box, ret_moved);

    if (rc == TUTTI_OK && box->mail.pending > 0 && !box->has_failed)
        rc = tutti_mail_progress(&box->mail, ret_moved);
    if (rc == TUTTI_OK && box->mail.pending > 0 && !*ret_moved)
        rc = watch(box);
    /* After an earlier failure this ends the requests that have just begun. */
    if (rc != TUTTI_OK || box->has_failed)
        fail_all(box, rc);
    if (*ret_moved) {
        box->idle = (struct tutti_idle){.passes = 0};
        box->wait = (struct tutti_long_wait){.lines = 0};
    }
}

/* True if the thread that drives for `request` can stop. See drive(). */
static bool has_reached_goal(const struct tuttiMailbox *box, const struct tuttiRequest *request)
{
    if (request != NULL)
        return is_done(request);
    return tutti_load_relaxed(&box->waiters) > 0 ||
           (box->mail.pending == 0 && !has_commands(box));
}

/* Drives until `request` is done or the deadline passes. If `request` is NULL, drives until nothing
 * is pending, or until a thread waits, because that thread drives then. `deadline_ns` is a time of
 * tutti_now_ns(), or 0 for one pass, or TUTTI_NEVER. On entry and on return the lock is held and no
 * thread drives. The lock is released in between. */
static void drive(struct tuttiMailbox *box, const struct tuttiRequest *request,
                  uint64_t deadline_ns)
{
    box->is_driven = true;
    pthread_mutex_unlock(&box->lock);
    tutti_log_enter(&box->comm->scope);
    for (;;) {
        bool moved = false;

        make_pass(box, &moved);
        if (has_reached_goal(box, request) || tutti_load_relaxed(&box->is_closing))
            break;
        if (deadline_ns == 0 || (deadline_ns != TUTTI_NEVER && tutti_now_ns() >= deadline_ns))
            break;
        if (!moved)
            tutti_fabric_idle(box->comm->fabric, &box->idle);
    }
    pthread_mutex_lock(&box->lock);
    box->is_driven = false;
}

/* Wakes the threads that can drive next: the waiting threads, or else the mailbox's own thread if
 * requests are open. The lock is held, and no thread drives. */
static void hand_over(struct tuttiMailbox *box)
{
    if (tutti_load_relaxed(&box->waiters) > 0)
        pthread_cond_broadcast(&box->changed);
    else if (box->open_count > 0)
        pthread_cond_signal(&box->work);
}

/* The mailbox's own thread. It drives while requests are open and no other thread drives or
 * waits. */
static void *run_thread(void *argument)
{
    struct tuttiMailbox *box = argument;

    pthread_mutex_lock(&box->lock);
    while (!tutti_load_relaxed(&box->is_closing)) {
        bool has_waiters = tutti_load_relaxed(&box->waiters) > 0;

        if (box->open_count > 0 && !box->is_driven && !has_waiters) {
            drive(box, NULL, TUTTI_NEVER);
            continue;
        }
        if (!box->is_driven && has_waiters)
            pthread_cond_broadcast(&box->changed); /* a waiting thread must drive */
        pthread_cond_wait(&box->work, &box->lock);
    }
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Tells the driving thread that there are commands. The lock is held, and the commands are in
 * place. */
static void announce_commands(struct tuttiMailbox *box)
{
    /* release: pairs with the acquire in has_commands */
    tutti_store_release(&box->has_commands, 1);
}

/* Appends `request` to the list of requests to begin. The lock is held. */
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

/* Begins the posted requests. If no thread drives, this thread makes one pass. Otherwise it wakes
 * the driving thread. One pass sends or receives most small messages, so that no thread needs to be
 * woken. The lock is held. */
static void begin_posted(struct tuttiMailbox *box)
{
    if (box->is_driven) {
        tutti_fabric_wake(box->comm->fabric);
        return;
    }
    drive(box, NULL, 0);
    hand_over(box);
}

/* Starts the mailbox's own thread if it does not run yet. Fails if the mailbox is being destroyed,
 * because nothing would end a new request then. The lock is held. */
static int prepare_for_request(struct tuttiMailbox *box)
{
    if (tutti_load_relaxed(&box->is_closing))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %d: another thread destroys the mailbox; begin "
                          "no messages on it any more", box->comm->rank);
    if (!box->has_thread)
        TUTTI_TRY(tutti_stream_thread(run_thread, box, &box->thread));
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
    begin_posted(box);
unlock:
    pthread_mutex_unlock(&box->lock);
    return rc;
}

/* Ends the wait of a thread that has counted itself as a waiter. The lock is held. */
static void stop_waiting(struct tuttiMailbox *box)
{
    count_waiter(box, -1);
    if (!box->is_driven)
        hand_over(box);
}

static struct timespec as_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / TUTTI_NS_PER_S),
                             .tv_nsec = (long)(ns % TUTTI_NS_PER_S)};
}

int tutti_mailbox_wait(struct tuttiMailbox *box, struct tuttiRequest *request,
                       uint64_t deadline_ns)
{
    struct timespec until = as_timespec(deadline_ns); /* not used if there is no deadline */
    bool is_late = false;

    if (is_done(request))
        return TUTTI_OK;
    pthread_mutex_lock(&box->lock);
    count_waiter(box, 1);
    while (!is_done(request) && !is_late) {
        if (!box->is_driven && !tutti_load_relaxed(&box->is_closing)) {
            drive(box, request, deadline_ns);
            if (tutti_load_relaxed(&box->is_closing))
                pthread_cond_broadcast(&box->changed); /* the thread that destroys must drive */
            is_late = deadline_ns != TUTTI_NEVER && tutti_now_ns() >= deadline_ns;
            continue;
        }
        /* If the mailbox's own thread drives and sleeps, it must wake to see this waiter. It then
         * stops, and broadcasts `changed`. */
        tutti_fabric_wake(box->comm->fabric);
        if (deadline_ns == TUTTI_NEVER)
            pthread_cond_wait(&box->changed, &box->lock);
        else
            is_late = pthread_cond_timedwait(&box->changed, &box->lock, &until) == ETIMEDOUT;
    }
    stop_waiting(box);
    pthread_mutex_unlock(&box->lock);
    return is_done(request) ? TUTTI_OK : TUTTI_AGAIN;
}

void tutti_mailbox_cancel(struct tuttiMailbox *box, struct tuttiRequest *request)
{
    pthread_mutex_lock(&box->lock);
    count_waiter(box, 1);
    /* There is room for only one request to cancel. Wait until no other cancel is under way. */
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
    stop_waiting(box);
    pthread_mutex_unlock(&box->lock);
}

/* ---- creating and destroying ------------------------------------------------------------ */

/* Initializes a condition whose timed waits use the clock of tutti_now_ns(). */
static void init_timed_condition(pthread_cond_t *condition)
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
    init_timed_condition(&box->changed);
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

/* Removes the mailbox from the list, so that no thread can enter it any more. Visitors that are
 * inside are not affected. */
static void remove_live(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&live_lock);
    for (struct tuttiMailbox **link = &live_boxes; *link != NULL; link = &(*link)->next)
        if (*link == box) {
            *link = box->next;
            break;
        }
    pthread_mutex_unlock(&live_lock);
}

/* Ends the mailbox's own thread, and makes posting fail. */
static void stop_thread(struct tuttiMailbox *box)
{
    pthread_mutex_lock(&box->lock);
    tutti_store_relaxed(&box->is_closing, true);
    pthread_cond_signal(&box->work);
    pthread_mutex_unlock(&box->lock);
    if (box->has_thread)
        pthread_join(box->thread, NULL);
}

/* Fails all open requests, so that the threads that wait for them return. If such a thread drives,
 * it stops after its current pass. */
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
        (void)take_commands(box, &(bool){false}); /* posted requests must end as well */
        tutti_mail_fail(&box->mail, TUTTI_ERR_USAGE);
        pthread_mutex_lock(&box->lock);
        box->is_driven = false;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&box->lock);
}

/* Tells the peers that this rank leaves the mailbox. Gives up after LEAVE_MS, or if the
 * communicator has failed. */
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
    /* Count this thread as a waiter, so that the mailbox's own thread stops driving. */
    count_waiter(box, 1);
    tutti_fabric_wake(box->comm->fabric);
    stop_thread(box);
    end_requests(box);
    pthread_mutex_lock(&live_lock);
    while (box->visitors > 0)
        pthread_cond_wait(&last_visitor_left, &live_lock);
    pthread_mutex_unlock(&live_lock);
    say_bye(box);
    tutti_mail_fini(&box->mail);
    tutti_log_enter(NULL); /* this thread's scope belongs to the communicator that is freed next */
    (void)tuttiCommDestroy(box->child);
    pthread_cond_destroy(&box->work);
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
    free(box);
}
