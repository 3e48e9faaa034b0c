/* SPDX-License-Identifier: Apache-2.0
 * A call: what the user asked for, checked and complete, before anybody has
 * decided how it is done.
 */
#ifndef TUTTI_EXECUTOR_CALL_H
#define TUTTI_EXECUTOR_CALL_H

#include "base/types.h"
#include "executor/signature.h"
#include "schedule/step.h"

/* Collectives first, with their own numbers; then what is not one schedule. */
enum tutti_call_kind {
    TUTTI_CALL_VECTOR = TUTTI_COLLECTIVE_COUNT, /* added to a collective: its v-form */
    TUTTI_CALL_SEND = 2 * TUTTI_COLLECTIVE_COUNT,
    TUTTI_CALL_RECV,
    TUTTI_CALL_KIND_COUNT
};

/* Reductions as they travel in signatures: enum tutti_op, and these. */
enum { TUTTI_OP_AVERAGE = 4, TUTTI_OP_PREMULTIPLIED = 5, TUTTI_OP_NONE = 255 };

struct tutti_call {
    uint8_t kind; /* enum tutti_call_kind */
    enum tutti_collective collective; /* of collectives and their v-forms */
    enum tutti_type type;
    enum tutti_op op;         /* what combines two elements */
    bool is_average;          /* divide by nranks at the end */
    /* A pre-multiplied sum: one element of `type` that this rank's input is multiplied by, kept
     * here, or at an address that is read when the operation runs. */
    bool is_premultiplied;
    const void *scalar_address;
    uint8_t scalar[8];
    const void *input;
    void *output;
    size_t count;             /* elements of one block */
    int root;                 /* or the peer of a send or receive; 0 when there is none */
    /* Of v-forms: one entry per rank each, owned by the call's holder; displs NULL: packed. */
    const size_t *input_counts, *input_displs;
    const size_t *output_counts, *output_displs;
    struct tutti_signature signature;
};

/* How large its buffers are as a whole for that rank: from the first byte to the last that is
 * read, or written. 0: it needs none. */
void tutti_call_measure(const struct tutti_call *call, int nranks, int rank,
                        size_t *ret_input_bytes, size_t *ret_output_bytes);

/* Of a v-form but the all-to-all-v: the counts that all ranks pass alike. */
static inline const size_t *tutti_call_shared_counts(const struct tutti_call *call)
{
    return call->output_counts != NULL ? call->output_counts : call->input_counts;
}

/* A hash of the counts that all ranks pass alike, for the signature. */
uint64_t tutti_counts_hash(const size_t *counts, int nranks);

/* A collective of bytes, root 0, which the library itself calls; all ranks alike. Messages name
 * `caller`. */
void tutti_call_of_bytes(enum tutti_collective collective, enum tutti_caller caller,
                         const void *input, void *output, size_t count,
                         struct tutti_call *ret_call);

/* Sizes that were seen before, a bit for each power of two: true for the first of each, which it
 * remembers. */
static inline bool tutti_is_new_size(uint64_t *seen, size_t bytes)
{
    uint64_t class = bytes == 0 ? 1 : UINT64_C(1) << (63 - __builtin_clzll(bytes));
    bool is_new = (*seen & class) == 0;

    *seen |= class;
    return is_new;
}

static inline const void *tutti_call_scalar(const struct tutti_call *call)
{
    return call->scalar_address ? call->scalar_address : call->scalar;
}

#endif
