/* SPDX-License-Identifier: Apache-2.0
 * Keys for caches of calls. Applications repeat a handful of calls in which only the addresses
 * change. Results that depend on the other arguments are kept in three tables with the same keys:
 *
 *   table         contents                                where            used by the thread
 *   known calls   result of the argument checks,          struct           inside the
 *                 sizes of the buffers, signature         tutti_calls_known      communicator
 *   programs      programs for hosts                      cache.c          whose batch has the turn
 *   programs      programs for GPUs                       gpu/programs.c   inside the communicator
 *
 * Only one thread at a time uses a table, so tables need no lock. A known call points to its
 * program, so that a call that repeats is looked up once.
 */
#ifndef TUTTI_QUEUE_CALLS_H
#define TUTTI_QUEUE_CALLS_H

#include "executor/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call without its addresses. A key of zeros belongs to no call. A key has only two words,
 * because every small call compares keys. */
struct tutti_calls_key {
    uint64_t count; /* of a v-form: a hash of its counts, which must be compared too */
    uint64_t what;  /* the other arguments, packed by tutti_calls_key */
};

/* Makes a key. `op` is as in signatures, but 0 for calls that do not reduce. `is_in_place` gives
 * in-place calls a key of their own. The caller decides when to set it, because the programs of few
 * calls depend on it. */
static inline struct tutti_calls_key tutti_calls_key(uint8_t kind, uint8_t collective, uint8_t type,
                                                     uint8_t op, int root, size_t count,
                                                     bool is_in_place)
{
    /* The 1 distinguishes every key from a key of zeros. */
    uint32_t low = (uint32_t)collective << 24 | (uint32_t)type << 16 | (uint32_t)op << 8 |
                   (uint32_t)kind << 4 | (1 + (uint32_t)is_in_place);

    return (struct tutti_calls_key){.count = count, .what = (uint64_t)(uint32_t)root << 32 | low};
}

/* Returns the key of a checked call. For a v-form, its count is a hash of the call's counts and
 * displacements. */
struct tutti_calls_key tutti_calls_key_of(const struct tutti_call *call, int nranks,
                                          bool is_in_place);

static inline bool tutti_calls_key_equal(const struct tutti_calls_key *a,
                                         const struct tutti_calls_key *b)
{
    return a->what == b->what && a->count == b->count;
}

/* Returns a hash of the key, below 2^bits. `bits` is 1 to 63. */
static inline size_t tutti_calls_key_hash(const struct tutti_calls_key *key, unsigned bits)
{
    return (size_t)((key->count ^ key->what) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits));
}

/* Bytes from the start of each buffer to the end of the last block that a call accesses there. 0:
 * the call does not access the buffer. */
struct tutti_calls_extent {
    size_t send_bytes, recv_bytes;
    /* The offset in bytes of sendbuff in recvbuff at which the two buffers may overlap. */
    ptrdiff_t in_place;
};

/* A program that cache.c has found for a call (tutti_cache_recall). */
struct tutti_calls_recalled {
    const struct tutti_program *program;
    uint64_t generation; /* the cache's generation when it was found; 0: not looked up yet */
};

/* The table of known calls has 2^TUTTI_KNOWN_BITS entries. */
enum { TUTTI_KNOWN_BITS = 4 };

/* A known call: the result of the checks of a call's arguments. */
struct tutti_calls_known {
    struct tutti_calls_key key; /* of the arguments as the caller passed them */
    bool is_special; /* no rank has data to move, or the call is a message to this rank itself */
    struct tutti_calls_extent reach;
    struct tutti_call call; /* with the addresses of its last use */
    struct tutti_calls_recalled found;
};

#endif
