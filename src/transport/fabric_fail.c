/* SPDX-License-Identifier: Apache-2.0
 * Gives up, leaves, and detects that others have done so. */
#include "transport/fabric_private.h"

#include "base/array.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Ranks that are checked per call. Each may cost a system call. */
#define CHECKS_PER_CALL 32

/* A rank that gives up tells its peers the reason before it resets its connections. Notes and
 * resets use different connections, so a note may arrive a little later. */
#define NOTE_PATIENCE_NS (20 * TUTTI_NS_PER_MS)

/* ---- what others are told ------------------------------------------------------------ */

/* This rank passes on the reason that the first rank to give up has sent, or else its own. */
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
        /* release: pairs with the acquires of its readers, publishes code and reason */
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
        if (fabric->parts[i].is_used && fabric->parts[i].ops->tell != NULL)
            return fabric->parts[i].ops->tell(fabric, words);
    return false;
}

bool tutti_fabric_recv_state(const struct tutti_fabric *fabric,
                             uint64_t ret_words[TUTTI_STATE_WORDS])
{
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].is_used && fabric->parts[i].ops->told != NULL)
            return fabric->parts[i].ops->told(fabric, ret_words);
    return false;
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
    /* acquire: pairs with the release in tutti_fabric_abort; abort_code and abort_reason are set */
    if (tutti_load_acquire(&fabric->is_aborted) == 0)
        return TUTTI_OK;
    return tutti_fabric_remember(fabric, tutti_fail(fabric->abort_code, "this rank aborted: %s",
                                                    fabric->abort_reason));
}

/* Calls that do not match are the mistake of all ranks, and a deadline applies to all. Every other
 * error belongs to that rank. */
static int fail_told(int code, int rank, const char *reason)
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
    int rc = tutti_fabric_find_abort(fabric);

    return rc == TUTTI_OK ? TUTTI_OK : tutti_fabric_remember(fabric, rc);
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
            return tutti_fabric_remember(fabric, fail_loss(&loss));
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

/* The knowledge of this host about its ranks, and the notes of other ranks. */
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
        fabric->suspicion.peer = peer;
        tutti_message_copy(fabric->suspicion.what, sizeof fabric->suspicion.what, what);
    }
    tutti_parts_progress(fabric); /* accepts a note that has arrived */
    if (now_ns - fabric->suspected_ns < NOTE_PATIENCE_NS) {
        TUTTI_TRY(check_host(fabric));
        return TUTTI_AGAIN;
    }
    return tutti_fabric_blame(fabric, fabric->suspicion.peer, fabric->suspicion.what);
}

/* Finds a lost connection among all of them, also those for which no call waits now. */
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
    /* Another thread may have aborted this rank just now. Then the error is this rank's own. */
    rc = tutti_fabric_suspect(fabric, loss.peer, loss.what);
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

    for (uint32_t i = 0; i < fabric->nparts; i++)
        fabric->parts[i].dead_from = peer; /* the likeliest first */
    rc = check_host(fabric); /* the peer itself is known to be the cause */
    if (rc != TUTTI_OK)
        return rc;
    return tutti_fabric_remember(fabric, tutti_fail(TUTTI_ERR_REMOTE, "rank %d %s", peer, what));
}
