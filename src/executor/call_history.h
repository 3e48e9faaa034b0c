/* SPDX-License-Identifier: Apache-2.0
 * The history of a communicator. It holds the last collectives, and a digest of all collectives,
 * which is called the chain.
 *
 * A rank that receives nothing in a call completes it without seeing what its peers called. For
 * example, two ranks that each believe they are the root of a broadcast only send. Therefore each
 * header, and each post of a domain, also carries the chain of the calls before it. Before call n
 * the chain is this 64-bit word:
 *
 *       63            32 31    24 23    16 15     8 7      0
 *      | all, by a hash | n - 4  | n - 3  | n - 2  | n - 1  |
 *
 * The high half is a hash of all signatures so far, so a difference stays visible. The low half has
 * one byte for each of the last four calls, which shows the first call that differed. Each byte is
 * the XOR of the bytes of a signature. So if two signatures differ in only one byte, such as the
 * byte of the root, the bytes in the chain differ too.
 *
 * Sends and receives are not part of the history, because each pair of ranks numbers its own
 * messages.
 */
#ifndef TUTTI_EXECUTOR_CALL_HISTORY_H
#define TUTTI_EXECUTOR_CALL_HISTORY_H

#include "executor/signature.h"

/* The number of calls that a history stores, and the number of calls that have a byte in the low
 * half of a chain. */
enum { TUTTI_HISTORY_CALLS = 8, TUTTI_CHAIN_CALLS = 4 };

struct tutti_call_history {
    uint64_t sequence; /* number of the last call; the first call has number 1; 0: no call yet */
    uint64_t chain;    /* the chain after the last call, which the next call carries */
    struct tutti_header calls[TUTTI_HISTORY_CALLS]; /* call n is at n % TUTTI_HISTORY_CALLS */
};

/* Returns the chain after the call that `header` describes. The two factors are odd, so that
 * multiplying by them loses no bits. */
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

/* Adds the next call. Returns its header, which stays valid until TUTTI_HISTORY_CALLS more calls
 * have been added. */
const struct tutti_header *tutti_call_history_add(struct tutti_call_history *history,
                                                  const struct tutti_signature *signature);

/* Returns call number `sequence`, or NULL if it is no longer stored or has not been added. */
const struct tutti_header *tutti_call_history_find(const struct tutti_call_history *history,
                                                   uint64_t sequence);

/* Returns the number of the latest call with the signature and chain of `header`, or 0 if no such
 * call is stored. `header->sequence` is not read. */
uint64_t tutti_call_history_number(const struct tutti_call_history *history,
                                   const struct tutti_header *header);

/* True if the ranks diverged before the current call. `mine` and `theirs` are headers that differ.
 * The ranks diverged earlier if both headers have the same number, and one of these holds: their
 * chains differ, or the number is that of an earlier call. */
static inline bool tutti_call_history_has_diverged(const struct tutti_call_history *history,
                                                   const struct tutti_header *mine,
                                                   const struct tutti_header *theirs)
{
    return mine->sequence == theirs->sequence &&
           (mine->chain != theirs->chain || mine->sequence < history->sequence);
}

/* Call it for headers for which tutti_call_history_has_diverged is true. Sets an error message that
 * names the first call that differed, as precisely as the chains tell. Returns TUTTI_ERR_USAGE. */
int tutti_call_history_mismatch(const struct tutti_call_history *history,
                                const struct tutti_header *mine, int rank,
                                const struct tutti_header *theirs);

/* Compares this history with the history of `rank`, up to the earlier of the two ranks' last calls.
 * The last call of `rank` has number `sequence`, and the chain after that call is `chain`.
 * TUTTI_ERR_USAGE: the calls differ, and the message names the first difference as precisely as the
 * chains tell. TUTTI_OK: the calls are equal, or the ranks are too far apart to compare. They are
 * too far apart if `rank` is ahead by TUTTI_CHAIN_CALLS calls or more, or behind by
 * TUTTI_HISTORY_CALLS calls or more. */
int tutti_call_history_compare(const struct tutti_call_history *history, int rank,
                               uint64_t sequence, uint64_t chain);

#endif
