/* SPDX-License-Identifier: Apache-2.0
 * A transport moves bytes between two ranks.
 *
 * A connection joins this rank and one peer on one channel: one byte stream in
 * each direction, in order, lossless. Message borders are the executor's
 * business: both ends know the sizes from their schedules. Nothing blocks, and
 * once each kind of use has occurred nothing allocates; a call does what can be done now.
 *
 * Progress belongs to the calls: bytes move only inside them. All calls on the
 * connections of one fabric are made by one thread at a time.
 */
#ifndef TUTTI_TRANSPORT_H
#define TUTTI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tutti_fabric;
struct tutti_conn;

struct tutti_transport_ops {
    const char *name;

    /* Can these two ranks use it, as far as their records and the joined
     * domain tell? Looks only at its arguments, so both ends plan alike. Required. */
    bool (*reach)(const struct tutti_fabric *fabric, int peer);

    /* Start or go on connecting. *conn is NULL at the first call and kept while
     * TUTTI_AGAIN; on error it is released and NULL again. Both ends call it.
     * Required. */
    int (*connect)(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);

    /* Hand over up to `size` bytes at `data`; *ret_taken (0 .. size) of them now
     * belong to the transport and `data` may be reused that far. Bytes not taken are offered
     * again at the next call, from the same address, possibly followed by more
     * (the offer may grow; only a rank that gives up offers less, of which nothing need be taken):
     * a single-copy transport exposes the offered memory itself and takes it when the peer has read
     * it. Result TUTTI_OK also when nothing was taken. TUTTI_ERR_REMOTE when the peer is gone;
     * bytes that it had sent before are still received. Required. */
    int (*send)(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken);

    /* The same for two places: first `head`, then `data`, in one go. For transports to which a
     * second call is dear. `data` is only copied from within the call. Optional. */
    int (*send_two)(struct tutti_conn *conn, const void *head, size_t head_size, const void *data,
                    size_t size, size_t *ret_taken);

    /* Move up to `size` arrived bytes to `data`. *ret_got may be 0. Required. */
    int (*recv)(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got);

    /* The same for two places: first `head`, then `data`. With `data` NULL the `size` bytes after
     * the head will be peeked at, and are not counted in *ret_got. Optional. */
    int (*recv_two)(struct tutti_conn *conn, void *head, size_t head_size, void *data, size_t size,
                    size_t *ret_got);

    /* Show arrived bytes in place: *ret_data .. + *ret_size, valid until the next call on the
     * connection. At most `most` bytes; either at least `least` (1 .. 64) of them or *ret_size =
     * 0. Always a multiple of `least`, and aligned to the largest power of two in it, up to 8,
     * wherever the stream stands: elements that wrap or lie at odd places are shown as copies.
     * Required. */
    int (*peek)(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                size_t *ret_size);
    /* Done with the first `size` of them. Required. */
    void (*consume)(struct tutti_conn *conn, size_t size);

    /* Sockets that this connection waits on while it has nothing to do: how many there are.
     * Optional: absent for connections that wake sleepers themselves. Sockets are registered with
     * tutti_wait_watch (fabric_private.h) when opened. */
    int (*count_sockets)(const struct tutti_conn *conn);

    /* Release. Not collective. Accepts NULL. Required. */
    void (*close)(struct tutti_conn *conn);
};

/* The first member of every connection. */
struct tutti_conn {
    const struct tutti_transport_ops *ops;
    struct tutti_fabric *fabric;
    int peer, channel;
    /* The executor's hint: while it sends here it receives as much, here or elsewhere. */
    bool is_mutual;
    /* Its other hint: how to copy what is received from where it lies, for it knows what is in the
     * cache; NULL: memcpy. */
    void (*copy)(void *dst, const void *src, size_t size_bytes);
    size_t private_bytes; /* heap held, for the memory report */
};

extern const struct tutti_transport_ops tutti_self_ops;
extern const struct tutti_transport_ops tutti_cma_ops;
extern const struct tutti_transport_ops tutti_shm_ops;
extern const struct tutti_transport_ops tutti_tcp_ops;
/* The operations of connections that tutti_tcp_ops makes where TUTTI_ENCRYPT is not off. */
extern const struct tutti_transport_ops tutti_tcp_sealed_ops;

#endif
