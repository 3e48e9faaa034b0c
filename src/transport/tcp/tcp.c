/* SPDX-License-Identifier: Apache-2.0
 * Makes the connections of the transport "tcp", and moves the byte stream over the sockets of a
 * pair. Bytes move directly between the sockets and the user's memory. Only small messages and
 * bytes that are peeked at are buffered. */
#include "transport/tcp/tcp.h"

#include "transport/carry.h"
#include "transport/tcp/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A head and data of up to this many bytes are copied into one place, because this costs less than
 * passing the kernel two places. */
enum { JOINED_BYTES = 8192 };

/* A request for at most SMALL_READ_BYTES reads up to READ_AHEAD_BYTES, which is all of a small
 * message. */
enum { SMALL_READ_BYTES = 256, READ_AHEAD_BYTES = JOINED_BYTES + SMALL_READ_BYTES };

/* The approximate number of bytes that one call offers to the kernel. It is small enough that the
 * other direction gets its turn while its data is still in the caches. It is rounded down to a
 * whole number of TCP segments, because each call ends a segment, and a short segment costs the
 * kernel as much as a full one. */
enum { MOST_PER_CALL = 512 * 1024 };

/* The number of sockets of a connection. Between hosts several sockets use several paths and cores.
 * Within a host several sockets would only take turns. A core moves some 10 to 20 Gbit/s through a
 * socket, so faster interfaces get more sockets. */
enum { SOCKETS_NEAR = 1, SOCKETS_FAR = 2, SOCKETS_FAST = 4, SOCKETS_FASTEST = 8 };
enum { FAST_MBITS = 25000, FASTEST_MBITS = 100000 };

/* ---- connecting ---------------------------------------------------------------------- */

bool tutti_tcp_is_near(const struct tutti_fabric *fabric, int peer)
{
    return tutti_fabric_same_network(fabric, peer, fabric->rank);
}

/* The slower of the two ranks' interfaces determines the number of sockets. */
static int count_by_rate(const struct tutti_fabric *fabric, int peer)
{
    uint32_t theirs = fabric->records[peer].mbits, ours = fabric->mine.mbits;
    uint32_t mbits = theirs < ours ? theirs : ours;

    return mbits >= FASTEST_MBITS ? SOCKETS_FASTEST : mbits >= FAST_MBITS ? SOCKETS_FAST
                                                                          : SOCKETS_FAR;
}

int tutti_tcp_count_sockets(const struct tutti_fabric *fabric, int peer)
{
    int usual = tutti_tcp_is_near(fabric, peer) ? SOCKETS_NEAR : count_by_rate(fabric, peer);
    int theirs = tutti_tcp_record(fabric, peer)->nsockets;
    int ours = tutti_tcp_record(fabric, fabric->rank)->nsockets;

    theirs = theirs > 0 ? theirs : usual;
    ours = ours > 0 ? ours : usual;
    return theirs < ours ? theirs : ours;
}

int tutti_tcp_conn_create(struct tutti_fabric *fabric, int peer, int channel,
                          struct tutti_tcp_conn **ret_conn)
{
    bool is_sealed = tutti_tcp_own_record(fabric)->seal_mode != TUTTI_SEAL_OFF;
    const struct tutti_conn_ops *ops = is_sealed ? &tutti_tcp_sealed_ops : &tutti_tcp_conn_ops;
    struct tutti_tcp_conn *conn = tutti_conn_create(fabric, ops, peer, channel, sizeof *conn);
    int rc;

