/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives: numbers them and moves their headers and bytes. */
#include "executor/host/message.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

int tutti_engine_numbers_init(struct tutti_engine_numbers *numbering, int nranks)
{
    *numbering = (struct tutti_engine_numbers){.nranks = nranks};
    numbering->sequences = calloc(2 * (size_t)nranks, sizeof *numbering->sequences);
    numbering->last = calloc(2 * (size_t)nranks, sizeof *numbering->last);
    if (numbering->sequences == NULL || numbering->last == NULL) {
        tutti_engine_numbers_fini(numbering);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the messages of %d ranks", nranks);
    }
    return TUTTI_OK;
}

void tutti_engine_numbers_fini(struct tutti_engine_numbers *numbering)
{
    free(numbering->sequences);
    free(numbering->last);
    *numbering = (struct tutti_engine_numbers){.nranks = 0};
}

size_t tutti_numbering_bytes(const struct tutti_engine_numbers *numbering)
{
    return 2 * (size_t)numbering->nranks * (sizeof *numbering->sequences + sizeof *numbering->last);
}

void tutti_engine_message_init(struct tutti_engine_message *message, const struct tutti_call *call)
{
    bool sends = call->kind == TUTTI_CALL_SEND;

    tutti_assert(sends || call->kind == TUTTI_CALL_RECV);
    message->before = NULL;
    message->conn = NULL;
    message->data = sends ? (uint8_t *)(uintptr_t)call->input : call->output;
    message->size = call->count * tutti_type_size(call->type);
    message->moved = 0;
    message->peer = call->root;
    message->sends = sends;
    message->streams = false;
    message->is_complete = false;
    message->header_bytes = 0;
    message->header = (struct tutti_header){.signature = call->signature};
    message->theirs = (struct tutti_header){.sequence = 0};
}

/* Returns the index of the message's peer and direction in the arrays of `numbering`. */
static size_t index_of(const struct tutti_engine_numbers *numbering,
                       const struct tutti_engine_message *message)
{
    tutti_assert(message->peer >= 0 && message->peer < numbering->nranks);
    return (size_t)message->peer + (message->sends ? (size_t)numbering->nranks : 0);
}

void tutti_numbering_add(struct tutti_engine_numbers *numbering,
                         struct tutti_engine_message *messages, size_t count)
{
    size_t sends = 0;

    for (size_t i = 0; i < count; i++) {
        size_t index = index_of(numbering, &messages[i]);

        sends += messages[i].sends;
        messages[i].before = numbering->last[index];
        messages[i].header.sequence = ++numbering->sequences[index];
        numbering->last[index] = &messages[i];
    }
    for (size_t i = 0; i < count; i++) {
        numbering->last[index_of(numbering, &messages[i])] = NULL;
        messages[i].is_mutual = sends > 0 && sends < count;
    }
}

/* A message's header travels without the chain, because messages are not part of the chain. */
enum { HEADER_BYTES = offsetof(struct tutti_header, chain) };

/* Sends bytes of the header, followed by data if the transport can send two buffers at once. */
static int offer_header(const struct tutti_engine_message *message, size_t *ret_taken)
{
    const struct tutti_conn_ops *ops = message->conn->ops;
    const uint8_t *header = (const uint8_t *)&message->header;
    size_t done = message->header_bytes, left = HEADER_BYTES - done;

    if (ops->send_two != NULL)
        return ops->send_two(message->conn, header + done, left, message->data, message->size,
                             ret_taken);
    return ops->send(message->conn, header + done, left, ret_taken);
}

/* Sends the rest of the header. TUTTI_AGAIN: a part is still to be sent. */
static int send_header(struct tutti_engine_message *message, bool *moved)
{
    size_t taken, left = HEADER_BYTES - message->header_bytes;

    TUTTI_TRY(offer_header(message, &taken));
    if (taken == 0)
        return TUTTI_AGAIN;
    *moved = true;
    message->header_bytes += (uint32_t)(taken < left ? taken : left);
    message->moved = taken < left ? 0 : taken - left;
    return taken < left ? TUTTI_AGAIN : TUTTI_OK;
}

/* Receives bytes of the header. Also receives data if the transport can receive two buffers at
 * once. */
static int take_header(struct tutti_engine_message *message, size_t *ret_got)
{
    const struct tutti_conn_ops *ops = message->conn->ops;
    uint8_t *rest = (uint8_t *)&message->theirs + message->header_bytes;
    size_t left = HEADER_BYTES - message->header_bytes;

    if (ops->recv_two != NULL && message->size > 0)
        return ops->recv_two(message->conn, rest, left, message->data, message->size, ret_got);
    return ops->recv(message->conn, rest, left, ret_got);
}

/* Receives the rest of the header, and compares it with this rank's. */
static int receive_header(struct tutti_engine_message *message, bool *moved)
{
    size_t got, left;

    do {
        TUTTI_TRY(take_header(message, &got));
        if (got == 0)
            return TUTTI_AGAIN;
        *moved = true;
        left = HEADER_BYTES - message->header_bytes;
        message->header_bytes += (uint32_t)(got < left ? got : left);
    } while (got < left);
    message->moved = got - left;
    if (!tutti_header_equal(&message->theirs, &message->header))
        return tutti_signature_mismatch(&message->header, message->peer, &message->theirs);
    return TUTTI_OK;
}

static int move_header(struct tutti_engine_message *message, bool *moved)
{
    if (message->header_bytes == HEADER_BYTES)
        return TUTTI_OK;
    return message->sends ? send_header(message, moved) : receive_header(message, moved);
}

static int move_payload(struct tutti_engine_message *message, bool *moved)
{
    struct tutti_conn *conn = message->conn;

    while (message->moved < message->size) {
        uint8_t *rest = message->data + message->moved;
        size_t left = message->size - message->moved, count;

        if (message->sends)
            TUTTI_TRY(conn->ops->send(conn, rest, left, &count));
        else
            TUTTI_TRY(conn->ops->recv(conn, rest, left, &count));
        if (count == 0)
            return TUTTI_AGAIN;
        message->moved += count;
        *moved = true;
    }
    return TUTTI_OK;
}

static void copy_past_cache(void *dst, const void *src, size_t size_bytes)
{
    tutti_cpu_copy(dst, src, size_bytes, true);
}

int tutti_engine_message_progress(struct tutti_engine *engine, struct tutti_engine_message *message,
                                  bool *moved)
{
    if (message->is_complete)
        return TUTTI_OK;
    if (message->before != NULL && !message->before->is_complete)
        return TUTTI_AGAIN;
    if (message->conn == NULL) {
        TUTTI_TRY(tutti_fabric_connect(engine->fabric, message->peer, TUTTI_CHANNEL_POINT_TO_POINT,
                                       &message->conn));
        message->streams = !message->sends && tutti_engine_decide_streaming(engine, message->data,
                                                                            message->size,
                                                                            message->is_mutual);
    }
    tutti_assert(message->header_bytes <= HEADER_BYTES && message->moved <= message->size);
    message->conn->is_mutual = message->is_mutual;
    message->conn->copy = message->streams ? copy_past_cache : NULL;
    TUTTI_TRY(move_header(message, moved));
    TUTTI_TRY(move_payload(message, moved));
    message->is_complete = true;
    *moved = true;
    return TUTTI_OK;
}
