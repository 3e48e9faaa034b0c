/* SPDX-License-Identifier: Apache-2.0
 * The connections to the root of an exchange over sockets. A connection begins as a caller, which
 * has yet to prove that it holds the secret. It then becomes a member, which sends records and
 * receives tables. */
#include "bootstrap/tcp_root.h"

#include "base/clock.h"
#include "base/log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The most events handled in one call, so that strangers cannot keep the root busy forever. */
#define EVENTS_PER_CALL 4096
#define ACCEPTS_PER_EVENT 256
/* Limits for callers that have not proved themselves. A caller may take HANDSHAKE_NS, and there may
 * be STRANGERS_MAX of them in addition to nranks. */
#define HANDSHAKE_NS  (10 * TUTTI_NS_PER_S)
#define STRANGERS_MAX 64
/* When the root is out of descriptors, a caller may take this long to prove itself before it has to
 * make room for another. */
#define PROOF_NS (500 * TUTTI_NS_PER_MS)

/* ---- lists of seats --------------------------------------------------------------- */

static void append(struct tutti_root_list *list, struct tutti_root_seat *seat)
{
    seat->newer = NULL;
    seat->older = list->newest;
    if (list->newest != NULL)
        list->newest->newer = seat;
    else
        list->oldest = seat;
    list->newest = seat;
    list->count++;
}

static void unlink_from(struct tutti_root_list *list, struct tutti_root_seat *seat)
{
    if (seat->older != NULL)
        seat->older->newer = seat->newer;
    else
        list->oldest = seat->newer;
    if (seat->newer != NULL)
        seat->newer->older = seat->older;
    else
        list->newest = seat->older;
    list->count--;
}

/* Close and free a seat that is in no list. */
static void release_seat(struct tutti_root *root, struct tutti_root_seat *seat)
{
    if (seat->is_member && seat->fd >= 0)
        tutti_exchange_hang_up(seat->fd);
    tutti_watch_close(&root->watch, &seat->fd);
    free(seat->inbox.body);
    sodium_memzero(seat, sizeof *seat);
    free(seat);
}

static void free_seat(struct tutti_root *root, struct tutti_root_seat *seat)
{
    unlink_from(seat->is_member ? &root->members : &root->callers, seat);
    release_seat(root, seat);
}

/* ---- members ------------------------------------------------------------------------ */

static void load_error(struct tutti_root *root, struct tutti_root_seat *seat)
{
    /* A failure of the root's own machine is reported to other ranks as TUTTI_ERR_REMOTE. */
    bool is_shared = root->failure == TUTTI_ERR_USAGE || root->failure == TUTTI_ERR_TIMEOUT;
    struct tutti_frame frame = {.kind = TUTTI_FRAME_ERROR,
                                .round = root->round,
                                .size = (uint32_t)strlen(root->reason),
                                .code = is_shared ? root->failure : TUTTI_ERR_REMOTE};

    tutti_frame_digest(&frame, root->reason);
    tutti_outbox_load(&seat->outbox, &frame, root->reason);
    seat->is_told = true;
}

/* The connection of a member is lost. */
static void member_left(struct tutti_root *root, struct tutti_root_seat *seat)
{
    /* The member still needs the table of this round. */
    bool is_owed = seat->has_record || seat->outbox.size > 0 || !root->is_sending;

    tutti_watch_close(&root->watch, &seat->fd);
    seat->outbox.size = 0;
    if (seat->rank < 0)
        return;
    if (!seat->has_spoken && seat->inbox.done == 0 && root->failure == TUTTI_OK) {
        /* This rank may not know that it had joined. It may have given up before our answer
         * arrived, and will connect again. */
        root->seat_of_rank[seat->rank] = NULL;
        root->joined--;
        root->complete_ns = 0;
        unlink_from(&root->members, seat);
        append(&root->gone_callers, seat);
        return;
    }
    /* A member that has its table of the last round may leave while others still get theirs. */
    root->gone++;
    if (is_owed)
        tutti_root_fail(root, TUTTI_ERR_REMOTE,
                        "rank %d of %d left while the communicator was formed: %s", seat->rank,
                        root->base.nranks, tutti_message_last());
}