    if (conn == NULL)
        return TUTTI_ERR_SYSTEM;
    conn->nsockets = tutti_tcp_count_sockets(fabric, peer);
    conn->buffer = aligned_alloc(TUTTI_CACHE_LINE, TUTTI_TCP_BUFFER_BYTES);
    if (conn->buffer == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a connection to rank %d", peer);
        goto free_conn;
    }
    conn->base.private_bytes += TUTTI_TCP_BUFFER_BYTES;
    if (is_sealed)
        TUTTI_TRY_OR(free_buffer, rc, tutti_tcp_sealing_create(conn));
    conn->out.left = conn->in.left = conn->nsockets > 1 ? TUTTI_TCP_STRIPE_BYTES : SIZE_MAX;
    for (int i = 0; i < TUTTI_TCP_MAX_SOCKETS; i++)
        conn->fds[i] = -1;
    tutti_tcp_probe_init(&conn->probe);
    tutti_store_relaxed(&tutti_tcp_of(fabric)->has_met[peer], 1);
    fabric->conns[tutti_conn_index(peer, channel)] = &conn->base;
    *ret_conn = conn;
    return TUTTI_OK;

free_buffer:
    free(conn->buffer);
free_conn:
    free(conn);
    return rc;
}

/* Returns MOST_PER_CALL, rounded down to whole segments of the socket. */
static size_t whole_segments(int fd)
{
    size_t segment = tutti_socket_segment_bytes(fd);

    return segment == 0 || segment > MOST_PER_CALL ? MOST_PER_CALL
                                                   : MOST_PER_CALL / segment * segment;
}

int tutti_tcp_conn_add(struct tutti_tcp_conn *conn, int index,
                       const struct tutti_handshake *shake)
{
    struct tutti_fabric *fabric = conn->base.fabric;
    int fd = shake->fd;
    int rc = tutti_tcp_hold(fabric, fd, conn->base.peer);

    if (rc != TUTTI_OK) {
        close(fd);
        return rc;
    }
    conn->nopen++;
    tutti_tcp_of(fabric)->nsockets_open++;
    tutti_socket_peer(fd, &conn->far_end);
    tutti_socket_allow_pauses(fd);
    if (tutti_tcp_is_near(fabric, conn->base.peer))
        tutti_socket_unpace(fd);
    if (conn->sealing != NULL)
        tutti_tcp_sealing_start(conn, index, shake);
    conn->most_per_call = whole_segments(fd);
    conn->fds[index] = fd;
    conn->is_up = conn->nopen == conn->nsockets;
    return TUTTI_OK;
}

static void tcp_close(struct tutti_conn *conn)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;

    if (tcp == NULL)
        return;
    tutti_tcp_dial_stop(tcp);
    tutti_tcp_probe_fini(&tcp->probe);
    for (int i = 0; i < tcp->nsockets; i++) {
        if (tcp->fds[i] < 0)
            continue;
        tutti_tcp_release(conn->fabric, tcp->fds[i]);
        close(tcp->fds[i]);
        tutti_tcp_of(conn->fabric)->nsockets_open--;
    }
    tutti_tcp_sealing_destroy(tcp);
    free(tcp->buffer);
    free(tcp);
}

/* Makes progress with a connection that was begun. TUTTI_OK: all its sockets are connected. */
static int continue_connecting(struct tutti_tcp_conn *tcp)
{
    struct tutti_fabric *fabric = tcp->base.fabric;
    int peer = tcp->base.peer;

    if (tcp->rc == TUTTI_OK) {
        if (tcp->is_up) {
            tutti_tcp_dial_stop(tcp);
            tutti_tcp_probe_fini(&tcp->probe);
            return TUTTI_OK;
        }
        if (tcp->dials != NULL || tutti_tcp_probe_step(tcp) == TUTTI_OK)
            return TUTTI_AGAIN;
    }
    if (tcp->rc == TUTTI_ERR_SYSTEM)
        return tutti_fabric_keep_failure(
            fabric, tutti_fail(tcp->rc, "cannot connect to rank %d: %s", peer, tcp->reason));
    return tutti_fabric_peer_failed(fabric, peer, tcp->reason);
}

