/* SPDX-License-Identifier: Apache-2.0
 * Ends this rank's part in the fabric, and detects that another rank has ended its part. A rank may
 * abort because of an error, or leave in order. The checks here turn the abort or the death of a
 * peer into an error of this rank's calls. */
#include "transport/fabric_private.h"

#include "base/array.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* The number of ranks that one call checks. Each check may cost a system call. */
#define CHECKS_PER_CALL 32

/* A rank that gives up sends its peers a note with the reason before it resets its connections.
 * Notes and resets use different connections, so the note may arrive after the reset. A rank
 * waits this long for the note before it blames the peer for the reset. */
#define NOTE_PATIENCE_NS (20 * TUTTI_NS_PER_MS)

/* ---- messages to other ranks --------------------------------------------------------- */

/* Finds the reason that this rank reports to its peers. If another rank gave up first and sent its
 * reason, this rank passes that reason on. Otherwise it reports its own. Needs fabric->lock. */
static void find_cause(const struct tutti_fabric *fabric, struct tutti_cause *ret_cause)
{
    if (fabric->has_heard) {
        *ret_cause = fabric->heard;
        return;
    }
    *ret_cause = (struct tutti_cause){.code = fabric->abort_code, .rank = fabric->rank};
    memcpy(ret_cause->reason, fabric->abort_reason, sizeof ret_cause->reason);
}

void tutti_fabric_abort(struct tutti_fabric *fabric, int code, const char *reason)
{
    struct tutti_cause cause;

    pthread_mutex_lock(&fabric->lock);
    if (tutti_load_relaxed(&fabric->is_aborted) == 0) {
        fabric->abort_code = code;
        tutti_message_copy(fabric->abort_reason, sizeof fabric->abort_reason, reason);
        /* release: pairs with the acquire in read_own_abort and in other readers, publishes code
         * and reason */
        tutti_store_release(&fabric->is_aborted, 1);
        find_cause(fabric, &cause);
        for (uint32_t i = 0; i < fabric->nparts; i++)
            if (fabric->parts[i].is_open && fabric->parts[i].ops->abort != NULL)
                fabric->parts[i].ops->abort(fabric, &cause);
    }
    pthread_mutex_unlock(&fabric->lock);
    tutti_fabric_wake(fabric);
}

void tutti_fabric_leave(struct tutti_fabric *fabric)
{
    if (fabric->has_left)
        return;
    fabric->has_left = true;
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->leave != NULL)
            fabric->parts[i].ops->leave(fabric, true);
}

bool tutti_fabric_has_left(const struct tutti_fabric *fabric, int rank)
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_open && fabric->parts[i].ops->has_left != NULL &&
            fabric->parts[i].ops->has_left(fabric, rank))
            return true;
    return false;
}

bool tutti_fabric_send_state(struct tutti_fabric *fabric, const uint64_t words[TUTTI_STATE_WORDS])
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->send_state != NULL)
            return fabric->parts[i].ops->send_state(fabric, words);
    return false;
}

bool tutti_fabric_recv_state(const struct tutti_fabric *fabric,
                             uint64_t ret_words[TUTTI_STATE_WORDS])
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->recv_state != NULL)
            return fabric->parts[i].ops->recv_state(fabric, ret_words);
    return false;
}

/* ---- failures that this rank detects ------------------------------------------------- */

int tutti_fabric_keep_failure(struct tutti_fabric *fabric, int rc)
{
    if (fabric->failure == TUTTI_OK) {
        fabric->failure = rc;
        snprintf(fabric->failure_text, sizeof fabric->failure_text, "%s", tutti_message_last());
    }
    return rc;
}

/* The next function, read_heard and read_note fail if a rank has given up. Each of them looks at
 * one of the places where the reason may be. */
static int read_own_abort(struct tutti_fabric *fabric)
{
    /* acquire: pairs with the release in tutti_fabric_abort; abort_code and abort_reason are set */
    if (tutti_load_acquire(&fabric->is_aborted) == 0)
        return TUTTI_OK;
    return tutti_fabric_keep_failure(fabric, tutti_fail(fabric->abort_code, "this rank aborted: %s",
                                                    fabric->abort_reason));
}

/* Fails with the error that the abort of `rank` with error `code` means for this rank. Mismatched
 * calls are an error of all ranks, and a deadline applies to all ranks, so these two codes stay.
 * Any other code becomes TUTTI_ERR_REMOTE. */
static int fail_by_abort(int code, int rank, const char *reason)
{
    return tutti_fail(code == TUTTI_ERR_USAGE || code == TUTTI_ERR_TIMEOUT ? code
                                                                           : TUTTI_ERR_REMOTE,
                      "rank %d aborted: %.*s", rank, TUTTI_ABORT_REASON_BYTES - 1, reason);
}

