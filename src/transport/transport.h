/* SPDX-License-Identifier: Apache-2.0
 * Declares the interface of transports. A transport moves bytes between two ranks.
 *
 * A connection joins this rank and one peer on one channel. It is one byte stream in each
 * direction, in order and lossless. A transport does not know where messages begin and end: both
 * ends know the sizes from their schedules. A call does only what can be done now, and never
 * blocks. Once each kind of use has occurred, calls allocate no memory.
 *
 * One thread at a time makes all calls on the connections of one fabric.
 *
 * In one fabric, every rank calls the members of struct tutti_transport_ops in this order:
 *
 *     describe, open     publish this transport's slice of the record
 *       (all-gather of records)
 *     check              check the slices of the others
 *     join               try whether the transport works; publish its slice of the verdict
 *       (all-gather of verdicts)
 *     settle             learn from the verdicts what all ranks support
 *     reach              say which pairs of ranks it can serve
 *     start              its connections may be made from now on
 *     connect, progress, is_busy, woken, find_dead, find_lost, send_state, recv_state
 *     abort, leave       as this rank ends
 *     destroy
 *
 * A member that is optional may be NULL. */
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
     * call, from the same address, possibly followed by more. So a transport may expose the offered
     * memory itself to the peer, and take the bytes when the peer has read them. An offer becomes
     * smaller only if the rank gives up, and then nothing of it need be taken. The result is
     * TUTTI_OK also if nothing was taken. It is TUTTI_ERR_REMOTE if the peer is gone; bytes that
     * the peer had sent before are still received. Required. */
    int (*send)(struct tutti_conn *conn, const void *data, size_t size, size_t *ret_taken);

    /* Does the same as `send` for two places at once: first `head`, then `data`. It is for
     * transports in which a second call is expensive. The transport reads both places only within
     * the call, and must not expose them to the peer. Optional. */
    int (*send_two)(struct tutti_conn *conn, const void *head, size_t head_size, const void *data,
                    size_t size, size_t *ret_taken);

    /* Move up to `size` arrived bytes to `data`. *ret_got may be 0. Required. */
    int (*recv)(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got);

    /* Does the same as `recv` for two places: first `head`, then `data`. If `data` is NULL, the
     * caller will peek at the `size` bytes after the head. The transport may already fetch these,
     * but they are not counted in *ret_got. Optional. */
    int (*recv_two)(struct tutti_conn *conn, void *head, size_t head_size, void *data, size_t size,
                    size_t *ret_got);

    /* Show the next arrived bytes in place, without taking them: *ret_size bytes at *ret_data,
     * which are valid until the next call on the connection. *ret_size is 0 or a multiple of
     * `least` (1 .. 64), and at most `most`. The address is aligned to the largest power of two
     * that divides `least`, up to 8, at any position of the stream. So elements that wrap around
     * the end of a buffer, or are not aligned there, are shown as copies. Required. */
    int (*peek)(struct tutti_conn *conn, size_t least, size_t most, const void **ret_data,
                size_t *ret_size);
    /* Finish with the first `size` of the bytes that `peek` has shown. Required. */
    void (*consume)(struct tutti_conn *conn, size_t size);

    /* Returns the number of descriptors on which this connection waits while it has nothing to do.
     * Optional: connections that wake sleepers themselves do not have it. */
    int (*count_sockets)(const struct tutti_conn *conn);

    /* Release the connection. It is not collective, and accepts NULL. Required. */
    void (*close)(struct tutti_conn *conn);
};

/* A connection. Each transport has a struct of its own that begins with this one. */
struct tutti_conn {
    const struct tutti_conn_ops *ops;
    struct tutti_fabric *fabric;
    int peer, channel; /* channel: TUTTI_CHANNEL_* (fabric.h) */
    /* A hint that the executor sets: while it sends on this connection, it receives as much data,
     * here or on other connections. */
    bool is_mutual;
    /* The function by which to copy received data from its place. The executor sets it, because it
     * knows which data is in the cache. NULL means memcpy. */
    void (*copy)(void *dst, const void *src, size_t size_bytes);
    size_t private_bytes; /* heap memory that the connection holds, for the memory report */
};

/* ---- a transport --------------------------------------------------------------------- */

struct tutti_transport_ops {
    const char *name; /* the name in TUTTI_TRANSPORTS, messages and reports */

    /* The sizes of the transport's slices of a rank's record and verdict. The slices are zeroed
     * before the transport fills them (tutti_record_own_slice, tutti_verdict_own_slice). Ranks
     * whose transports or sizes differ refuse each other, so a slice needs no version of its
     * own. */
    uint32_t record_bytes, verdict_bytes;

    /* True if TUTTI_TRANSPORTS cannot exclude it. */
    bool is_always_on;
    /* True if it serves ranks of different hosts. */
    bool reaches_hosts;
    /* True if descriptors of its connections or listeners must end sleeps. It registers them with
     * tutti_wait_watch. */
    bool waits_on_descriptors;

    /* ---- forming ---- */

    /* Fill in the parts of the record's slice that do not depend on resources, such as settings
     * that all ranks must share. It is called also if TUTTI_TRANSPORTS excludes the transport. An
     * error makes the fabric fail. Optional. */
    int (*describe)(struct tutti_fabric *fabric);

