/* SPDX-License-Identifier: Apache-2.0
 * Frames on a TCP stream between members that have proved themselves. They are
 * trusted to be ranks, not to be right: sizes are bounded before they are used. */
#include "bootstrap/exchange.h"

#include <sys/socket.h>

static void encode(const struct tutti_frame *frame, uint8_t head[TUTTI_FRAME_BYTES])
{
    tutti_put_u32(head, frame->kind);
    tutti_put_u32(head + 4, frame->round);
    tutti_put_u32(head + 8, frame->size);
    tutti_put_u32(head + 12, (uint32_t)frame->code);
    tutti_put_u32(head + 16, (uint32_t)frame->session);
    tutti_put_u32(head + 20, (uint32_t)(frame->session >> 32));
}

static void decode(const uint8_t head[TUTTI_FRAME_BYTES], struct tutti_frame *ret_frame)
{
    *ret_frame = (struct tutti_frame){
        .kind = tutti_get_u32(head),
        .round = tutti_get_u32(head + 4),
        .size = tutti_get_u32(head + 8),
        .code = (int32_t)tutti_get_u32(head + 12),
        .session = tutti_get_u32(head + 16) | (uint64_t)tutti_get_u32(head + 20) << 32,
    };
}

int tutti_inbox_step(struct tutti_inbox *inbox, int fd)
{
    size_t moved;

    while (inbox->done < TUTTI_FRAME_BYTES) {
        TUTTI_TRY(tutti_socket_recv(fd, inbox->head + inbox->done, TUTTI_FRAME_BYTES - inbox->done,
                                    &moved));
        if (moved == 0)
            return TUTTI_AGAIN;
        inbox->done += moved;
    }
    decode(inbox->head, &inbox->frame);
    if (inbox->frame.size > inbox->capacity)
        return tutti_note(TUTTI_ERR_REMOTE, "a frame of kind %u and %u bytes where %zu are due",
                          inbox->frame.kind, inbox->frame.size, inbox->capacity);

    while (inbox->done < TUTTI_FRAME_BYTES + inbox->frame.size) {
        size_t at = inbox->done - TUTTI_FRAME_BYTES;

        TUTTI_TRY(tutti_socket_recv(fd, inbox->body + at, inbox->frame.size - at, &moved));
        if (moved == 0)
            return TUTTI_AGAIN;
        inbox->done += moved;
    }
    inbox->done = 0;
    return TUTTI_OK;
}

int tutti_inbox_error(const struct tutti_inbox *inbox, char *ret_text, size_t size)
{
    size_t length = inbox->frame.size < size - 1 ? inbox->frame.size : size - 1;

    for (size_t i = 0; i < length; i++) {
        uint8_t byte = inbox->body[i];

        ret_text[i] = (char)(byte < 0x20 || byte == 0x7f ? '?' : byte);
    }
    ret_text[length] = '\0';
    switch (inbox->frame.code) {
    case TUTTI_ERR_USAGE: return TUTTI_ERR_USAGE;
    case TUTTI_ERR_TIMEOUT: return TUTTI_ERR_TIMEOUT;
    default: return TUTTI_ERR_REMOTE;
    }
}

void tutti_outbox_load(struct tutti_outbox *outbox, const struct tutti_frame *frame,
                       const void *body)
{
    tutti_assert(outbox->size == 0);
    encode(frame, outbox->head);
    outbox->body = body;
    outbox->size = TUTTI_FRAME_BYTES + frame->size;
    outbox->done = 0;
}

int tutti_outbox_step(struct tutti_outbox *outbox, int fd)
{
    while (outbox->done < outbox->size) {
        bool is_head = outbox->done < TUTTI_FRAME_BYTES;
        const uint8_t *from = is_head ? outbox->head + outbox->done
                                      : outbox->body + (outbox->done - TUTTI_FRAME_BYTES);
        size_t end = is_head ? TUTTI_FRAME_BYTES : outbox->size;
        size_t moved;

        TUTTI_TRY(tutti_socket_send(fd, from, end - outbox->done, &moved));
        if (moved == 0)
            return TUTTI_AGAIN;
        outbox->done += moved;
    }
    outbox->size = outbox->done = 0;
    return TUTTI_OK;
}

void tutti_exchange_hang_up(int fd)
{
    uint8_t scrap[4096];
    size_t moved;

    shutdown(fd, SHUT_WR);
    /* Bounded: a peer that keeps talking is no reason to stay. */
    for (int turn = 0; turn < 64; turn++)
        if (tutti_socket_recv(fd, scrap, sizeof scrap, &moved) != TUTTI_OK || moved == 0)
            return;
}
