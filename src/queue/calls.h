/* SPDX-License-Identifier: Apache-2.0
 * The cache of calls. Programs repeat a handful of calls in which only the addresses change, so the
 * results that depend on the other arguments are kept, under one kind of key:
 *
 *   known calls   that the arguments are valid, how far the buffers reach, the signature:
 *                 struct tutti_known below; of the thread inside the communicator
 *   programs      for hosts: cache.c; of the thread whose batch has the turn
 *   programs      for GPUs: gpu/programs.c; of the thread inside the communicator
 *
 * Each table is a part of the cache that one thread at a time may use without a lock, while others
 * use theirs. A known call points to its program, so that a call that repeats is looked up once.
 */
#ifndef TUTTI_QUEUE_CALLS_H
#define TUTTI_QUEUE_CALLS_H

#include "executor/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call without its addresses. Zero is the key of no call. It is two words, because comparing keys
 * is a part of every small call. */
struct tutti_call_key {
    uint64_t count; /* of a v-form: a hash of its arrays, which must be compared too */
    uint64_t what;  /* the other arguments, packed by tutti_call_key */
};

/* `op` is as in signatures, but 0 for calls that do not reduce. `is_in_place` is for the caller to
 * decide: programs depend on it in few calls. */
static inline struct tutti_call_key tutti_call_key(uint8_t kind, uint8_t collective, uint8_t type,
                                                   uint8_t op, int root, size_t count,
                                                   bool is_in_place)
{
    uint32_t low = (uint32_t)collective << 24 | (uint32_t)type << 16 | (uint32_t)op << 8 |
                   (uint32_t)kind << 4 | (1 + (uint32_t)is_in_place);

    return (struct tutti_call_key){.count = count, .what = (uint64_t)(uint32_t)root << 32 | low};
}

/* The key of a checked call. */
struct tutti_call_key tutti_call_key_of(const struct tutti_call *call, int nranks,
                                        bool is_in_place);

static inline bool tutti_call_key_equal(const struct tutti_call_key *a,
                                        const struct tutti_call_key *b)
{
    return a->what == b->what && a->count == b->count;
}

/* A hash of the key, below 2^bits. */
static inline size_t tutti_call_key_hash(const struct tutti_call_key *key, unsigned bits)
{
    return (size_t)((key->count ^ key->what) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits));
}

/* Bytes from the start of a buffer to the end of what a call touches of it; 0: nothing. */
struct tutti_reach {
    size_t send_bytes, recv_bytes;
    ptrdiff_t in_place; /* offset in bytes of sendbuff in recvbuff at which they may overlap */
};

/* A program that cache.c has found for a call (tutti_cache_again). */
struct tutti_found {
    const struct tutti_program *program;
    uint64_t generation; /* the cache's generation when it was found; 0: not looked up yet */
};

enum { TUTTI_KNOWN_BITS = 4 };

struct tutti_known {
    struct tutti_call_key key; /* of the arguments as the caller passed them */
    bool is_special; /* no rank has anything to move, or it is a message to this rank itself */
    struct tutti_reach reach;
    struct tutti_call call; /* with the addresses of its last use */
    struct tutti_found found;
};

#endif
