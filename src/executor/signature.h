/* SPDX-License-Identifier: Apache-2.0
 * The signature of an operation: what every rank must agree on. It travels with
 * the first message of each operation (and in every post of a domain), so that
 * ranks which call different things are told, both calls named, and nobody hangs.
 */
#ifndef TUTTI_EXECUTOR_SIGNATURE_H
#define TUTTI_EXECUTOR_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_SIGNATURE_MAGIC 0x5475u

struct tutti_signature {
    uint16_t magic;
    uint8_t call; /* enum tutti_call_kind of call.h */
    uint8_t type; /* 255: none */
    uint8_t op;   /* 255: none; average and pre-multiplied sums have numbers of their own */
    uint8_t unused;
    uint16_t root; /* 65535: none */
    uint64_t count;
};
_Static_assert(sizeof(struct tutti_signature) == 16, "two words, without padding");

/* What precedes the first bytes of an operation on each lane. */
struct tutti_header {
    uint64_t sequence; /* of the communicator's collectives, or of the pair's messages */
    struct tutti_signature signature;
    uint64_t chain;    /* of the collectives before this one (history.h); 0 with messages */
};

static inline bool tutti_signature_equal(const struct tutti_signature *a,
                                         const struct tutti_signature *b)
{
    return a->magic == b->magic && a->call == b->call && a->type == b->type && a->op == b->op &&
           a->root == b->root && a->count == b->count;
}

static inline bool tutti_header_equal(const struct tutti_header *a, const struct tutti_header *b)
{
    return a->sequence == b->sequence && a->chain == b->chain &&
           tutti_signature_equal(&a->signature, &b->signature);
}

/* "allreduce(count 1024, float32, sum)". Returns `text`. */
#define TUTTI_SIGNATURE_TEXT_BYTES 96
const char *tutti_signature_format(const struct tutti_signature *signature,
                                   char text[TUTTI_SIGNATURE_TEXT_BYTES]);

/* Record the mismatch between my call and `rank`'s and return TUTTI_ERR_USAGE. */
int tutti_signature_mismatch(const struct tutti_header *mine, int rank,
                             const struct tutti_header *theirs);

#endif
