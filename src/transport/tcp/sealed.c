/* SPDX-License-Identifier: Apache-2.0
 * Moves the byte stream over a pair's sockets as sealed records (TUTTI_ENCRYPT).
 *
 *     stream   |      stripe, socket 0      |      stripe, socket 1      |  ...
 *     records  | 1 |  2  |  3  | 4 |  5  |  | 1 |  2  |  3  |  4  |  5 |
 *
 * A record is within one stripe. If the kernel takes only a part of it, none of its bytes count as
 * taken. Then the caller offers them again, and that call sends the rest of the record. So nothing
 * is left to be sent when a caller has no more to offer.
 *
 * A record that is too large for its destination, or is only peeked at, is opened into the
 * connection's buffer. */
#include "transport/tcp/tcp.h"

#include "base/result.h"
#include "base/round.h"
#include "transport/carry.h"
#include "transport/tcp/seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The buffer for the bytes that arrive on a socket holds two records, so one system call mostly
 * brings a whole record. */
enum { RECORD_BYTES = TUTTI_SEAL_MOST_BYTES + TUTTI_SEAL_FRAME_BYTES, WIRE_BYTES = 65536 };
_Static_assert(2 * RECORD_BYTES <= WIRE_BYTES, "two records fit");
_Static_assert(64 + TUTTI_SEAL_MOST_BYTES <= TUTTI_TCP_BUFFER_BYTES,
               "part of an element and a record fit in the connection's buffer");

/* The most bytes of a head and of data that are joined in one record. */
enum { HEAD_BYTES = 256, JOINED_BYTES = 8192 };

struct sealed_socket {
    struct tutti_seal out, in; /* of what this rank sends, and of what it receives */
    size_t begin, end; /* the bytes in `wire` that have arrived and are not opened */
    uint8_t *wire;     /* WIRE_BYTES */
};

struct tutti_tcp_sealing {
    uint8_t *record;     /* RECORD_BYTES: the record that is being sent */
    size_t covers;       /* bytes of the stream in it; 0: none is being sent */
    size_t record_bytes; /* the record's size */
    size_t sent;         /* bytes of the record that the kernel has taken */
    struct sealed_socket sockets[]; /* [nsockets] */
};

/* ---- life ---------------------------------------------------------------------------- */

int tutti_tcp_sealing_create(struct tutti_tcp_conn *conn)
{
    size_t nsockets = (size_t)conn->nsockets;
    size_t front =
        tutti_round_up(sizeof(struct tutti_tcp_sealing) + nsockets * sizeof(struct sealed_socket),
                       TUTTI_CACHE_LINE);
    size_t record = tutti_round_up(RECORD_BYTES, TUTTI_CACHE_LINE),
           whole = front + record + nsockets * WIRE_BYTES;
    uint8_t *block = aligned_alloc(TUTTI_CACHE_LINE, whole);

    if (block == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to encrypt a connection to rank %d",
                          conn->base.peer);
    memset(block, 0, front);
    conn->sealing = (struct tutti_tcp_sealing *)block;
    conn->sealing->record = block + front;
    for (size_t i = 0; i < nsockets; i++)
        conn->sealing->sockets[i].wire = block + front + record + i * WIRE_BYTES;
    conn->base.private_bytes += whole;
    return TUTTI_OK;
}

void tutti_tcp_sealing_destroy(struct tutti_tcp_conn *conn)
{
    if (conn->sealing == NULL)
        return;
    for (int i = 0; i < conn->nsockets; i++) {
        tutti_seal_fini(&conn->sealing->sockets[i].out);
        tutti_seal_fini(&conn->sealing->sockets[i].in);
    }
    free(conn->sealing);
    conn->sealing = NULL;
}

static bool uses_aes(const struct tutti_tcp_conn *conn)
{
    const struct tutti_fabric *fabric = conn->base.fabric;

    return tutti_tcp_record(fabric, fabric->rank)->has_aes != 0 &&
           tutti_tcp_record(fabric, conn->base.peer)->has_aes != 0;
}

void tutti_tcp_sealing_start(struct tutti_tcp_conn *conn, int index,
                             const struct tutti_handshake *shake)
{
    struct sealed_socket *socket = &conn->sealing->sockets[index];
    enum tutti_seal_mode mode = tutti_tcp_own_record(conn->base.fabric)->seal_mode;
    uint8_t from_caller[TUTTI_SECRET_BYTES], to_caller[TUTTI_SECRET_BYTES];

    tutti_handshake_key(shake, "tcp from the caller", from_caller);
    tutti_handshake_key(shake, "tcp to the caller", to_caller);
    tutti_seal_init(&socket->out, mode, uses_aes(conn),
                    shake->is_acceptor ? to_caller : from_caller);
    tutti_seal_init(&socket->in, mode, uses_aes(conn),
                    shake->is_acceptor ? from_caller : to_caller);
    sodium_memzero(from_caller, sizeof from_caller);
    sodium_memzero(to_caller, sizeof to_caller);
    socket->begin = socket->end = 0;
}