    /* Take resources, and publish how peers reach this rank. It is called if TUTTI_TRANSPORTS
     * permits the transport and there are several ranks. After an error this rank forms without it,
     * and nothing is left to be destroyed. TUTTI_ERR_SYSTEM says that the host lacks descriptors or
     * memory. Optional. */
    int (*open)(struct tutti_fabric *fabric);

    /* Check the slice that `rank` has published, which is bytes from the wire. It is called for all
     * ranks, also for those that do not use the transport (tutti_part_is_used_by). TUTTI_ERR_USAGE
     * names the rank and ends forming. It may clean up the slice in place. Optional. */
    int (*check)(struct tutti_fabric *fabric, int rank);

    /* Try with the peers whether the transport works, as far as the records do not tell, and put
     * the outcome into this rank's slice of the verdict. TUTTI_AGAIN: call again; all transports
     * join at the same time. It is an outcome, not an error, if the transport does not work here.
     * It is called if `open` has succeeded. Optional. */
    int (*join)(struct tutti_fabric *fabric);

    /* Evaluate the verdicts of all ranks, which are known now. It is called for each transport,
     * before any `reach`. Optional. */
    int (*settle)(struct tutti_fabric *fabric);

    /* True if these two ranks can use the transport. The order of the two does not matter. It uses
     * only records and verdicts, never local knowledge, so all ranks get the same answer. It is
     * called for pairs of ranks that both use the transport, also for a pair of a rank with itself.
     * Required. */
    bool (*reach)(const struct tutti_fabric *fabric, int a, int b);

    /* Describe, for people, the reason why a pair cannot use the transport, such as "not on one
     * host". The text is empty if the only reason is that TUTTI_TRANSPORTS excludes it.
     * Optional. */
    void (*explain)(const struct tutti_fabric *fabric, int a, int b, char *ret_text, size_t size);

    /* Begin to work, now that routes are chosen. `is_used` is true if the transport serves a peer
     * of this rank. If not, it may release its resources. It is called for each transport that is
     * open. Optional. */
    int (*start)(struct tutti_fabric *fabric, bool is_used);

    /* ---- living ---- */

    /* Start or continue to connect. *conn is NULL at the first call and kept while TUTTI_AGAIN is
     * returned. On error it is released and NULL again. Both ends call it, possibly one long after
     * the other. So it must not wait for the peer's call, only for the peer's `progress`.
     * Required. */
    int (*connect)(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);

    /* Make progress with everything that does not belong to a connection, such as handshakes with
     * peers that connect. It is called now and then while this rank waits, if the transport is
     * used. It never blocks. Optional. */
    void (*progress)(struct tutti_fabric *fabric);

    /* True if one of its descriptors may end a sleep now. Then sleeps watch descriptors.
     * Optional. */
    bool (*is_busy)(const struct tutti_fabric *fabric);

    /* Called after a descriptor has ended a sleep. Drain the descriptors that exist only to end
     * sleeps. Optional. */
    void (*woken)(struct tutti_fabric *fabric);

    /* Find a rank that has certainly ended. It checks up to `most` ranks, in a circle from rank
     * *from on, and sets *from to the rank at which to continue. True: *ret_loss is that rank and a
     * description. Any thread. Optional. */
    bool (*find_dead)(const struct tutti_fabric *fabric, int *from, uint32_t most,
                      struct tutti_loss *ret_loss);

    /* Find a connection that is lost, whether a call waits on it or not. Its peer may be about to
     * send a reason, which is then reported instead of the loss. Optional. */
    bool (*find_lost)(struct tutti_fabric *fabric, struct tutti_loss *ret_loss);

    /* These do the work of tutti_fabric_send_state and tutti_fabric_recv_state (fabric.h), with
     * TUTTI_STATE_WORDS words. Optional, but a transport has both or neither. */
    bool (*send_state)(struct tutti_fabric *fabric, const uint64_t *words);
    bool (*recv_state)(const struct tutti_fabric *fabric, uint64_t *ret_words);

    /* ---- ending ---- */

    /* Tell the peers that this rank gives up because of *cause, and make their waits end. If the
     * transport knows that another rank gave up before, it replaces *cause by that rank's cause,
     * and the transports after it in the table send the new one. Any thread may call it, under
     * fabric->lock, at any time after `open`. Optional. */
    void (*abort)(struct tutti_fabric *fabric, struct tutti_cause *cause);

    /* Tell the peers that this rank ends, either in good order, or while others may still need it.
     * It is called before the connections are closed. Optional. */
    void (*leave)(struct tutti_fabric *fabric, bool is_orderly);

    /* True if that rank has left in good order, as far as this rank can see. Optional. */
    bool (*has_left)(const struct tutti_fabric *fabric, int rank);

    /* Release everything. All connections are closed already. It is called once if `open` has
     * succeeded, at any stage of forming. Optional. */
    void (*destroy)(struct tutti_fabric *fabric);

    /* ---- report ---- */

    /* Add the resources that the transport holds, apart from connections, to *usage. Optional. */
    void (*usage)(const struct tutti_fabric *fabric, struct tutti_fabric_usage *usage);

    /* After settle: describe the transport on this host for an operator, in one line, as "shared
     * memory: windows of ...". Optional. */
    void (*report)(const struct tutti_fabric *fabric, char *ret_text, size_t size);
};

/* All transports, with the preferred ones first and NULL at the end (registry.h). */
extern const struct tutti_transport_ops *const tutti_transports[];

#endif