/* Continue to send. If the root has failed, the error follows the table. */
void tutti_root_flush(struct tutti_root *root, struct tutti_root_seat *seat)
{
    while (seat->fd >= 0) {
        bool had_table = seat->outbox.size > 0 && !seat->is_told;
        int rc = tutti_outbox_step(&seat->outbox, seat->fd);

        if (rc < 0) {
            member_left(root, seat);
            return;
        }
        tutti_watch_change(&root->watch, seat->fd, EPOLLIN | (rc == TUTTI_AGAIN ? EPOLLOUT : 0),
                           seat);
        if (rc == TUTTI_AGAIN)
            return;
        if (had_table)
            root->unsent--;
        if (root->failure == TUTTI_OK || seat->is_told)
            return;
        load_error(root, seat);
    }
}

/* Takes the record in the inbox of a member. */
static void take_record(struct tutti_root *root, struct tutti_root_seat *seat)
{
    const struct tutti_frame *frame = &seat->inbox.frame;

    if (seat->rank < 0)
        return; /* the caller has been rejected, and is being told the reason */
    if (seat->has_record || frame->round != seat->rounds) {
        tutti_root_fail(root, TUTTI_ERR_REMOTE,
                        "rank %d gave a record of round %u where round %u is due", seat->rank,
                        frame->round, seat->rounds);
        return;
    }
    seat->has_record = true;
    seat->record_size = frame->size;
    if (frame->round == 0)
        seat->kin = frame->session;
    seat->rounds++;
    root->records++;
}

/* A member has sent the reason why it gives up. */
static void member_gave_up(struct tutti_root *root, struct tutti_root_seat *seat)
{
    char text[TUTTI_MESSAGE_BYTES / 2];

    if (seat->rank < 0)
        return;
    if (tutti_inbox_error(&seat->inbox, text, sizeof text) == TUTTI_ERR_TIMEOUT)
        tutti_root_fail_missing(root); /* the member's deadline has passed, even if ours has not */
    else
        tutti_root_fail(root, TUTTI_ERR_REMOTE, "rank %d of %d gave up: %s", seat->rank,
                        root->base.nranks, text);
}

static void hear_member(struct tutti_root *root, struct tutti_root_seat *seat)
{
    while (seat->fd >= 0) {
        int rc = tutti_inbox_step(&seat->inbox, seat->fd);

        if (rc == TUTTI_AGAIN)
            return;
        if (rc < 0) {
            member_left(root, seat);
            return;
        }
        seat->has_spoken = true;
        if (seat->inbox.frame.kind == TUTTI_FRAME_RECORD)
            take_record(root, seat);
        else if (seat->inbox.frame.kind == TUTTI_FRAME_ERROR)
            member_gave_up(root, seat);
        else
            tutti_root_fail(root, TUTTI_ERR_REMOTE, "rank %d sent a frame of kind %u", seat->rank,
                            seat->inbox.frame.kind);
    }
}

/* ---- callers -------------------------------------------------------------------------- */

/* Drops a caller; the reason is the thread's last message. */
static void drop_stranger(struct tutti_root *root, struct tutti_root_seat *seat)
{
    enum tutti_log_level level = root->has_logged_stranger ? TUTTI_LOG_TRACE : TUTTI_LOG_WARN;

    root->has_logged_stranger = true;
    tutti_log(level, "dropped a connection to %s: %s (further ones are logged at level trace)",
              root->where, tutti_message_last());
    free_seat(root, seat);
}

/* Send a message to a caller that has proved itself, and close its connection. The message fits
 * into the empty buffer of the socket, so it is sent at once. */
static void dismiss(struct tutti_root *root, struct tutti_root_seat *seat,
                    enum tutti_frame_kind kind, int code, const char *text)
{
    struct tutti_frame frame = {.kind = kind, .size = (uint32_t)strlen(text), .code = code};

