/* SPDX-License-Identifier: Apache-2.0
 * Point to point: sends and receives. */
#include "executor/host_message.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

int tutti_mailbox_init(struct tutti_mailbox *mailbox, int nranks)
{
    *mailbox = (struct tutti_mailbox){.nranks = nranks};
    mailbox->sequences = calloc(2 * (size_t)nranks, sizeof *mailbox->sequences);
    mailbox->last = calloc(2 * (size_t)nranks, sizeof *mailbox->last);
    if (mailbox->sequences == NULL || mailbox->last == NULL) {
        tutti_mailbox_fini(mailbox);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the messages of %d ranks", nranks);
    }
    return TUTTI_OK;
}

void tutti_mailbox_fini(struct tutti_mailbox *mailbox)
{
    free(mailbox->sequences);
    free(mailbox->last);
    *mailbox = (struct tutti_mailbox){.nranks = 0};
}

size_t tutti_mailbox_bytes(const struct tutti_mailbox *mailbox)
{
    return 2 * (size_t)mailbox->nranks * (sizeof *mailbox->sequences + sizeof *mailbox->last);
}

void tutti_mailbox_add(struct tutti_mailbox *mailbox, struct tutti_message *message)
{
    size_t lane = (size_t)message->call.root;

    if (message->call.kind == TUTTI_CALL_SEND)
        lane += (size_t)mailbox->nranks;
    message->before = mailbox->last[lane];
    mailbox->last[lane] = message;
    message->header = (struct tutti_header){.sequence = ++mailbox->sequences[lane],
                                            .signature = message->call.signature};
}

void tutti_mailbox_close(struct tutti_mailbox *mailbox)
{
    memset(mailbox->last, 0, 2 * (size_t)mailbox->nranks * sizeof *mailbox->last);
}

/* Bytes [*done, size) of `at` in the message's direction, as far as they go now. */
static int move(struct tutti_message *message, void *at, size_t size, size_t *done, bool *moved)
{
    struct tutti_conn *conn = message->conn;

    while (*done < size) {
        uint8_t *from = (uint8_t *)at + *done;
        size_t count;

        if (message->call.kind == TUTTI_CALL_SEND)
            TUTTI_TRY(conn->ops->send(conn, from, size - *done, &count));
        else
            TUTTI_TRY(conn->ops->recv(conn, from, size - *done, &count));
        if (count == 0)
            return TUTTI_AGAIN;
        *done += count;
        *moved = true;
    }
    return TUTTI_OK;
}

/* A payload of up to this many bytes travels with its header: one message, not two. */
enum { JOINED_BYTES = 8192 };

static int send_header(struct tutti_message *message, size_t payload, bool *moved)
{
    uint8_t joined[sizeof message->header + JOINED_BYTES];
    const uint8_t *offer = (const uint8_t *)&message->header;
    size_t taken, size = sizeof message->header, offered = size;

    if (payload > 0 && payload <= JOINED_BYTES && message->conn->ops->takes_by_copy) {
        memcpy(joined, &message->header, size);
        memcpy(joined + size, message->call.input, payload);
        offered += payload;
        offer = joined;
    }
    TUTTI_TRY(message->conn->ops->send(message->conn, offer + message->header_bytes,
                                       offered - message->header_bytes, &taken));
    if (taken == 0)
        return TUTTI_AGAIN;
    *moved = true;
    taken += message->header_bytes;
    message->header_bytes = (uint32_t)(taken < size ? taken : size);
    message->moved = taken - message->header_bytes;
    return message->header_bytes == size ? TUTTI_OK : TUTTI_AGAIN;
}

static int receive_header(struct tutti_message *message, bool *moved)
{
    size_t done = message->header_bytes;
    int rc = move(message, &message->theirs, sizeof message->header, &done, moved);

    message->header_bytes = (uint32_t)done;
    TUTTI_TRY(rc);
    if (!tutti_header_equal(&message->theirs, &message->header))
        return tutti_signature_mismatch(&message->header, message->call.root, &message->theirs);
    return TUTTI_OK;
}

static int move_header(struct tutti_message *message, size_t size, bool *moved)
{
    if (message->header_bytes == sizeof message->header)
        return TUTTI_OK;
    if (message->call.kind == TUTTI_CALL_RECV)
        return receive_header(message, moved);
    return send_header(message, size, moved);
}

int tutti_message_progress(struct tutti_engine *engine, struct tutti_message *message, bool *moved)
{
    const struct tutti_call *call = &message->call;
    void *at = call->kind == TUTTI_CALL_SEND ? (void *)(uintptr_t)call->input : call->output;
    size_t size = call->count * tutti_type_size(call->type);
    int rc;

    if (message->is_complete)
        return TUTTI_OK;
    if (message->before != NULL && !message->before->is_complete)
        return TUTTI_AGAIN;
    if (message->conn == NULL)
        TUTTI_TRY(tutti_fabric_connect(engine->fabric, call->root, TUTTI_CHANNEL_POINT_TO_POINT,
                                       &message->conn));
    /* When somebody has given up, the caller's next look at the peers says so. */
    if (!tutti_fabric_enter(engine->fabric))
        return TUTTI_AGAIN;
    rc = move_header(message, size, moved);
    if (rc == TUTTI_OK)
        rc = move(message, at, size, &message->moved, moved);
    if (!tutti_fabric_exit(engine->fabric) && rc == TUTTI_OK)
        return TUTTI_AGAIN;
    TUTTI_TRY(rc);
    message->is_complete = true;
    *moved = true;
    return TUTTI_OK;
}
