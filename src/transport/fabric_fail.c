/* SPDX-License-Identifier: Apache-2.0
 * Giving up, leaving, and noticing that others have. */
#include "transport/fabric_private.h"

#include "base/clock.h"
#include "transport/tcp/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Locks tested per call: each costs a system call. */
#define CHECKS_PER_CALL 32

/* A rank that gives up tells its peers why before it resets its connections. Notes and resets take
 * different connections, so a note may come a little later. */
#define NOTE_PATIENCE_NS (20 * TUTTI_NS_PER_MS)

/* ---- what others are told ------------------------------------------------------------ */

static void post_note(struct tutti_segment *segment, const struct tutti_cause *cause)
{
    struct tutti_abort_note *note = &segment->header->note;
    uint32_t expected = TUTTI_NOTE_EMPTY;

    if (!tutti_compare_exchange(&note->state, &expected, (uint32_t)TUTTI_NOTE_BEING_WRITTEN))
        return; /* somebody was first; all learn that one's reason */
    note->code = cause->code;
    note->rank = cause->rank;
    tutti_message_copy(note->reason, sizeof note->reason, cause->reason);
    /* release: pairs with the acquire in read_note, publishes the note */
    tutti_store_release(&note->state, (uint32_t)TUTTI_NOTE_WRITTEN);
}

/* A reset, where a rank that leaves sends an end: peers know the one from the other also while they
 * wait for somebody else. A listener stops listening. The descriptor stays ours to close. */
static void reset(int fd)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    /* By number: TSan takes connect() for the birth of the descriptor, which races with its use by
     * the thread that waits on it. The kernel sees to that. */
    if (syscall(SYS_connect, fd, &nobody, sizeof nobody) != 0)
        shutdown(fd, SHUT_RDWR);
}

/* This rank passes on what the first rank that gave up has told it, else its own reason. */
static void find_cause(const struct tutti_fabric *fabric, struct tutti_cause *ret_cause)
{
    const struct tutti_abort_note *note = fabric->segment ? &fabric->segment->header->note : NULL;

    if (fabric->has_heard) {
        *ret_cause = fabric->heard;
        return;
    }
    *ret_cause = (struct tutti_cause){.code = fabric->abort_code, .rank = fabric->rank};
    memcpy(ret_cause->reason, fabric->abort_reason, sizeof ret_cause->reason);
    if (note == NULL || tutti_load_acquire(&note->state) != TUTTI_NOTE_WRITTEN)
        return;
    ret_cause->code = note->code;
    ret_cause->rank = note->rank;
    snprintf(ret_cause->reason, sizeof ret_cause->reason, "%.*s", (int)sizeof note->reason - 1,
             note->reason);
}

void tutti_fabric_abort(struct tutti_fabric *fabric, int code, const char *reason)
{
    struct tutti_cause cause;

    pthread_mutex_lock(&fabric->lock);
    if (tutti_load_relaxed(&fabric->is_aborted) == 0) {
        fabric->abort_code = code;
        tutti_message_copy(fabric->abort_reason, sizeof fabric->abort_reason, reason);
        /* release: pairs with the acquires of its readers, publishes code and reason */
        tutti_store_release(&fabric->is_aborted, 1);
        find_cause(fabric, &cause);
        if (fabric->segment != NULL) {
            post_note(fabric->segment, &cause);
            tutti_fence_after_flag(fabric->segment->domain.has_joint_fences);
            tutti_domain_ring_all(&fabric->segment->domain);
        }
        /* First the reason, then the resets. */
        tutti_tcp_note_send(fabric, &cause);
        for (size_t i = 0; i < fabric->nheld; i++)
            reset(fabric->held_fds[i].fd);
    }
    pthread_mutex_unlock(&fabric->lock);
    tutti_fabric_wake(fabric);
}

void tutti_fabric_leave(struct tutti_fabric *fabric)
{
    if (fabric->has_left)
        return;
    fabric->has_left = true;
    if (fabric->has_domain)
        /* release: pairs with the acquire in check_member; comes before the lock is given up */
        tutti_store_release(&fabric->segment->members[fabric->my_index].presence,
                            (uint32_t)TUTTI_MEMBER_LEFT);
}

