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

/* The public function on whose behalf the library itself makes a call: messages name that function,
 * because the user has never called what is inside it. */
enum tutti_caller {
    TUTTI_FOR_USER, /* the call is the user's own */
    TUTTI_FOR_FORMING,
    TUTTI_FOR_SPLIT,
    TUTTI_FOR_TUNE,
    TUTTI_FOR_FINALIZE,
    TUTTI_FOR_MAILBOX,
    TUTTI_CALLER_COUNT
};

/* Its name, as in messages; NULL: the user's own call. */
const char *tutti_caller_name(uint8_t caller);

struct tutti_signature {
    uint16_t magic;
    uint8_t call;   /* enum tutti_call_kind of call.h */
    uint8_t type;   /* 255: none */
    uint8_t op;     /* 255: none; average and pre-multiplied sums have numbers of their own */
    uint8_t caller; /* enum tutti_caller */
    uint16_t root;  /* 65535: none */
    /* Elements of a block. Of an all-gather-v and a reduce-scatter-v: a hash of the counts, which
     * all ranks must pass alike. Of an all-to-all-v: 0 for the call as a whole; what travels to a
     * peer says how many elements that peer gets. */
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
           a->caller == b->caller && a->root == b->root && a->count == b->count;
}

static inline bool tutti_header_equal(const struct tutti_header *a, const struct tutti_header *b)
{
    return a->sequence == b->sequence && a->chain == b->chain &&
           tutti_signature_equal(&a->signature, &b->signature);
}

/* True if the two are equal but for the count: of v-forms, the same call with other counts. */
static inline bool tutti_signature_alike(const struct tutti_signature *a,
                                         const struct tutti_signature *b)
{
    struct tutti_signature same = *a;

    same.count = b->count;
    return tutti_signature_equal(&same, b);
}

/* True of an all-gather-v and a reduce-scatter-v, whose count is a hash. */
bool tutti_signature_has_hash(const struct tutti_signature *signature);
/* True of an all-to-all-v. */
bool tutti_signature_has_pairs(const struct tutti_signature *signature);

/* "allreduce(count 1024, float32, sum)", "allgatherv(float32)", "tuttiCommSplit". Returns
 * `text`. */
#define TUTTI_SIGNATURE_TEXT_BYTES 128
const char *tutti_signature_format(const struct tutti_signature *signature,
                                   char text[TUTTI_SIGNATURE_TEXT_BYTES]);

/* The same of a call of mine, whose counts are known: "allgatherv(total 22, float32)",
 * "alltoallv(sends 10, receives 12, float32)". */
struct tutti_call;
const char *tutti_call_format(const struct tutti_call *call, int nranks,
                              char text[TUTTI_SIGNATURE_TEXT_BYTES]);

/* Record the mismatch between my call and `rank`'s and return TUTTI_ERR_USAGE. */
int tutti_signature_mismatch(const struct tutti_header *mine, int rank,
                             const struct tutti_header *theirs);

/* The same, where both make that call with a hash but pass other counts: the first entry that
 * differs, -1 if that is not known, with both values. */
int tutti_counts_mismatch(const struct tutti_header *mine, int rank, int entry, uint64_t here,
                          uint64_t there);

/* The same of a pair in an all-to-all-v: `from` sends `sent` elements to `to`, which expects
 * another number of them. */
int tutti_pair_mismatch(const struct tutti_signature *signature, uint64_t number, int from,
                        uint64_t sent, int to, uint64_t expected);

#endif
