/* SPDX-License-Identifier: Apache-2.0
 * What rank 0 has read, for all ranks: files are read once, and every rank works with the same
 * bytes.
 *
 *                                          0
 *     Down a binomial tree over the     /  | \        with each rank's verdict goes a head, of
 * which fabric's connections; a rank     1   2   4      that of rank 0 says what will come: so
 * nothing passes on what has arrived           |   |\     is exchanged where there is nothing to
 * share while more is coming                 3   5 6
 *
 * Before the exchange rank 0 offers items, or tells in the head what went wrong when it read them:
 * then all ranks fail with its code and message.
 */
#ifndef TUTTI_COMM_SHARE_H
#define TUTTI_COMM_SHARE_H

#include <stddef.h>
#include <stdint.h>

struct tutti_fabric;

enum tutti_share_item { TUTTI_SHARE_SCHEDULES, TUTTI_SHARE_TUNING, TUTTI_SHARE_ITEM_COUNT };

#define TUTTI_SHARE_HEAD_BYTES    432
#define TUTTI_SHARE_MESSAGE_BYTES 416
#define TUTTI_SHARE_ITEM_MAX      ((size_t)64 << 20)

struct tutti_share {
    int failure; /* of rank 0 */
    char message[TUTTI_SHARE_MESSAGE_BYTES];
    size_t size_bytes[TUTTI_SHARE_ITEM_COUNT];
    char *bytes;    /* item after item, each with a zero behind it */
    size_t arrived; /* of `bytes`, which hold total_bytes */
    size_t total_bytes;
    size_t *passed; /* per child of this rank: how much of them it has */
};

/* Rank 0, before the exchange: `bytes` are copied. TUTTI_ERR_USAGE: more than TUTTI_SHARE_ITEM_MAX.
 */
int tutti_share_offer(struct tutti_share *share, enum tutti_share_item item, const void *bytes,
                      size_t size_bytes);
/* Rank 0, instead: everybody shall fail with this; the first one counts. */
void tutti_share_fail(struct tutti_share *share, int rc, const char *message);

/* What goes to all ranks before the bytes; and rank 0's, as it came from there: its failure, if it
 * tells of one. TUTTI_ERR_REMOTE: it makes no sense. */
void tutti_share_head(const struct tutti_share *share, uint8_t ret_head[TUTTI_SHARE_HEAD_BYTES]);
int tutti_share_expect(struct tutti_share *share, const uint8_t head[TUTTI_SHARE_HEAD_BYTES],
                       int nranks, int rank);

/* Move the bytes; TUTTI_AGAIN until all that is expected has come and gone on. */
int tutti_share_progress(struct tutti_share *share, struct tutti_fabric *fabric, int nranks,
                         int rank);

/* An item that has come, with a zero behind it; NULL if there is none. Lives as long as `share`. */
const char *tutti_share_bytes(const struct tutti_share *share, enum tutti_share_item item,
                              size_t *ret_size_bytes);

void tutti_share_fini(struct tutti_share *share);

#endif