bool tutti_fabric_has_left(const struct tutti_fabric *fabric, int rank)
{
    for (uint32_t index = 0; fabric->has_domain && index < fabric->nmembers; index++)
        if ((int)fabric->members[index] == rank)
            /* acquire: pairs with the release in tutti_fabric_leave; all it sent is visible */
            return tutti_load_acquire(&fabric->segment->members[index].presence) ==
                   TUTTI_MEMBER_LEFT;
    return false;
}

int tutti_fabric_hold_fd(struct tutti_fabric *fabric, int fd, int peer)
{
    int rc = TUTTI_OK;

    pthread_mutex_lock(&fabric->lock);
    if (fabric->nheld == fabric->held_capacity) {
        size_t capacity = fabric->held_capacity == 0 ? 8 : 2 * fabric->held_capacity;
        struct tutti_held_fd *fds = realloc(fabric->held_fds, capacity * sizeof *fds);

        if (fds != NULL) {
            fabric->held_fds = fds;
            fabric->held_capacity = capacity;
        } else {
            rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu sockets", capacity);
        }
    }
    if (rc == TUTTI_OK) {
        fabric->held_fds[fabric->nheld++] = (struct tutti_held_fd){.fd = fd, .peer = peer};
        if (tutti_load_relaxed(&fabric->is_aborted) != 0)
            reset(fd);
    }
    pthread_mutex_unlock(&fabric->lock);
    return rc;
}

void tutti_fabric_drop_fd(struct tutti_fabric *fabric, int fd)
{
    pthread_mutex_lock(&fabric->lock);
    for (size_t i = 0; i < fabric->nheld; i++) {
        if (fabric->held_fds[i].fd == fd) {
            fabric->held_fds[i] = fabric->held_fds[--fabric->nheld];
            break;
        }
    }
    pthread_mutex_unlock(&fabric->lock);
}

/* ---- what this rank learns ----------------------------------------------------------- */

int tutti_fabric_remember(struct tutti_fabric *fabric, int rc)
{
    if (fabric->failure == TUTTI_OK) {
        fabric->failure = rc;
        snprintf(fabric->failure_text, sizeof fabric->failure_text, "%s", tutti_last_message());
    }
    return rc;
}

static int read_own_abort(struct tutti_fabric *fabric)
{
    if (tutti_load_acquire(&fabric->is_aborted) == 0)
        return TUTTI_OK;
    return tutti_fabric_remember(fabric, tutti_fail(fabric->abort_code, "this rank aborted: %s",
                                                    fabric->abort_reason));
}

/* Calls that do not fit together are everybody's mistake and a deadline everybody's; all else is
 * that rank's. */
static int fail_told(int code, int rank, const char *reason)
{
    return tutti_fail(code == TUTTI_ERR_USAGE || code == TUTTI_ERR_TIMEOUT ? code
                                                                           : TUTTI_ERR_REMOTE,
                      "rank %d aborted: %.*s", rank, TUTTI_ABORT_REASON_BYTES - 1, reason);
}

int tutti_fabric_news(const struct tutti_fabric *fabric)
{
    const struct tutti_abort_note *note;

    if (!fabric->has_domain)
        return TUTTI_OK;
    note = &fabric->segment->header->note;
    if (tutti_load_acquire(&note->state) != TUTTI_NOTE_WRITTEN)
        return TUTTI_OK;
    return fail_told(note->code, note->rank, note->reason);
}

void tutti_fabric_hear(struct tutti_fabric *fabric, const struct tutti_cause *cause)
{
    pthread_mutex_lock(&fabric->lock);
    if (!fabric->has_heard)
        fabric->heard = *cause;
    fabric->has_heard = true;
    pthread_mutex_unlock(&fabric->lock);
}

static int read_heard(struct tutti_fabric *fabric)
{
    if (!fabric->has_heard)
        return TUTTI_OK;
    return tutti_fabric_remember(fabric, fail_told(fabric->heard.code, fabric->heard.rank,
                                                   fabric->heard.reason));
}

static int read_note(struct tutti_fabric *fabric)
{
    int rc = tutti_fabric_news(fabric);

    return rc == TUTTI_OK ? TUTTI_OK : tutti_fabric_remember(fabric, rc);
}