    tutti_frame_digest(&frame, text);
    tutti_outbox_load(&seat->outbox, &frame, text);
    (void)tutti_outbox_step(&seat->outbox, seat->fd);
    unlink_from(&root->callers, seat);
    seat->is_member = true; /* so that release_seat hangs up and no sent bytes are lost */
    release_seat(root, seat);
}

/* All ranks have joined, so this caller is one too many. At a store the caller may be early for the
 * next communicator, which a member that has left this one may already form. A unique id serves
 * only one communicator. */
static void dismiss_surplus(struct tutti_root *root, struct tutti_root_seat *seat)
{
    if (root->is_of_id)
        dismiss(root, seat, TUTTI_FRAME_ERROR, TUTTI_ERR_USAGE,
                "this unique id has been used: an id serves one communicator; call "
                "tuttiGetUniqueId for each, and pass it to all of its ranks once");
    else
        dismiss(root, seat, TUTTI_FRAME_LATER, TUTTI_ERR_USAGE,
                "all ranks of the communicator that is formed there have joined");
}

/* The caller belongs to another communicator that is formed at this place: hand it over to that
 * root, or ask it to connect again later. */
static void pass_on(struct tutti_root *root, struct tutti_root_seat *seat, const uint8_t *forming)
{
    char text[160];

    tutti_watch_remove(&root->watch, seat->fd);
    unlink_from(&root->callers, seat);
    if (tutti_listener_hand_over(root->listener, forming, seat))
        return;
    append(&root->callers, seat);
    snprintf(text, sizeof text, "the communicator that is formed there %s%s%s",
             root->name[0] != '\0' ? "is named '" : "has no name", root->name,
             root->name[0] != '\0' ? "'" : "");
    dismiss(root, seat, TUTTI_FRAME_LATER, TUTTI_ERR_USAGE, text);
}

/* Make a caller of this communicator a member. */
static void give_seat(struct tutti_root *root, struct tutti_root_seat *seat, uint32_t nranks,
                      uint32_t rank)
{
    seat->inbox.body = malloc(TUTTI_BOOTSTRAP_RECORD_MAX);
    seat->inbox.capacity = TUTTI_BOOTSTRAP_RECORD_MAX;
    if (seat->inbox.body == NULL) {
        tutti_root_fail(root, TUTTI_ERR_SYSTEM, "no memory for the record of rank %u", rank);
        free_seat(root, seat);
        return;
    }
    unlink_from(&root->callers, seat);
    seat->is_member = true;
    append(&root->members, seat);

    if (nranks != (uint32_t)root->base.nranks) {
        tutti_root_fail(
            root, TUTTI_ERR_USAGE,
            "ranks disagree on nranks: rank %d says %d, rank %u says %u; start all with one value",
            root->base.rank, root->base.nranks, rank, nranks);
    } else if (rank >= nranks || (int)rank == root->base.rank ||
               root->seat_of_rank[rank] != NULL) {
        tutti_root_fail(root, TUTTI_ERR_USAGE,
                        "two ranks of %d claim number %u; give each a number of its own%s",
                        root->base.nranks, rank,
                        root->is_vague ? ". If two jobs meet at this place, give each job its own, "
                                         "or its own TUTTI_SECRET"
                                       : "");
    } else {
        seat->rank = (int)rank;
        root->seat_of_rank[rank] = seat;
        root->joined++;
    }
    if (root->joined == root->base.nranks - 1)
        root->complete_ns = tutti_now_ns();
    if (root->joined == root->base.nranks - 1 && root->on_spent != NULL) {
        root->on_spent(root->context);
        root->on_spent = NULL;
    }
    if (root->failure != TUTTI_OK)
        tutti_root_flush(root, seat);
}

/* The caller has proved itself. Admit it, hand it over or dismiss it, by its communicator and
 * rank. */
