/* SPDX-License-Identifier: Apache-2.0
 * Moves frames on the connections of a mailbox. Sends the frames in the queue of each peer, and
 * receives frames and the bytes that follow them. */
#include "base/result.h"
#include "mail/mail.h"

#include <string.h>

enum { FRAME_BYTES = sizeof(struct tutti_mail_frame) };
_Static_assert(FRAME_BYTES == 32, "no padding travels");

/* One pass moves about this many bytes to or from one peer. Then it is the turn of the other peers,
 * and the driving thread reads the clock. */
enum { PASS_BYTES = 1 << 20 };

/* ---- sending --------------------------------------------------------------------------- */

void tutti_mail_queue(struct tutti_mail *mail, int rank, struct tutti_mail_out *out)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];

    out->next = NULL;
    if (peer->out_first == NULL)
        peer->out_first = out;
    else
        peer->out_last->next = out;
    peer->out_last = out;
}

/* Every frame returns the credits that are owed. If many credits are owed and no frame is queued,
 * queue a frame for them. */
static void return_credits(struct tutti_mail *mail, int rank)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];

    if (peer->owed < TUTTI_MAIL_CREDITS / 2 || peer->out_first != NULL)
        return;
    peer->own_out = (struct tutti_mail_out){.frame = {.kind = TUTTI_MAIL_CREDIT}};
    tutti_mail_queue(mail, rank, &peer->own_out);
}

/* Offers the rest of a frame and its bytes to the transport. */
static int send_some(struct tutti_mail_peer *peer, struct tutti_mail_out *out, size_t *ret_taken)
{
    const struct tutti_conn_ops *ops = peer->conn->ops;
    const uint8_t *frame = (const uint8_t *)&out->frame;
    size_t moved = peer->out_moved;

    if (moved >= FRAME_BYTES)
        return ops->send(peer->conn, out->bytes + (moved - FRAME_BYTES),
                         out->size - (moved - FRAME_BYTES), ret_taken);
    if (out->size > 0 && ops->send_two != NULL)
        return ops->send_two(peer->conn, frame + moved, FRAME_BYTES - moved, out->bytes, out->size,
                             ret_taken);
    return ops->send(peer->conn, frame + moved, FRAME_BYTES - moved, ret_taken);
}

/* Puts the credits that are owed into the frame, before the transport is first given the frame.
 * After that the frame must not change. */
static void fix_frame(struct tutti_mail_peer *peer, struct tutti_mail_out *out)
{
    if (peer->is_frame_fixed)
        return;
    tutti_assert(peer->out_moved == 0 && peer->owed <= TUTTI_MAIL_CREDITS);
    peer->is_frame_fixed = true;
    out->frame.credits = (uint16_t)peer->owed;
    peer->owed = 0;
}

int tutti_mail_push(struct tutti_mail *mail, int rank, bool *ret_moved)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];
    struct tutti_mail_out *out;
    size_t total = 0;

    while ((out = peer->out_first) != NULL && total < PASS_BYTES) {
        size_t taken;

        fix_frame(peer, out);
        TUTTI_TRY(send_some(peer, out, &taken));
        if (taken == 0)
            return TUTTI_OK;
        *ret_moved = true;
        total += taken;
        peer->out_moved += taken;
        tutti_assert(peer->out_moved <= FRAME_BYTES + out->size);
        if (peer->out_moved < FRAME_BYTES + out->size)
            continue;
        peer->out_moved = 0;
        peer->is_frame_fixed = false;
        peer->out_first = out->next;
        if (out->completes != NULL)
            tutti_mail_finish(mail, out->completes, TUTTI_OK);
    }
    return TUTTI_OK;
}

/* ---- receiving ------------------------------------------------------------------------- */

/* Receives the rest of a frame's header, and handles the frame. TUTTI_AGAIN: not all of the header
 * has arrived. */
static int pull_frame(struct tutti_mail *mail, int rank, bool *ret_moved)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];
    size_t got;

    while (peer->in_frame < FRAME_BYTES) {
        TUTTI_TRY(peer->conn->ops->recv(peer->conn, (uint8_t *)&peer->frame + peer->in_frame,
                                        FRAME_BYTES - peer->in_frame, &got));
        if (got == 0)
            return TUTTI_AGAIN;
        tutti_assert(got <= FRAME_BYTES - peer->in_frame);
        peer->in_frame += got;
        *ret_moved = true;
    }
    return tutti_mail_begin_frame(mail, rank);
}

/* Receives the bytes that follow the frame. TUTTI_AGAIN: some are missing, or the pass is over. */
static int pull_bytes(struct tutti_mail_peer *peer, bool *ret_moved)
{
    size_t begun = peer->in_moved, got;

    while (peer->in_moved < peer->in_size) {
        if (peer->in_moved - begun >= PASS_BYTES)
            return TUTTI_AGAIN;
        TUTTI_TRY(peer->conn->ops->recv(peer->conn, peer->in_bytes + peer->in_moved,
                                        peer->in_size - peer->in_moved, &got));
        if (got == 0)
            return TUTTI_AGAIN;
        tutti_assert(got <= peer->in_size - peer->in_moved);
        peer->in_moved += got;
        *ret_moved = true;
    }
    return TUTTI_OK;
}

/* Receives all that has arrived. The result is never TUTTI_OK. TUTTI_AGAIN: nothing more can be
 * received now, or the peer has left. */
static int pull(struct tutti_mail *mail, int rank, bool *ret_moved)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];

    while (!peer->has_left) {
        if (peer->in_frame < FRAME_BYTES)
            TUTTI_TRY(pull_frame(mail, rank, ret_moved));
        TUTTI_TRY(pull_bytes(peer, ret_moved));
        TUTTI_TRY(tutti_mail_end_frame(mail, rank));
        peer->in_frame = 0;
        peer->in_size = peer->in_moved = 0;
    }
    return TUTTI_AGAIN;
}

/* ---- both ------------------------------------------------------------------------------ */

int tutti_mail_move(struct tutti_mail *mail, int rank, bool *ret_moved)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];
    int rc;

    if (peer->conn == NULL)
        TUTTI_TRY(tutti_fabric_connect(mail->fabric, rank, TUTTI_CHANNEL_POINT_TO_POINT,
                                       &peer->conn));
    /* Receive first, because a received frame may queue an answer that can be sent at once. */
    rc = pull(mail, rank, ret_moved);
    if (rc != TUTTI_AGAIN || peer->has_left)
        return rc;
    return_credits(mail, rank);
    return tutti_mail_push(mail, rank, ret_moved);
}
