/* SPDX-License-Identifier: Apache-2.0
 * Frames on a stream between ranks that have proved themselves. Such a peer is trusted to be a
 * rank, but not to be correct: sizes are checked before they are used. */
#include "bootstrap/exchange.h"

#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(TUTTI_DIGEST_BYTES == crypto_generichash_BYTES, "a digest is a plain BLAKE2b");

void tutti_exchange_seal(struct tutti_handshake *shake, struct tutti_inbox *inbox,
                         struct tutti_outbox *outbox)
{
    static const char to_root[] = "bootstrap: to root", to_member[] = "bootstrap: to member";

    inbox->seal.number = outbox->seal.number = 0;
    tutti_handshake_key(shake, shake->is_acceptor ? to_root : to_member, inbox->seal.key);
    tutti_handshake_key(shake, shake->is_acceptor ? to_member : to_root, outbox->seal.key);
    tutti_handshake_forget(shake);
}

/* The MAC covers the frame's number, so that the receiver notices a frame that was dropped,
 * repeated or reordered. */
static void make_mac(const struct tutti_frame_seal *seal,
                     const uint8_t head[TUTTI_FRAME_HEAD_BYTES], uint8_t ret_mac[TUTTI_MAC_BYTES])
{
    crypto_generichash_state state;
    uint8_t number[8];

    tutti_frame_put_u64(number, seal->number);
    crypto_generichash_init(&state, seal->key, sizeof seal->key, TUTTI_MAC_BYTES);
    crypto_generichash_update(&state, number, sizeof number);
    crypto_generichash_update(&state, head, TUTTI_FRAME_HEAD_BYTES);
    crypto_generichash_final(&state, ret_mac, TUTTI_MAC_BYTES);
    sodium_memzero(&state, sizeof state);
}

void tutti_frame_digest(struct tutti_frame *frame, const void *body)
{
    crypto_generichash(frame->digest, sizeof frame->digest, body, frame->size, NULL, 0);
}

static void encode(const struct tutti_frame *frame, uint8_t head[TUTTI_FRAME_HEAD_BYTES])
{
    tutti_frame_put_u32(head, frame->kind);
    tutti_frame_put_u32(head + 4, frame->round);
    tutti_frame_put_u32(head + 8, frame->size);
    tutti_frame_put_u32(head + 12, (uint32_t)frame->code);
    tutti_frame_put_u64(head + 16, frame->session);
    memcpy(head + 24, frame->digest, sizeof frame->digest);
}

static void decode(const uint8_t head[TUTTI_FRAME_HEAD_BYTES], struct tutti_frame *ret_frame)
{
    *ret_frame = (struct tutti_frame){
        .kind = tutti_frame_get_u32(head),
        .round = tutti_frame_get_u32(head + 4),
        .size = tutti_frame_get_u32(head + 8),
        .code = (int32_t)tutti_frame_get_u32(head + 12),
        .session = tutti_frame_get_u64(head + 16),
    };
    memcpy(ret_frame->digest, head + 24, sizeof ret_frame->digest);
}

static int note_altered(void)
{
    return tutti_note(TUTTI_ERR_REMOTE, "a message was altered on its way (its MAC is wrong): "
                                        "something between the two ranks changes their bytes");
}

/* The head has arrived: check that it is authentic and that there is room for the body. */
static int check_head(struct tutti_inbox *inbox)
{
    uint8_t mac[TUTTI_MAC_BYTES];

    if (inbox->is_head_checked)
        return TUTTI_OK;
    make_mac(&inbox->seal, inbox->head, mac);
    if (sodium_memcmp(mac, inbox->head + TUTTI_FRAME_HEAD_BYTES, sizeof mac) != 0)
        return note_altered();
    inbox->seal.number++;
    decode(inbox->head, &inbox->frame);
    if (inbox->frame.size > inbox->capacity)
        return tutti_note(TUTTI_ERR_REMOTE, "a frame of kind %u and %u bytes where %zu are due",
                          inbox->frame.kind, inbox->frame.size, inbox->capacity);
    inbox->is_head_checked = true;
    return TUTTI_OK;
}

static int check_body(const struct tutti_inbox *inbox)
{
    struct tutti_frame frame = {.size = inbox->frame.size};

    tutti_frame_digest(&frame, inbox->body);
    if (memcmp(frame.digest, inbox->frame.digest, sizeof frame.digest) != 0)
        return note_altered();
    return TUTTI_OK;
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
    TUTTI_TRY(check_head(inbox));
    while (inbox->done < TUTTI_FRAME_BYTES + inbox->frame.size) {
        size_t at = inbox->done - TUTTI_FRAME_BYTES;

        TUTTI_TRY(tutti_socket_recv(fd, inbox->body + at, inbox->frame.size - at, &moved));
        if (moved == 0)
            return TUTTI_AGAIN;
        inbox->done += moved;
    }
    TUTTI_TRY(check_body(inbox));
    inbox->done = 0;
    inbox->is_head_checked = false;
    return TUTTI_OK;
}

int tutti_inbox_error(const struct tutti_inbox *inbox, char *ret_text, size_t size)
{
    size_t length = inbox->frame.size < size - 1 ? inbox->frame.size : size - 1;

    memcpy(ret_text, inbox->body, length);
    tutti_message_clean(ret_text, length);
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
    make_mac(&outbox->seal, outbox->head, outbox->head + TUTTI_FRAME_HEAD_BYTES);
    outbox->seal.number++;
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
    /* The loop is bounded, so that a peer that keeps sending cannot hold this thread. */
    for (int turn = 0; turn < 64; turn++)
        if (tutti_socket_recv(fd, scrap, sizeof scrap, &moved) != TUTTI_OK || moved == 0)
            return;
}