int tutti_tcp_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)*conn;
    int rc = TUTTI_OK;

    if (tcp == NULL) {
        TUTTI_TRY(tutti_tcp_conn_create(fabric, peer, channel, &tcp));
        if (fabric->rank < peer)
            rc = tutti_tcp_dial_start(tcp);
        if (rc == TUTTI_OK)
            tutti_tcp_progress(fabric);
    }
    if (rc == TUTTI_OK)
        rc = continue_connecting(tcp);
    if (rc == TUTTI_OK || rc == TUTTI_AGAIN)
        return rc;
    tcp_close(&tcp->base);
    *conn = NULL;
    return rc;
}

static int tcp_count_sockets(const struct tutti_conn *conn)
{
    return ((const struct tutti_tcp_conn *)conn)->nopen;
}

/* ---- the stream ---------------------------------------------------------------------- */

/* The peer may have sent its reason for giving up, or be about to send it. While this is possible,
 * the result is TUTTI_OK, and the stream moves no bytes. */
int __attribute__((cold)) tutti_tcp_fail_gone(struct tutti_tcp_conn *tcp)
{
    const char *what = tutti_tcp_describe_loss(tcp, errno, "closed");
    int rc = tutti_fabric_conn_lost(tcp->base.fabric, tcp->base.peer, what);

    return rc == TUTTI_AGAIN ? TUTTI_OK : rc;
}

static int tcp_send(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    const uint8_t *from = data;
    size_t taken = 0;

    if (size > tcp->most_per_call)
        size = tcp->most_per_call;
    while (taken < size) {
        size_t part = size - taken < tcp->out.left ? size - taken : tcp->out.left;
        size_t done;

        if (tutti_socket_send(tcp->fds[tcp->out.socket], from + taken, part, &done) != TUTTI_OK) {
            *ret_taken = taken;
            return tutti_tcp_fail_gone(tcp);
        }
        tutti_tcp_advance(tcp, &tcp->out, done);
        taken += done;
        if (done < part)
            break;
    }
    *ret_taken = taken;
    return TUTTI_OK;
}

/* Shortens the list of parts to `most` bytes in all. */
static void trim(struct iovec *parts, size_t count, size_t most)
{
    for (size_t i = 0; i < count; i++) {
        if (parts[i].iov_len > most)
            parts[i].iov_len = most;
        most -= parts[i].iov_len;
    }
}

static int tcp_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                        const void *data, size_t size, size_t *ret_taken)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    struct iovec parts[] = {{(void *)(uintptr_t)head, head_size}, {(void *)(uintptr_t)data, size}};
    uint8_t joined[SMALL_READ_BYTES + JOINED_BYTES];
    size_t most = tcp->most_per_call;

    if (head_size <= SMALL_READ_BYTES && size <= JOINED_BYTES) {
        memcpy(joined, head, head_size);
        if (size > 0)
            memcpy(joined + head_size, data, size);
        return tcp_send(conn, joined, head_size + size, ret_taken);
    }
    trim(parts, 2, most < tcp->out.left ? most : tcp->out.left);
    *ret_taken = 0;
    if (tutti_socket_send_parts(tcp->fds[tcp->out.socket], parts, 2, ret_taken) != TUTTI_OK)
        return tutti_tcp_fail_gone(tcp);
    tutti_tcp_advance(tcp, &tcp->out, *ret_taken);
    return TUTTI_OK;
}

/* Reads from the sockets directly to `to`. Bytes that arrived before a failure are delivered
 * first. */
static int pull(struct tutti_tcp_conn *tcp, uint8_t *to, size_t size, size_t *ret_got)
{
    size_t got = 0;

    while (got < size) {
        size_t part = size - got < tcp->in.left ? size - got : tcp->in.left;
        size_t done;

        if (tutti_socket_recv(tcp->fds[tcp->in.socket], to + got, part, &done) != TUTTI_OK) {
            if (got > 0)
                break;
            *ret_got = 0;
            return tutti_tcp_fail_gone(tcp);
        }
        tutti_tcp_advance(tcp, &tcp->in, done);
        got += done;
        if (done < part)
            break;
    }
    *ret_got = got;
    return TUTTI_OK;
}

