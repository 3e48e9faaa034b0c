/* SPDX-License-Identifier: Apache-2.0
 * The signature of an operation has the arguments that must be the same on all ranks. It travels
 * with the first message of each operation, and in every post of a domain. So ranks that call
 * different operations get an error that names both calls, instead of waiting forever.
 */
#ifndef TUTTI_EXECUTOR_SIGNATURE_H
#define TUTTI_EXECUTOR_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first two bytes of every signature. A peer that sent other bytes sent no header. */
#define TUTTI_SIGNATURE_MAGIC 0x5475u
/* The call number of sends and receives. No row in the table of collectives uses it. */
#define TUTTI_CALL_MESSAGE 18

/* The public function for which the library itself makes a call. Error messages name this function,
 * because the user does not know the calls that the function makes. */
enum tutti_caller {
    TUTTI_FOR_USER, /* the call is the user's own */
    TUTTI_FOR_FORMING,
    TUTTI_FOR_SPLIT,
    TUTTI_FOR_TUNE,
    TUTTI_FOR_FINALIZE,
    TUTTI_FOR_MAILBOX,
    TUTTI_CALLER_COUNT
};

/* Returns the name of a caller for messages. NULL: `caller` is TUTTI_FOR_USER or not a value of the
 * enum. The string is static. */
const char *tutti_caller_name(uint8_t caller);

struct tutti_signature {
    uint16_t magic;
    uint8_t call;   /* a number of the table of collectives (collective.h), or TUTTI_CALL_MESSAGE */
    uint8_t type;   /* enum tutti_type */
    uint8_t op;     /* enum tutti_op, TUTTI_OP_AVERAGE, TUTTI_OP_PREMULTIPLIED or TUTTI_OP_NONE */
    uint8_t caller; /* enum tutti_caller */
    uint16_t root;  /* UINT16_MAX: the call has no root */
    /* Elements of a block. For a v-form whose counts must be the same on all ranks, this is a hash
     * of the counts. For a v-form whose counts are by pair (collective.h), it is 0 in the call's
     * own signature, and the number of elements sent to a peer in the header to that peer. */
    uint64_t count;
};
_Static_assert(sizeof(struct tutti_signature) == 16, "two words, without padding");

/* The header that precedes the first bytes of an operation on each lane. */
struct tutti_header {
    uint64_t sequence; /* number among the communicator's collectives, or the pair's messages */
    struct tutti_signature signature;
    uint64_t chain;    /* chain of the collectives before (call_history.h); 0 for messages */
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

/* True if the two signatures are equal, or differ only in the count. For v-forms this means the
 * same call with other counts. */
static inline bool tutti_signature_alike(const struct tutti_signature *a,
                                         const struct tutti_signature *b)
{
    struct tutti_signature same = *a;

    same.count = b->count;
    return tutti_signature_equal(&same, b);
}

/* True for a v-form whose counts must be the same on all ranks, so that its count is a hash. */
bool tutti_signature_has_hash(const struct tutti_signature *signature);
/* True for a v-form whose counts are by pair. */
bool tutti_signature_has_pairs(const struct tutti_signature *signature);

/* Size of the text of a signature, with its terminating zero. */
#define TUTTI_SIGNATURE_TEXT_BYTES 128
/* Writes a signature as text, for messages: "allreduce(count 1024, float32, sum)",
 * "allgatherv(float32)", "tuttiCommSplit". Returns `text`. */
const char *tutti_signature_format(const struct tutti_signature *signature,
                                   char text[TUTTI_SIGNATURE_TEXT_BYTES]);

struct tutti_call;
/* Writes a call of this rank as text. The counts of the call are known, so the text has them too,
 * for example "allgatherv(total 22, float32)" or "alltoallv(sends 10, receives 12, float32)".
 * Returns `text`. */
const char *tutti_call_format(const struct tutti_call *call, int nranks,
                              char text[TUTTI_SIGNATURE_TEXT_BYTES]);

/* Sets an error message that names both calls, this rank's and that of `rank`. Returns
 * TUTTI_ERR_USAGE. */
int tutti_signature_mismatch(const struct tutti_header *mine, int rank,
                             const struct tutti_header *theirs);

/* The same for two ranks that make the same call but pass counts whose hashes differ. `entry` is
 * the index of a count that differs, or -1 if no index is known. `here` and `there` are the values
 * of that count on this rank and on `rank`. */
int tutti_counts_mismatch(const struct tutti_header *mine, int rank, int entry, uint64_t here,
                          uint64_t there);

/* The same for a pair of ranks in a v-form whose counts are by pair, call number `number`: rank
 * `from` sends `sent` elements to rank `to`, which expects `expected`. */
int tutti_pair_mismatch(const struct tutti_signature *signature, uint64_t number, int from,
                        uint64_t sent, int to, uint64_t expected);

#endif
