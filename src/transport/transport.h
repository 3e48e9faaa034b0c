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
 *
 * The life of a transport in one fabric. Every rank calls the members in this order:
 *
 *     describe, open     publish this transport's slice of the record
 *       (all-gather of records)
 *     check              look at the slices of the others
 *     join               try out what has to be tried; publish its slice of the verdict
 *       (all-gather of verdicts)
 *     settle             learn from the verdicts what all ranks could do
 *     reach              which pairs of ranks it serves
 *     start              its connections may be made from now on
 *     connect, progress, is_busy, woken, find_dead, find_lost, tell, told
 *     abort, leave       as this rank ends
 *     destroy
 *
 * A member that is optional may be NULL.
 */
#ifndef TUTTI_TRANSPORT_H
#define TUTTI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tutti_fabric;
struct tutti_fabric_usage;
struct tutti_conn;
struct tutti_cause;
struct tutti_loss;

/* ---- a connection -------------------------------------------------------------------- */

struct tutti_conn_ops {
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

    /* Descriptors that this connection waits on while it has nothing to do: how many there are.
     * Optional: absent for connections that wake sleepers themselves. */
    int (*count_sockets)(const struct tutti_conn *conn);

    /* Release. Not collective. Accepts NULL. Required. */
    void (*close)(struct tutti_conn *conn);
};

/* The first member of every connection. */
struct tutti_conn {
    const struct tutti_conn_ops *ops;
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

/* ---- a transport --------------------------------------------------------------------- */

struct tutti_transport_ops {
    const char *name; /* in TUTTI_TRANSPORTS, messages and reports */

    /* Size of its slices of a rank's record and verdict, zeroed before it fills them
     * (tutti_record_slice, tutti_verdict_slice). Ranks whose transports or sizes differ refuse each
     * other by name, so a slice needs no version of its own. */
    uint32_t record_bytes, verdict_bytes;

    /* True if TUTTI_TRANSPORTS cannot exclude it. */
    bool is_always_on;
    /* True if its connections, or its peers' calls, end sleeps through descriptors that it
     * registers with tutti_wait_watch. */
    bool waits_on_descriptors;

    /* ---- forming ---- */

    /* Fill in what does not depend on resources, as settings that all ranks must share. Called
     * also where TUTTI_TRANSPORTS excludes the transport. An error is the fabric's. Optional. */
    int (*describe)(struct tutti_fabric *fabric);

    /* Take resources and publish how to be reached. Called where TUTTI_TRANSPORTS allows the
     * transport and there are several ranks. After an error this rank forms without it;
     * TUTTI_ERR_SYSTEM says that the host lacks descriptors or memory. Nothing is left to be
     * destroyed then. Optional. */
    int (*open)(struct tutti_fabric *fabric);

    /* Check the slice that `rank` has published: bytes from the wire. Called for all ranks, also
     * for those that do without the transport (tutti_rank_uses). TUTTI_ERR_USAGE names the rank and
     * ends forming. May clean the slice up in place. Optional. */
    int (*check)(struct tutti_fabric *fabric, int rank);

    /* Try out with the peers what records do not tell, and put the outcome into this rank's
     * slice of the verdict. TUTTI_AGAIN: call again; all transports join at the same time. What
     * does not work here is not an error but an outcome. Called where `open` has succeeded.
     * Optional. */
    int (*join)(struct tutti_fabric *fabric);

    /* All verdicts are known. Called for each transport, before any reaches. Optional. */
    int (*settle)(struct tutti_fabric *fabric);

    /* Can these two ranks use it? Symmetric. Looks only at records and verdicts, so all ranks plan
     * alike; never at what happens to work here. Called for pairs that both use it. Required. */
    bool (*reach)(const struct tutti_fabric *fabric, int a, int b);

    /* Why a pair cannot use it, for people: "not on one host". An empty text if it is only that
     * TUTTI_TRANSPORTS excludes it. Optional. */
    void (*explain)(const struct tutti_fabric *fabric, int a, int b, char *ret_text, size_t size);

    /* Routes are chosen. `is_used`: it serves a peer of this rank; otherwise it may give back what
     * it holds. Called for each transport that is open. Optional. */
    int (*start)(struct tutti_fabric *fabric, bool is_used);

    /* ---- living ---- */

    /* Start or go on connecting. *conn is NULL at the first call and kept while
     * TUTTI_AGAIN; on error it is released and NULL again. Both ends call it, one maybe long after
     * the other: it must not wait for the peer's call, only for the peer's `progress`. Required. */
    int (*connect)(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);

    /* Move forward whatever is not a connection's: callers, handshakes. Called now and then while
     * this rank waits, if the transport is used. Never blocks. Optional. */
    void (*progress)(struct tutti_fabric *fabric);

    /* Could one of its descriptors end a sleep now? Then sleeps watch descriptors. Optional. */
    bool (*is_busy)(const struct tutti_fabric *fabric);

    /* A descriptor has ended a sleep: drain those that exist only to do so. Optional. */
    void (*woken)(struct tutti_fabric *fabric);

    /* Look for a rank that is certain to have ended. Looks at up to `most` ranks, in a circle from
     * rank *from on, and leaves in *from where to go on. True: *ret_loss tells which, and what
     * happened. Any thread. Optional. */
    bool (*find_dead)(const struct tutti_fabric *fabric, int *from, uint32_t most,
                      struct tutti_loss *ret_loss);

    /* Look for a connection that is lost, whether somebody waits on it or not. Its peer may be
     * about to tell why: then that is reported in place of the loss. Optional. */
    bool (*find_lost)(struct tutti_fabric *fabric, struct tutti_loss *ret_loss);

    /* tutti_fabric_tell and tutti_fabric_told. Optional, both or none. */
    bool (*tell)(struct tutti_fabric *fabric, const uint64_t *words);
    bool (*told)(const struct tutti_fabric *fabric, uint64_t *ret_words);

    /* ---- ending ---- */

    /* This rank gives up because of *cause: tell the peers and make their waits end. A transport
     * through which an earlier cause is known replaces *cause by that one; those after it in the
     * table pass it on. Any thread, under fabric->lock, at any time after `open`. Optional. */
    void (*abort)(struct tutti_fabric *fabric, struct tutti_cause *cause);

    /* This rank ends: in good order, or else while others may still count on it. Comes before the
     * connections are closed. Optional. */
    void (*leave)(struct tutti_fabric *fabric, bool is_orderly);

    /* Has that rank left in good order, as far as can be seen from here? Optional. */
    bool (*has_left)(const struct tutti_fabric *fabric, int rank);

    /* Release everything; all connections are closed. Called once, where `open` has succeeded,
     * however far forming has come. Optional. */
    void (*destroy)(struct tutti_fabric *fabric);

    /* ---- report ---- */

    /* Add what it holds, apart from connections. Optional. */
    void (*usage)(const struct tutti_fabric *fabric, struct tutti_fabric_usage *usage);

    /* One line of what an operator wants to know of it on this host, after settle: "shared
     * memory: windows of ...". Optional. */
    void (*report)(const struct tutti_fabric *fabric, char *ret_text, size_t size);
};

/* All transports, the preferred ones first, and NULL at the end (registry.h). */
extern const struct tutti_transport_ops *const tutti_transports[];

#endif