static int tcp_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    size_t buffered, got = 0;

    /* A small request is likely followed by another one, so read ahead for both by one system
     * call. */
    if (tcp->have == 0 && size <= SMALL_READ_BYTES) {
        tcp->begin = 0;
        TUTTI_TRY(pull(tcp, tcp->buffer, READ_AHEAD_BYTES, &tcp->have));
    }
    buffered = tutti_tcp_take_buffered(tcp, data, size);
    if (buffered == 0 && size > SMALL_READ_BYTES)
        TUTTI_TRY(pull(tcp, data, size, &got));
    *ret_got = buffered + got;
    return TUTTI_OK;
}

static int tcp_recv_two(struct tutti_conn *conn, void *head, size_t head_size, void *data,
                        size_t size, size_t *ret_got)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    struct iovec parts[] = {{head, head_size}, {data, size}};
    size_t done;

    /* tcp_recv reads small data ahead, together with the head. */
    if (tcp->have > 0 || size <= JOINED_BYTES)
        return tcp_recv(conn, head, head_size, ret_got);
    if (data == NULL)
        parts[1] = (struct iovec){tcp->buffer,
                                  size < TUTTI_TCP_BUFFER_BYTES ? size : TUTTI_TCP_BUFFER_BYTES};
    trim(parts, 2, tcp->in.left);
    *ret_got = 0;
    if (tutti_socket_recv_parts(tcp->fds[tcp->in.socket], parts, 2, &done) != TUTTI_OK)
        return tutti_tcp_fail_gone(tcp);
    tutti_tcp_advance(tcp, &tcp->in, done);
    *ret_got = done;
    if (data == NULL && done > head_size) {
        *ret_got = head_size;
        tcp->begin = 0;
        tcp->have = done - head_size;
    }
    return TUTTI_OK;
}

static int tcp_peek(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                    size_t *ret_size)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;
    size_t wanted = (most < TUTTI_TCP_BUFFER_BYTES ? most : TUTTI_TCP_BUFFER_BYTES) / least * least;
    size_t got = 0;

    if (tcp->have < least || tcp->begin % tutti_peek_alignment(least) != 0) {
        memmove(tcp->buffer, tcp->buffer + tcp->begin, tcp->have);
        tcp->begin = 0;
        /* Read no further than requested, because the bytes after it may go directly to their
         * destination. */
        if (tcp->have < wanted)
            TUTTI_TRY(pull(tcp, tcp->buffer + tcp->have, wanted - tcp->have, &got));
        tcp->have += got;
    }
    *ret_data = tcp->buffer + tcp->begin;
    *ret_size = (tcp->have < wanted ? tcp->have : wanted) / least * least;
    return TUTTI_OK;
}

static void tcp_consume(struct tutti_conn *conn, size_t size)
{
    struct tutti_tcp_conn *tcp = (struct tutti_tcp_conn *)conn;

    tcp->begin += size;
    tcp->have -= size;
    if (tcp->have == 0)
        tcp->begin = 0;
}

const struct tutti_conn_ops tutti_tcp_conn_ops = {
    .send = tcp_send,
    .send_two = tcp_send_two,
    .recv = tcp_recv,
    .recv_two = tcp_recv_two,
    .peek = tcp_peek,
    .consume = tcp_consume,
    .count_sockets = tcp_count_sockets,
    .close = tcp_close,
};

const struct tutti_conn_ops tutti_tcp_sealed_ops = {
    .send = tutti_tcp_sealed_send,
    .send_two = tutti_tcp_sealed_send_two,
    .recv = tutti_tcp_sealed_recv,
    .peek = tutti_tcp_sealed_peek,
    .consume = tcp_consume,
    .count_sockets = tcp_count_sockets,
    .close = tcp_close,
};
