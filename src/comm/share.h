/* SPDX-License-Identifier: Apache-2.0
 * Shares the files that rank 0 has read. Only rank 0 reads files, so every rank works with the same
 * bytes. The bytes travel down a binomial tree over the fabric's connections:
 *
 *            0
 *          / | \
 *         1  2  4         A rank passes on the bytes that have arrived while more are coming.
 *            |  | \
 *            3  5  6
 *
 * When the communicator forms, each rank sends a header together with its verdict. The header of
 * rank 0 says how many bytes will follow, so nothing more is exchanged if there is nothing to
 * share.
 *
 * Rank 0 offers its items before that exchange. If rank 0 could not read an item, its header has
 * the error instead, and all ranks fail with that code and message.
 */
#ifndef TUTTI_COMM_SHARE_H
#define TUTTI_COMM_SHARE_H

#include <stddef.h>
#include <stdint.h>

struct tutti_fabric;

enum tutti_share_item {
    TUTTI_SHARE_SCHEDULES, /* schedule files (schedules.c) */
    TUTTI_SHARE_TUNING,    /* the policy (tuner/policy.h) */
    TUTTI_SHARE_ITEM_COUNT
};

#define TUTTI_SHARE_HEAD_BYTES    432 /* size of the header */
#define TUTTI_SHARE_MESSAGE_BYTES 416 /* size of the message in it, with the terminating zero */
#define TUTTI_SHARE_ITEM_MAX      ((size_t)64 << 20) /* bytes of one item */

struct tutti_share {
    int failure; /* on rank 0: TUTTI_OK, or the error that all ranks shall fail with */
    char message[TUTTI_SHARE_MESSAGE_BYTES];
    size_t size_bytes[TUTTI_SHARE_ITEM_COUNT]; /* of each item; 0: it is not offered */
    char *bytes;        /* item after item, each followed by a zero byte */
    size_t arrived;     /* bytes of `bytes` that are here */
    size_t total_bytes; /* size of `bytes` */
    size_t *passed;     /* [children of this rank]: bytes passed on to each; NULL: none to pass */
};

/* On rank 0, before the exchange: offers an item. Each item may be offered once. `bytes` are
 * copied. An empty item is ignored. TUTTI_ERR_USAGE: the item has more than TUTTI_SHARE_ITEM_MAX
 * bytes. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_share_offer(struct tutti_share *share, enum tutti_share_item item, const void *bytes,
                      size_t size_bytes);
/* On rank 0, before the exchange: makes all ranks fail with this error. Later calls are ignored. */
void tutti_share_fail(struct tutti_share *share, int rc, const char *message);

/* Writes the header that this rank contributes to the exchange. */
void tutti_share_head(const struct tutti_share *share, uint8_t ret_head[TUTTI_SHARE_HEAD_BYTES]);
/* Takes the header of rank 0, on every rank. Returns the failure in the header, if it has one.
 * TUTTI_ERR_REMOTE: the header is malformed. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_share_expect(struct tutti_share *share, const uint8_t head[TUTTI_SHARE_HEAD_BYTES],
                       int nranks, int rank);

/* Receives bytes and passes them on. TUTTI_AGAIN: call again. TUTTI_OK: all bytes have arrived, and
 * have been passed on to all children. */
int tutti_share_progress(struct tutti_share *share, struct tutti_fabric *fabric, int nranks,
                         int rank);

/* Returns an item that has arrived, followed by a zero byte, or NULL if rank 0 did not offer it.
 * The bytes live as long as `share`. */
const char *tutti_share_bytes(const struct tutti_share *share, enum tutti_share_item item,
                              size_t *ret_size_bytes);

/* Frees the bytes, and zeroes `share`. */
void tutti_share_fini(struct tutti_share *share);

#endif