static void take_in(struct tutti_root *root, struct tutti_root_seat *seat)
{
    uint8_t forming[TUTTI_FORMING_BYTES];
    uint32_t nranks, rank;

    if (!tutti_exchange_purpose_read(&seat->shake.purpose, &nranks, &rank, forming)) {
        tutti_note(TUTTI_ERR_REMOTE, "the caller connected for another purpose");
        drop_stranger(root, seat);
        return;
    }
    if (memcmp(forming, root->forming, sizeof forming) != 0)
        pass_on(root, seat, forming);
    else if (root->failure == TUTTI_OK && !tutti_root_is_in_doubt(root))
        dismiss_surplus(root, seat);
    else
        give_seat(root, seat, nranks, rank);
}

/* Admit the callers of this communicator that other roots at the listener have accepted. */
static void take_handed_over(struct tutti_root *root)
{
    struct tutti_root_seat *seat;

    while ((seat = tutti_listener_take(root->listener, root)) != NULL) {
        append(&root->callers, seat);
        if (tutti_watch_add(&root->watch, seat->fd, EPOLLIN, seat) != TUTTI_OK) {
            tutti_root_fail(root, TUTTI_ERR_SYSTEM, "no memory for a connection");
            free_seat(root, seat);
            return;
        }
        take_in(root, seat);
    }
}

static void hear_caller(struct tutti_root *root, struct tutti_root_seat *seat)
{
    int rc = tutti_handshake_step(&seat->shake);

    if (rc == TUTTI_AGAIN)
        return;
    if (rc < 0) {
        drop_stranger(root, seat);
        return;
    }
    tutti_exchange_seal(&seat->shake, &seat->inbox, &seat->outbox);
    take_in(root, seat);
}

/* Drops callers that take too long, and the oldest ones if there are too many. */
static void expire_callers(struct tutti_root *root)
{
    uint64_t now_ns = tutti_now_ns();

    while (root->callers.oldest != NULL &&
           (root->callers.oldest->shake.deadline_ns <= now_ns ||
            root->callers.count > root->base.nranks + STRANGERS_MAX)) {
        tutti_note(TUTTI_ERR_TIMEOUT, "the caller did not prove itself in time");
        drop_stranger(root, root->callers.oldest);
    }
}

/* Make a seat for a new connection. NULL: the connection was dropped, or the root has failed. */
static struct tutti_root_seat *seat_caller(struct tutti_root *root, int fd)
{
    bool is_unix = tutti_listener_is_unix(root->listener);
    struct tutti_root_seat *seat = calloc(1, sizeof *seat);

    if (seat == NULL || tutti_watch_add(&root->watch, fd, EPOLLIN, seat) != TUTTI_OK) {
        tutti_root_fail(root, TUTTI_ERR_SYSTEM, "no memory for a connection");
        tutti_watch_close(&root->watch, &fd);
        free(seat);
        return NULL;
    }
    seat->fd = fd;
    seat->rank = -1;
    append(&root->callers, seat);
    if (is_unix && root->is_same_user && !tutti_socket_is_own_user(fd)) {
        tutti_note(TUTTI_ERR_REMOTE, "the caller is another user's process");
        drop_stranger(root, seat);
        return NULL;
    }
    if (!is_unix && tutti_socket_tune(fd, 0) != TUTTI_OK) { /* the caller has already left */
        free_seat(root, seat);
        return NULL;
    }
    return seat;
}

/* No descriptor is left for another caller, so the root fails. To tell the ranks that have yet to
 * join, the root reuses its spare descriptor, and those of ranks that have been told
 * (free_descriptors). */
static void run_out(struct tutti_root *root, int rc)
{
    tutti_root_fail(root, rc,
                    "rank %d of %d, the root that the others join, has no descriptor "
                    "left for them: %s",
                    root->base.rank, root->base.nranks, tutti_message_last());
    root->linger_ns = tutti_now_ns() + TUTTI_EXCHANGE_LONG_LINGER_NS;
}

/* Closes the spare descriptor, and the connections of members that have been told the failure.
 * True: a descriptor is free now. */
static bool free_descriptors(struct tutti_root *root)
{
    bool is_any_free = root->spare_fd >= 0;

    if (root->spare_fd >= 0)
        close(root->spare_fd);
    root->spare_fd = -1;
    for (struct tutti_root_seat *seat = root->members.oldest; seat != NULL; seat = seat->newer) {
        if (seat->fd < 0 || !seat->is_told || seat->outbox.size > 0)
            continue;
        tutti_exchange_hang_up(seat->fd);
        tutti_watch_close(&root->watch, &seat->fd);
        is_any_free = true;
    }
    return is_any_free;
}

