/* SPDX-License-Identifier: Apache-2.0
 * What a communicator has called so far: its last collectives, and the chain of all of them.
 *
 * Who asks nothing of its peers may end a call without a look at what they called: two ranks that
 * each take themselves for the root of a broadcast only send. So each header, and each post of a
 * domain, says what was called before as well, in one word:
 *
 *       63            32 31    24 23    16 15     8 7      0
 *      | all, by a hash | n - 4  | n - 3  | n - 2  | n - 1  |
 *
 * The high half grows by every signature and never forgets. The low half has a byte of each of the
 * last four signatures: it tells which call was the first that differed. A byte is the sum of a
 * signature's bytes without carry, so one that differs always shows, such as the root's.
 *
 * Sends and receives are no part of it: each pair counts them by itself.
 */
#ifndef TUTTI_EXECUTOR_HISTORY_H
#define TUTTI_EXECUTOR_HISTORY_H

#include "executor/signature.h"

enum { TUTTI_HISTORY_CALLS = 8, TUTTI_CHAIN_CALLS = 4 };

struct tutti_history {
    uint64_t sequence; /* of the last call; they count from 1 */
    uint64_t chain;    /* after it: ready before the next call needs it */
    struct tutti_header calls[TUTTI_HISTORY_CALLS]; /* number n is at n modulo their number */
};

/* The chain before the call that follows `header`. */
static inline uint64_t tutti_chain_after(const struct tutti_header *header)
{
    uint64_t words[2], hash, bytes;

    __builtin_memcpy(words, &header->signature, sizeof words);
    hash = (words[0] ^ header->chain >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (words[1] ^ hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    bytes = words[0] ^ words[1];
    bytes ^= bytes >> 32;
    bytes ^= bytes >> 16;
    bytes ^= bytes >> 8;
    return (hash & UINT64_C(0xFFFFFFFF00000000)) | (uint32_t)(header->chain << 8 | (bytes & 255));
}

/* Begin the next call. Returns its header, valid until TUTTI_HISTORY_CALLS more were begun. */
const struct tutti_header *tutti_history_add(struct tutti_history *history,
                                             const struct tutti_signature *signature);

/* Call number `sequence`, NULL if it is forgotten or was not begun. */
const struct tutti_header *tutti_history_find(const struct tutti_history *history,
                                              uint64_t sequence);

/* The number of the latest call with the signature and chain of `header`; 0 if it is forgotten. */
uint64_t tutti_history_number(const struct tutti_history *history,
                              const struct tutti_header *header);

/* Is it before the current call that `mine` and `theirs`, of the same number, part? */
static inline bool tutti_history_parts(const struct tutti_history *history,
                                       const struct tutti_header *mine,
                                       const struct tutti_header *theirs)
{
    return mine->sequence == theirs->sequence &&
           (mine->chain != theirs->chain || mine->sequence < history->sequence);
}

/* Then name the call, as near as the chains tell. Returns TUTTI_ERR_USAGE. */
int tutti_history_mismatch(const struct tutti_history *history, const struct tutti_header *mine,
                           int rank, const struct tutti_header *theirs);

/* `rank` is at call `sequence`, after which its chain is `chain`: have we parted by then, or by my
 * own last call? TUTTI_ERR_USAGE names the call. TUTTI_OK if not, or if so far apart that the
 * chains cannot tell. */
int tutti_history_compare(const struct tutti_history *history, int rank, uint64_t sequence,
                          uint64_t chain);

#endif
