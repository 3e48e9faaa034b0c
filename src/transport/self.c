/* SPDX-License-Identifier: Apache-2.0
 * The transport "self" is a rank's stream to itself. A send only remembers the sender's buffer (the
 * offer), and the receiver copies from it. So there is one copy, and no buffer is allocated. */
#include "transport/carry.h"
#include "transport/fabric_private.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes that are shown at once if the offer is not aligned. */
#define BOUNCE_BYTES 4096

struct self_conn {
    struct tutti_conn base;
    const uint8_t *offer; /* the part of the offer that is left: `offered` bytes */
    size_t offered;
    size_t taken;         /* bytes of the offer that are received and not yet reported to the
                             sender */
    struct tutti_carry carry;
    bool is_carry_shown;                     /* the last peek has shown the carry */
    alignas(8) uint8_t bounce[BOUNCE_BYTES]; /* for offers at unaligned addresses */
};

static const struct tutti_conn_ops stream_ops;

static bool self_reach(const struct tutti_fabric *fabric, int a, int b)
{
    (void)fabric;
    return a == b;
}

static int self_connect(struct tutti_fabric *fabric, int peer, int channel,
                        struct tutti_conn **conn)
{
    *conn = tutti_conn_create(fabric, &stream_ops, peer, channel, sizeof(struct self_conn));
    return *conn != NULL ? TUTTI_OK : TUTTI_ERR_SYSTEM;
}

static int self_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct self_conn *self = (struct self_conn *)conn;

    *ret_taken = self->taken;
    self->offer = (const uint8_t *)data + self->taken;
    self->offered = size - self->taken;
    self->taken = 0;
    return TUTTI_OK;
}

/* Copies the next bytes of the offer. Returns their number. */
static size_t take(struct self_conn *self, void *data, size_t size)
{
    if (size > self->offered)
        size = self->offered;
    if (size == 0)
        return 0;
    memcpy(data, self->offer, size);
    self->offer += size;
    self->offered -= size;
    self->taken += size;
    return size;
}

static int self_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct self_conn *self = (struct self_conn *)conn;
    size_t got = tutti_carry_take(&self->carry, data, size);

    *ret_got = got + take(self, (uint8_t *)data + got, size - got);
    return TUTTI_OK;
}

/* Puts an element together in the carry, because only a part of it has been offered so far. */
static size_t gather(struct self_conn *self, size_t least, const void **ret_data)
{
    struct tutti_carry *carry = &self->carry;

    if (carry->have < least)
        carry->have += take(self, carry->bytes + carry->have, least - carry->have);
    if (carry->have < least)
        return 0;
    self->is_carry_shown = true;
    *ret_data = carry->bytes;
    return least;
}

static int self_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                     size_t *ret_size)
{
    struct self_conn *self = (struct self_conn *)conn;
    size_t usable = (self->offered < most ? self->offered : most) / least * least;

    self->is_carry_shown = false;
    *ret_size = 0;
    if (most < least)
        return TUTTI_OK;
    if (self->carry.have > 0 || usable == 0) {
        *ret_size = gather(self, least, ret_data);
        return TUTTI_OK;
    }
    if ((uintptr_t)self->offer % tutti_peek_alignment(least) != 0) {
        if (usable > BOUNCE_BYTES)
            usable = BOUNCE_BYTES / least * least;
        memcpy(self->bounce, self->offer, usable);
        *ret_data = self->bounce;
    } else {
        *ret_data = self->offer;
    }
    *ret_size = usable;
    return TUTTI_OK;
}

static void self_consume(struct tutti_conn *conn, size_t size)
{
    struct self_conn *self = (struct self_conn *)conn;

    if (self->is_carry_shown) {
        tutti_carry_drop(&self->carry, size);
        return;
    }
    self->offer += size;
    self->offered -= size;
    self->taken += size;
}

static void self_close(struct tutti_conn *conn)
{
    free(conn);
}

static const struct tutti_conn_ops stream_ops = {
    .send = self_send,
    .recv = self_recv,
    .peek = self_peek,
    .consume = self_consume,
    .close = self_close,
};

const struct tutti_transport_ops tutti_self_ops = {
    .name = "self",
    .is_always_on = true,
    .reach = self_reach,
    .connect = self_connect,
};