int tutti_fabric_find_abort(const struct tutti_fabric *fabric)
{
    const struct tutti_abort_note *note;

    if (fabric->sharing.domain == NULL)
        return TUTTI_OK;
    note = fabric->sharing.domain->note;
    /* acquire: pairs with the release in post_note; the note is complete */
    if (tutti_load_acquire(&note->state) != TUTTI_NOTE_WRITTEN)
        return TUTTI_OK;
    return fail_by_abort(note->code, note->rank, note->reason);
}

void tutti_fabric_record_cause(struct tutti_fabric *fabric, const struct tutti_cause *cause)
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
    return tutti_fabric_keep_failure(
        fabric, fail_by_abort(fabric->heard.code, fabric->heard.rank, fabric->heard.reason));
}

static int read_note(struct tutti_fabric *fabric)
{
    int rc = tutti_fabric_find_abort(fabric);

    return rc == TUTTI_OK ? TUTTI_OK : tutti_fabric_keep_failure(fabric, rc);
}

static int fail_loss(const struct tutti_loss *loss)
{
    return tutti_fail(TUTTI_ERR_REMOTE, "rank %d %s", loss->peer, loss->what);
}

static int look_for_the_dead(struct tutti_fabric *fabric)
{
    struct tutti_loss loss;

    for (uint32_t i = 0; i < fabric->nparts; i++) {
        struct tutti_part *part = &fabric->parts[i];

        if (part->is_open && part->ops->find_dead != NULL &&
            part->ops->find_dead(fabric, &part->dead_from, CHECKS_PER_CALL, &loss))
            return tutti_fabric_keep_failure(fabric, fail_loss(&loss));
    }
    return TUTTI_OK;
}

int tutti_fabric_find_death(const struct tutti_fabric *fabric)
{
    struct tutti_loss loss;

    for (uint32_t i = 0; i < fabric->nparts; i++) {
        const struct tutti_part *part = &fabric->parts[i];
        int from = 0;

        if (part->is_open && part->ops->find_dead != NULL &&
            part->ops->find_dead(fabric, &from, (uint32_t)fabric->nranks, &loss))
            return fail_loss(&loss);
    }
    return TUTTI_OK;
}

/* Fails if this rank or another rank has aborted, or if a rank has died. Does not check the
 * connections. Once a call has failed, each later call returns the same error. */
static int check_failures(struct tutti_fabric *fabric)
{
    if (fabric->failure != TUTTI_OK) {
        tutti_message_set_last(fabric->failure_text);
        return fabric->failure;
    }
    TUTTI_TRY(read_own_abort(fabric));
    TUTTI_TRY(read_note(fabric));
    TUTTI_TRY(read_heard(fabric));
    return look_for_the_dead(fabric);
}

int tutti_fabric_conn_lost(struct tutti_fabric *fabric, int peer, const char *what)
{
    uint64_t now_ns = tutti_now_ns();

    if (fabric->suspected_ns == 0) {
        fabric->suspected_ns = now_ns;
        fabric->suspicion.peer = peer;
        tutti_message_copy(fabric->suspicion.what, sizeof fabric->suspicion.what, what);
    }
    tutti_parts_progress(fabric); /* This call receives a note that has arrived. */
    if (now_ns - fabric->suspected_ns < NOTE_PATIENCE_NS) {
        TUTTI_TRY(check_failures(fabric));
        return TUTTI_AGAIN;
    }
    return tutti_fabric_peer_failed(fabric, fabric->suspicion.peer, fabric->suspicion.what);
}

/* Finds a lost connection, even if no call waits for it now. */
static bool find_lost(struct tutti_fabric *fabric, struct tutti_loss *ret_loss)
{
    if (fabric->suspected_ns != 0) {
        *ret_loss = fabric->suspicion;
        return true;
    }
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->find_lost != NULL &&
            fabric->parts[i].ops->find_lost(fabric, ret_loss))
            return true;
    return false;
}

static int look_for_lost_connections(struct tutti_fabric *fabric)
{
    struct tutti_loss loss;
    int rc;

    if (!find_lost(fabric, &loss))
        return TUTTI_OK;
    /* Another thread may have aborted this rank just now. In that case tutti_fabric_conn_lost
     * reports the abort of this rank and not the loss. */
    rc = tutti_fabric_conn_lost(fabric, loss.peer, loss.what);
    return rc == TUTTI_AGAIN ? TUTTI_OK : rc;
}

int tutti_fabric_check(struct tutti_fabric *fabric)
{
    TUTTI_TRY(check_failures(fabric));
    return look_for_lost_connections(fabric);
}

int tutti_fabric_peer_failed(struct tutti_fabric *fabric, int peer, const char *what)
{
    int rc;

    for (uint32_t i = 0; i < fabric->nparts; i++)
        fabric->parts[i].dead_from = peer; /* This peer has most likely died: check it first. */
    rc = check_failures(fabric); /* An abort or a death explains the loss better. */
    if (rc != TUTTI_OK)
        return rc;
    return tutti_fabric_keep_failure(fabric,
                                     tutti_fail(TUTTI_ERR_REMOTE, "rank %d %s", peer, what));
}