static int check_member(const struct tutti_fabric *fabric, uint32_t index)
{
    const struct tutti_segment *segment = fabric->segment;
    int rank = (int)fabric->members[index];
    int pid = (int)segment->pids[index];
    bool is_alive;

    if (index == fabric->my_index)
        return TUTTI_OK;
    /* First the lock, then the flag, which is set before the lock goes. */
    is_alive = segment->access[index] == TUTTI_ACCESS_STORE ||
               tutti_segment_is_alive(segment, index);
    switch (tutti_load_acquire(&segment->members[index].presence)) {
    case TUTTI_MEMBER_LEFT:
        return TUTTI_OK;
    case TUTTI_MEMBER_DROPPED:
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d (pid %d) destroyed its communicator while "
                          "others used it", rank, pid);
    default:
        if (is_alive)
            return TUTTI_OK;
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d (pid %d) died", rank, pid);
    }
}

static int look_for_the_dead(struct tutti_fabric *fabric)
{
    uint32_t count = fabric->nmembers < CHECKS_PER_CALL ? fabric->nmembers : CHECKS_PER_CALL;

    if (!fabric->has_domain)
        return TUTTI_OK;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = fabric->check_next;
        int rc = check_member(fabric, index);

        fabric->check_next = index + 1 < fabric->nmembers ? index + 1 : 0;
        if (rc != TUTTI_OK)
            return tutti_fabric_remember(fabric, rc);
    }
    return TUTTI_OK;
}

int tutti_fabric_obituary(const struct tutti_fabric *fabric)
{
    for (uint32_t index = 0; fabric->has_domain && index < fabric->nmembers; index++)
        TUTTI_TRY(check_member(fabric, index));
    return TUTTI_OK;
}

/* What this host knows of its ranks, and what others have told us. */
static int check_host(struct tutti_fabric *fabric)
{
    if (fabric->failure != TUTTI_OK) {
        tutti_set_last_message(fabric->failure_text);
        return fabric->failure;
    }
    TUTTI_TRY(read_own_abort(fabric));
    TUTTI_TRY(read_note(fabric));
    TUTTI_TRY(read_heard(fabric));
    return look_for_the_dead(fabric);
}

int tutti_fabric_suspect(struct tutti_fabric *fabric, int peer, const char *what)
{
    uint64_t now_ns = tutti_now_ns();

    if (fabric->suspected_ns == 0) {
        fabric->suspected_ns = now_ns;
        fabric->suspect = peer;
        snprintf(fabric->suspicion, sizeof fabric->suspicion, "%s", what);
    }
    tutti_tcp_progress(fabric); /* takes a note that has come */
    if (now_ns - fabric->suspected_ns < NOTE_PATIENCE_NS) {
        TUTTI_TRY(check_host(fabric));
        return TUTTI_AGAIN;
    }
    return tutti_fabric_blame(fabric, fabric->suspect, fabric->suspicion);
}

/* Of all connections, also those that nobody waits on just now. */
static int look_for_lost_connections(struct tutti_fabric *fabric)
{
    const char *what = fabric->suspicion;
    int peer = fabric->suspect, rc;

    if (fabric->suspected_ns == 0)
        peer = tutti_tcp_find_lost(fabric, &what);
    if (peer < 0)
        return TUTTI_OK;
    /* Or have we, just now, from another thread? Then the error is our own. */
    rc = tutti_fabric_suspect(fabric, peer, what);
    return rc == TUTTI_AGAIN ? TUTTI_OK : rc;
}

int tutti_fabric_check(struct tutti_fabric *fabric)
{
    TUTTI_TRY(check_host(fabric));
    return look_for_lost_connections(fabric);
}

int tutti_fabric_blame(struct tutti_fabric *fabric, int peer, const char *what)
{
    int rc;

    if (fabric->failure == TUTTI_OK && fabric->has_domain &&
        memcmp(fabric->records[peer].identity.host, fabric->mine.identity.host,
               TUTTI_IDENTITY_BYTES) == 0)
        fabric->check_next = tutti_member_index(fabric, peer); /* the likeliest first */
    rc = check_host(fabric); /* the peer itself is known to be in the way */
    if (rc != TUTTI_OK)
        return rc;
    return tutti_fabric_remember(fabric, tutti_fail(TUTTI_ERR_REMOTE, "rank %d %s", peer, what));
}