/* ---- sending ------------------------------------------------------------------------- */

/* Seals the next bytes of the stream as a record, as many of `size` as a record can hold. */
static void seal_record(struct tutti_tcp_conn *tcp, const void *data, size_t size)
{
    struct tutti_tcp_sealing *sealing = tcp->sealing;

    if (size > tcp->out.left)
        size = tcp->out.left;
    if (size > TUTTI_SEAL_MOST_BYTES)
        size = TUTTI_SEAL_MOST_BYTES;
    sealing->record_bytes =
        tutti_seal_close(&sealing->sockets[tcp->out.socket].out, data, size, sealing->record);
    sealing->covers = size;
    sealing->sent = 0;
}

/* Sends as much of the record as the kernel takes. *ret_taken is 0 until all of it has been sent,
 * and then the number of bytes of the stream in it. A caller that offers fewer bytes than these is
 * giving up, and nothing is sent for it. */
static int send_record(struct tutti_tcp_conn *tcp, size_t offered, size_t *ret_taken)
{
    struct tutti_tcp_sealing *sealing = tcp->sealing;
    size_t done;

    *ret_taken = 0;
    if (sealing->covers > offered)
        return TUTTI_OK;
    if (tutti_socket_send(tcp->fds[tcp->out.socket], sealing->record + sealing->sent,
                          sealing->record_bytes - sealing->sent, &done) != TUTTI_OK)
        return tutti_tcp_fail_gone(tcp);
    sealing->sent += done;
    if (sealing->sent < sealing->record_bytes)
        return TUTTI_OK;
    *ret_taken = sealing->covers;
    tutti_tcp_advance(tcp, &tcp->out, sealing->covers);
    sealing->covers = 0;
    return TUTTI_OK;
}

int tutti_tcp_sealed_send(struct tutti_conn *conn, const void *data, size_t size,
                          size_t *ret_taken)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0, more = 1;

    while (more > 0 && taken < size && taken < tcp->most_per_call) {
        if (tcp->sealing->covers == 0)
            seal_record(tcp, from + taken, size - taken);
        TUTTI_TRY(send_record(tcp, size - taken, &more));
        taken += more;
    }
    *ret_taken = taken;
    return TUTTI_OK;
}

int tutti_tcp_sealed_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                              const void *data, size_t size, size_t *ret_taken)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    size_t joined_data = size < JOINED_BYTES ? size : JOINED_BYTES, taken = 0, more = 0;
    uint8_t joined[HEAD_BYTES + JOINED_BYTES];

    /* The header of a collective with one count per rank may be long. A long header is sent in a
     * separate record. */
    if (tcp->sealing->covers == 0 && head_size > HEAD_BYTES) {
        seal_record(tcp, head, head_size);
    } else if (tcp->sealing->covers == 0) {
        memcpy(joined, head, head_size);
        if (size > 0)
            memcpy(joined + head_size, data, joined_data);
        seal_record(tcp, joined, head_size + joined_data);
    }
    TUTTI_TRY(send_record(tcp, head_size + size, &taken));
    if (taken > head_size && taken < head_size + size)
        TUTTI_TRY(tutti_tcp_sealed_send(conn, (const uint8_t *)data + (taken - head_size),
                                        head_size + size - taken, &more));
    *ret_taken = taken + more;
    return TUTTI_OK;
}

/* ---- receiving ----------------------------------------------------------------------- */

/* The state of the stream's next record. */
struct arrival {
    enum {
        ARRIVAL_NONE,    /* not all of its bytes have arrived */
        ARRIVAL_READY,   /* all of its bytes have arrived */
        ARRIVAL_GONE,    /* the socket has failed or ended */
        ARRIVAL_CHANGED, /* it was changed on the way */
    } state;
    size_t size;         /* size of the payload, valid with ARRIVAL_READY */
    int drained_socket;  /* the socket for which the kernel has no more bytes; -1: not known */
};

static int __attribute__((noinline, cold))
fail_arrival(struct tutti_tcp_conn *tcp, const struct arrival *arrival)
{
    const struct tutti_fabric *fabric = tcp->base.fabric;
    char what[TUTTI_MESSAGE_BYTES];

    if (arrival->state == ARRIVAL_GONE)
        return tutti_tcp_fail_gone(tcp);
    snprintf(what, sizeof what,
             "sent bytes that were changed on the way: record %llu on socket %d of channel %d "
             "fails its check, and nothing of it was used (TUTTI_ENCRYPT=%s); somebody or "
             "something between the two ranks alters what they send",
             (unsigned long long)tcp->sealing->sockets[tcp->in.socket].in.count, tcp->in.socket,
             tcp->base.channel,
             tutti_seal_mode_name(tutti_tcp_record(fabric, fabric->rank)->seal_mode));
    return tutti_fabric_peer_failed(tcp->base.fabric, tcp->base.peer, what);
}

