/* SPDX-License-Identifier: Apache-2.0
 * The parts of a mailbox that concern all its peers: its start and end, progress on all peers, and
 * failure of all requests. */
#include "mail/mail.h"

#include "base/atomic.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

void tutti_mail_append(struct tutti_mail_list *list, struct tutti_mail_request *request)
{
    request->next = NULL;
    if (list->first == NULL)
        list->first = request;
    else
        list->last->next = request;
    list->last = request;
}

void tutti_mail_remove(struct tutti_mail_list *list, struct tutti_mail_request *request)
{
    struct tutti_mail_request *before = NULL, *at = list->first;

    while (at != request) {
        tutti_assert(at != NULL);
        before = at;
        at = at->next;
    }
    if (before == NULL)
        list->first = request->next;
    else
        before->next = request->next;
    if (list->last == request)
        list->last = before;
    request->next = NULL;
}

void tutti_mail_finish(struct tutti_mail *mail, struct tutti_mail_request *request, int rc)
{
    tutti_assert(mail->pending > 0);
    tutti_assert(request->peer == TUTTI_MAIL_ANY || mail->peers[request->peer].npending > 0);
    mail->pending--;
    if (request->peer != TUTTI_MAIL_ANY)
        mail->peers[request->peer].npending--;
    request->result = rc;
    mail->done(mail->context, request);
}

int tutti_mail_init(struct tutti_mail *mail, struct tutti_fabric *fabric, int nranks, int rank,
                    void (*done)(void *context, struct tutti_mail_request *request),
                    void *context)
{
    *mail = (struct tutti_mail){.fabric = fabric, .nranks = nranks, .rank = rank, .done = done,
                                .context = context};
    mail->peers = calloc((size_t)nranks, sizeof *mail->peers);
    if (mail->peers == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a mailbox of %d ranks", nranks);
    for (int peer = 0; peer < nranks; peer++)
        mail->peers[peer].credits = TUTTI_MAIL_CREDITS;
    return TUTTI_OK;
}

void tutti_mail_fini(struct tutti_mail *mail)
{
    tutti_assert(mail->pending == 0);
    while (mail->arrivals != NULL) {
        struct tutti_mail_arrival *arrival = mail->arrivals;

        mail->arrivals = arrival->next;
        free(arrival);
    }
    free(mail->peers);
    mail->peers = NULL;
}

/* Fails if no rank is left that could send to a receive from any rank. This rank itself counts only
 * if it is alone. */
static int check_any_sender(const struct tutti_mail *mail)
{
    for (int rank = 0; rank < mail->nranks; rank++)
        if (!mail->peers[rank].has_left && (rank != mail->rank || mail->nranks == 1))
            return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_REMOTE, "all other ranks have destroyed their mailboxes");
}

/* True if requests wait for this peer, or for any, and the peer has not left. */
static bool is_awaited(const struct tutti_mail *mail, int rank)
{
    const struct tutti_mail_peer *peer = &mail->peers[rank];

    return rank != mail->rank && !peer->has_left && (peer->npending > 0 || mail->from_any > 0);
}

int tutti_mail_progress(struct tutti_mail *mail, bool *ret_moved)
{
    for (int rank = 0; rank < mail->nranks; rank++) {
        int rc;

        if (!is_awaited(mail, rank))
            continue;
        rc = tutti_mail_move(mail, rank, ret_moved);
        if (rc != TUTTI_OK && rc != TUTTI_AGAIN)
            return rc;
    }
    return mail->from_any > 0 ? check_any_sender(mail) : TUTTI_OK;
}

/* A rank of this host may be seen to have left before its last messages have been received. One
 * more pass receives these messages. So a rank counts as left only when a second call sees that it
 * has left. */
int tutti_mail_look_for_leavers(struct tutti_mail *mail)
{
    for (int rank = 0; rank < mail->nranks; rank++) {
        struct tutti_mail_peer *peer = &mail->peers[rank];

        if (!is_awaited(mail, rank) || !tutti_fabric_has_left(mail->fabric, rank))
            continue;
        if (peer->seems_gone)
            TUTTI_TRY(tutti_mail_note_left(mail, rank));
        peer->seems_gone = true;
    }
    return TUTTI_OK;
}

/* Ends all requests of a list with the result `rc`. */
static void fail_list(struct tutti_mail *mail, struct tutti_mail_list *list, int rc)
{
    while (list->first != NULL) {
        struct tutti_mail_request *request = list->first;

        tutti_mail_remove(list, request);
        tutti_mail_finish(mail, request, rc);
    }
}

static void fail_peer(struct tutti_mail *mail, struct tutti_mail_peer *peer, int rc)
{
    /* If a frame was sent in part, nothing can follow it. */
    peer->is_torn = peer->is_torn || peer->out_moved > 0;
    peer->out_moved = 0;
    peer->is_frame_fixed = false;
    /* A queued frame either completes its request, or the request is in one of the lists below. */
    while (peer->out_first != NULL) {
        struct tutti_mail_out *out = peer->out_first;

        peer->out_first = out->next;
        if (out->completes != NULL)
            tutti_mail_finish(mail, out->completes, rc);
    }
    if (peer->in_request != NULL)
        tutti_mail_finish(mail, peer->in_request, rc);
    peer->in_request = NULL;
    fail_list(mail, &peer->offered, rc);
    fail_list(mail, &peer->accepted, rc);
}

void tutti_mail_fail(struct tutti_mail *mail, int rc)
{
    for (int rank = 0; rank < mail->nranks; rank++)
        fail_peer(mail, &mail->peers[rank], rc);
    for (struct tutti_mail_arrival *at = mail->arrivals; at != NULL; at = at->next) {
        if (at->taker != NULL)
            tutti_mail_finish(mail, at->taker, rc);
        if (at->own_send != NULL)
            tutti_mail_finish(mail, at->own_send, rc);
        at->taker = at->own_send = NULL;
    }
    fail_list(mail, &mail->posted, rc);
    mail->from_any = 0;
}

int tutti_mail_waits_for(const struct tutti_mail *mail)
{
    for (int rank = 0; rank < mail->nranks; rank++)
        if (rank != mail->rank && mail->peers[rank].npending > 0)
            return rank;
    return TUTTI_MAIL_ANY;
}

const struct tutti_mail_request *tutti_mail_oldest_receive(const struct tutti_mail *mail, int rank)
{
    const struct tutti_mail_request *at = mail->posted.first;

    while (at != NULL && rank != TUTTI_MAIL_ANY && at->peer != rank && at->peer != TUTTI_MAIL_ANY)
        at = at->next;
    return at;
}

int tutti_mail_leave(struct tutti_mail *mail)
{
    int rc = TUTTI_OK;

    for (int rank = 0; rank < mail->nranks; rank++) {
        struct tutti_mail_peer *peer = &mail->peers[rank];
        bool moved; /* not used */

        if (peer->conn == NULL || peer->has_left || peer->is_torn)
            continue;
        /* BYE is queued once the queue of the peer is empty. */
        if (peer->own_out.frame.kind != TUTTI_MAIL_BYE && peer->out_first == NULL) {
            peer->own_out = (struct tutti_mail_out){.frame = {.kind = TUTTI_MAIL_BYE}};
            tutti_mail_queue(mail, rank, &peer->own_out);
        }
        if (tutti_mail_push(mail, rank, &moved) != TUTTI_OK)
            peer->has_left = true; /* the peer cannot be told */
        else if (peer->own_out.frame.kind != TUTTI_MAIL_BYE || peer->out_first != NULL)
            rc = TUTTI_AGAIN; /* the peer still has frames to be sent */
    }
    return rc;
}