/* A listener with waiting callers would wake the root all the time, so stop watching it for a
 * while. */
static void stop_watching(struct tutti_root *root)
{
    tutti_watch_remove(&root->watch, tutti_listener_fd(root->listener));
    root->is_full = true;
}

static void watch_again(struct tutti_root *root)
{
    if (!root->is_full ||
        tutti_watch_add(&root->watch, tutti_listener_fd(root->listener), EPOLLIN, root) != TUTTI_OK)
        return;
    root->is_full = false;
}

/* True if the caller has had PROOF_NS to prove itself. */
static bool has_had_time(const struct tutti_root_seat *caller)
{
    uint64_t begun_ns = caller->shake.deadline_ns - HANDSHAKE_NS;

    return begun_ns + PROOF_NS < tutti_now_ns();
}

/* Free a descriptor for a caller. True: a descriptor is free now. */
static bool make_room(struct tutti_root *root, int rc)
{
    const struct tutti_root_seat *oldest = root->callers.oldest;
    bool has_failed = root->failure != TUTTI_OK;

    if (oldest != NULL && (!has_failed || has_had_time(oldest))) {
        /* A caller that has not proved itself makes room for another. */
        drop_stranger(root, root->callers.oldest);
        return true;
    }
    if (!has_failed)
        run_out(root, rc);
    if (free_descriptors(root))
        return true;
    stop_watching(root);
    return false;
}

static void accept_callers(struct tutti_root *root)
{
    int fd, rc = TUTTI_OK;

    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        struct tutti_root_seat *seat;

        rc = tutti_socket_accept(tutti_listener_fd(root->listener), &fd);
        if (rc == TUTTI_ERR_SYSTEM) {
            if (make_room(root, rc))
                continue;
            return;
        }
        if (rc != TUTTI_OK)
            break;
        seat = seat_caller(root, fd);
        if (seat == NULL)
            continue;
        tutti_handshake_start(&seat->shake, fd, true, root->meeting_secret, NULL,
                              tutti_now_ns() + HANDSHAKE_NS);
        hear_caller(root, seat); /* the acceptor sends first */
        expire_callers(root);
    }
    if (rc < 0) {
        tutti_root_fail(root, rc, "%s", tutti_message_last());
        tutti_watch_remove(&root->watch,
                           tutti_listener_fd(root->listener)); /* or it would always be ready */
        root->is_listening = false;
    }
}

/* Frees the seats that no handler uses any more. */
static void free_gone(struct tutti_root *root)
{
    while (root->gone_callers.oldest != NULL) {
        struct tutti_root_seat *seat = root->gone_callers.oldest;

        unlink_from(&root->gone_callers, seat);
        release_seat(root, seat);
    }
}

void tutti_root_handle_events(struct tutti_root *root)
{
    take_handed_over(root);
    watch_again(root);
    for (int i = 0; i < EVENTS_PER_CALL; i++) {
        void *owner = tutti_watch_next(&root->watch);
        struct tutti_root_seat *seat = owner;

        if (owner == NULL)
            break;
        if (owner == root) {
            accept_callers(root);
        } else if (!seat->is_member) {
            hear_caller(root, seat);
        } else {
            hear_member(root, seat);
            tutti_root_flush(root, seat);
        }
    }
    expire_callers(root);
    free_gone(root);
}

void tutti_root_free_seats(struct tutti_root *root)
{
    struct tutti_root_seat *handed_over = tutti_listener_leave(root->listener, root);

    while (handed_over != NULL) {
        struct tutti_root_seat *seat = handed_over;

        handed_over = seat->newer;
        release_seat(root, seat);
    }
    free_gone(root);
    while (root->callers.oldest != NULL)
        free_seat(root, root->callers.oldest);
    while (root->members.oldest != NULL)
        free_seat(root, root->members.oldest);
}