/* Reads more from the current socket. Returns false if nothing has arrived, or the socket has
 * ended. */
static bool fill(struct tutti_tcp_conn *tcp, struct sealed_socket *socket, struct arrival *arrival)
{
    size_t asked, got;

    if (arrival->drained_socket == tcp->in.socket)
        return false;
    if (socket->begin == socket->end || WIRE_BYTES - socket->begin < RECORD_BYTES) {
        memmove(socket->wire, socket->wire + socket->begin, socket->end - socket->begin);
        socket->end -= socket->begin;
        socket->begin = 0;
    }
    asked = WIRE_BYTES - socket->end;
    if (tutti_socket_recv(tcp->fds[tcp->in.socket], socket->wire + socket->end, asked, &got) !=
        TUTTI_OK) {
        arrival->state = ARRIVAL_GONE;
        return false;
    }
    socket->end += got;
    if (got < asked)
        arrival->drained_socket = tcp->in.socket;
    return got > 0;
}

/* Checks whether a whole record has arrived. */
static bool has_arrived(struct tutti_tcp_conn *tcp, struct arrival *arrival)
{
    struct sealed_socket *socket = &tcp->sealing->sockets[tcp->in.socket];

    arrival->state = ARRIVAL_NONE;
    do {
        size_t have = socket->end - socket->begin;

        if (have < TUTTI_SEAL_HEAD_BYTES)
            continue;
        arrival->size = tutti_seal_measure(socket->wire + socket->begin);
        if (arrival->size == 0 || arrival->size > tcp->in.left)
            arrival->state = ARRIVAL_CHANGED;
        else if (have >= arrival->size + TUTTI_SEAL_FRAME_BYTES)
            arrival->state = ARRIVAL_READY;
    } while (arrival->state == ARRIVAL_NONE && fill(tcp, socket, arrival));
    return arrival->state == ARRIVAL_READY;
}

/* Open the record that has arrived. */
static bool open_arrival(struct tutti_tcp_conn *tcp, struct arrival *arrival, uint8_t *to)
{
    struct sealed_socket *socket = &tcp->sealing->sockets[tcp->in.socket];

    if (!tutti_seal_open(&socket->in, socket->wire + socket->begin, arrival->size, to)) {
        arrival->state = ARRIVAL_CHANGED;
        return false;
    }
    socket->begin += arrival->size + TUTTI_SEAL_FRAME_BYTES;
    tutti_tcp_advance(tcp, &tcp->in, arrival->size);
    return true;
}

static bool has_failed(const struct arrival *arrival)
{
    return arrival->state == ARRIVAL_GONE || arrival->state == ARRIVAL_CHANGED;
}

int tutti_tcp_sealed_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    struct arrival arrival = {.drained_socket = -1};
    uint8_t *to = data;
    size_t got = tutti_tcp_take_buffered(tcp, to, size);

    while (got < size && got < tcp->most_per_call && has_arrived(tcp, &arrival)) {
        bool is_direct = arrival.size <= size - got;

        if (!open_arrival(tcp, &arrival, is_direct ? to + got : tcp->buffer))
            break;
        if (is_direct) {
            got += arrival.size;
            continue;
        }
        tcp->begin = 0;
        tcp->have = arrival.size;
        got += tutti_tcp_take_buffered(tcp, to + got, size - got);
    }
    *ret_got = got;
    if (got == 0 && has_failed(&arrival))
        return fail_arrival(tcp, &arrival);
    return TUTTI_OK;
}

int tutti_tcp_sealed_peek(struct tutti_conn *conn, size_t least, size_t most,
                          const void **ret_data, size_t *ret_size)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    struct arrival arrival = {.drained_socket = -1};

    if (tcp->have < least || tcp->begin % tutti_peek_alignment(least) != 0) {
        memmove(tcp->buffer, tcp->buffer + tcp->begin, tcp->have);
        tcp->begin = 0;
        while (tcp->have < least && has_arrived(tcp, &arrival) &&
               open_arrival(tcp, &arrival, tcp->buffer + tcp->have))
            tcp->have += arrival.size;
    }
    *ret_data = tcp->buffer + tcp->begin;
    *ret_size = (tcp->have < most ? tcp->have : most) / least * least;
    if (tcp->have < least && has_failed(&arrival))
        return fail_arrival(tcp, &arrival);
    return TUTTI_OK;
}
