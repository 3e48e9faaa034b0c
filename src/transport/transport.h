/* SPDX-License-Identifier: Apache-2.0
 * A transport moves bytes between two ranks.
 *
 * A connection joins this rank and one peer on one channel. It is one byte stream in each
 * direction, in order and lossless. Both ends know the sizes from their schedules, so the executor
 * handles the boundaries of messages. Nothing blocks, and once each kind of use has occurred
 * nothing allocates. A call does as much as is possible now. Bytes move only inside calls.
 *
 * One thread at a time makes all calls on the connections of one fabric. */
#ifndef TUTTI_TRANSPORT_H
#define TUTTI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tutti_fabric;
struct tutti_conn;

struct tutti_transport_ops {
    const char *name;

    /* True if these two ranks can use it, according to their records and the joined domain. It uses
     * only its arguments, so both ends plan in the same way. Required. */
    bool (*reach)(const struct tutti_fabric *fabric, int peer);

    /* Start or continue to connect. *conn is NULL at the first call and kept while TUTTI_AGAIN is
     * returned. On error it is released and NULL again. Both ends call it. Required. */
    int (*connect)(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);

    /* Offer `size` bytes at `data`. *ret_taken (0 .. size) of them now belong to the transport, and
     * the caller may reuse `data` that far. Bytes that were not taken are offered again at the next
     * call, from the same address, possibly followed by more. The offer may grow; only a rank that
     * gives up offers less, of which nothing need be taken. So a single-copy transport may expose
     * the offered memory itself, and take it when the peer has read it. The result is TUTTI_OK also
     * if nothing was taken. It is TUTTI_ERR_REMOTE if the peer is gone; bytes that the peer had
     * sent before are still received. Required. */
    int (*send)(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken);

    /* The same for two places at once: first `head`, then `data`. It is for transports in which a
     * second call is expensive. `data` is copied only within the call. Optional. */
    int (*send_two)(struct tutti_conn *conn, const void *head, size_t head_size, const void *data,
                    size_t size, size_t *ret_taken);

    /* Move up to `size` arrived bytes to `data`. *ret_got may be 0. Required. */
    int (*recv)(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got);

    /* The same for two places: first `head`, then `data`. If `data` is NULL, the `size` bytes after
     * the head will be peeked at, and are not counted in *ret_got. Optional. */
    int (*recv_two)(struct tutti_conn *conn, void *head, size_t head_size, void *data, size_t size,
                    size_t *ret_got);

    /* Show arrived bytes in place: *ret_data .. + *ret_size, valid until the next call on the
     * connection. They are at most `most` bytes, and either at least `least` (1 .. 64) or *ret_size
     * = 0. Their number is a multiple of `least`. They are aligned to the largest power of two in
     * `least`, up to 8, at any position of the stream. Elements that wrap or are not aligned are
     * shown as copies. Required. */
    int (*peek)(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                size_t *ret_size);
    /* Finish with the first `size` of them. Required. */
    void (*consume)(struct tutti_conn *conn, size_t size);

    /* Returns the number of sockets on which this connection waits while it has nothing to do.
     * Optional: connections that wake sleepers themselves do not have it. Sockets are registered
     * with tutti_wait_watch (fabric_private.h) when they are opened. */
    int (*count_sockets)(const struct tutti_conn *conn);

    /* Release. Not collective. Accepts NULL. Required. */
    void (*close)(struct tutti_conn *conn);
};

/* The first member of every connection. */
struct tutti_conn {
    const struct tutti_transport_ops *ops;
    struct tutti_fabric *fabric;
    int peer, channel;
    /* A hint of the executor: while it sends on this connection it receives as much, here or
     * elsewhere. */
    bool is_mutual;
    /* Another hint: how to copy received data from its place, because the executor knows which data
     * is in the cache. NULL means memcpy. */
    void (*copy)(void *dst, const void *src, size_t size_bytes);
    size_t private_bytes; /* heap held, for the memory report */
};

extern const struct tutti_transport_ops tutti_self_ops;
extern const struct tutti_transport_ops tutti_cma_ops;
extern const struct tutti_transport_ops tutti_shm_ops;
extern const struct tutti_transport_ops tutti_tcp_ops;
/* The operations of the connections that tutti_tcp_ops makes if TUTTI_ENCRYPT is not off. */
extern const struct tutti_transport_ops tutti_tcp_sealed_ops;

#endif
