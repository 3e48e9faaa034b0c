/* SPDX-License-Identifier: Apache-2.0
 * A call is one operation that the user asked for. Its arguments are checked and complete, but no
 * algorithm has been chosen for it yet.
 */
#ifndef TUTTI_EXECUTOR_CALL_H
#define TUTTI_EXECUTOR_CALL_H

#include "base/types.h"
#include "executor/signature.h"
#include "schedule/step.h"

enum tutti_call_kind {
    TUTTI_CALL_COLLECTIVE, /* all blocks have `count` elements */
    TUTTI_CALL_VECTOR,     /* the v-form of a collective: a count for each rank */
    TUTTI_CALL_SEND,       /* a message; it has no schedule */
    TUTTI_CALL_RECV,
};

static inline bool tutti_call_kind_is_message(uint8_t kind)
{
    return kind == TUTTI_CALL_SEND || kind == TUTTI_CALL_RECV;
}

/* Signatures encode a reduction as a value of enum tutti_op or as one of these values. */
enum {
    TUTTI_OP_AVERAGE = TUTTI_OP_COUNT,
    TUTTI_OP_PREMULTIPLIED,
    TUTTI_OP_NONE = 255
};

struct tutti_call {
    uint8_t kind; /* enum tutti_call_kind */
    enum tutti_collective collective; /* 0 for messages, where it has no meaning */
    enum tutti_type type;
    enum tutti_op op;         /* combines two elements; not read if the call does not reduce */
    bool is_average;          /* true: the result is divided by the number of ranks */
    /* A pre-multiplied sum multiplies this rank's input by a scalar, one element of `type`. If
     * `scalar_address` is NULL, the scalar is in `scalar`. Otherwise the operation reads the scalar
     * from `scalar_address` when it runs. */
    bool is_premultiplied;
    const void *scalar_address;
    uint8_t scalar[8];        /* its first bytes are one element of `type` */
    const void *input;        /* the user's buffers; not read on ranks that need no such buffer */
    void *output;
    size_t count;             /* elements of one block; in v-forms, of this rank's block */
    int root;                 /* the root, or the peer of a send or receive; else 0 */
    /* The arrays of a v-form, in elements, with one entry per rank; NULL for other calls. The owner
     * of the call owns them. If displacements are NULL, the blocks are packed. */
    const size_t *input_counts, *input_displs;
    const size_t *output_counts, *output_displs;
    size_t *own_arrays;       /* memory of these arrays, if this is a copy; else NULL */
    struct tutti_signature signature;
};

/* The number of arrays that a v-form may have. */
enum { TUTTI_CALL_ARRAYS = 4 };

/* Returns array number `index` < TUTTI_CALL_ARRAYS of a call, or NULL if the call does not have
 * that array. */
static inline const size_t *tutti_call_array(const struct tutti_call *call, int index)
{
    const size_t *const arrays[TUTTI_CALL_ARRAYS] = {call->input_counts, call->input_displs,
                                                     call->output_counts, call->output_displs};

    return arrays[index];
}

/* Copies a call and its arrays. tutti_call_fini frees the copies of the arrays. TUTTI_ERR_SYSTEM:
 * no memory. */
int tutti_call_copy(const struct tutti_call *call, int nranks, struct tutti_call *ret_copy);

/* Frees the arrays of a copy. Other calls, and zeroed ones, have none to free. */
void tutti_call_fini(struct tutti_call *call);

/* True if both v-forms have the same counts and displacements. A rank without arrays has one count,
 * its own. */
bool tutti_call_same_counts(const struct tutti_call *a, const struct tutti_call *b, int nranks);

static inline bool tutti_call_is_message(const struct tutti_call *call)
{
    return tutti_call_kind_is_message(call->kind);
}

static inline bool tutti_call_is_vector(const struct tutti_call *call)
{
    return call->kind == TUTTI_CALL_VECTOR;
}

/* True for a v-form in which only the two ranks of a pair know the pair's count (collective.h). */
static inline bool tutti_call_has_pairs(const struct tutti_call *call)
{
    return tutti_call_is_vector(call) && tutti_collective_counts_by_pair(call->collective);
}

/* Returns the number of elements that rank `rank` gives to rank `to` in a call that copies data.
 * `call` is the call of `rank`. */
static inline size_t tutti_call_gives(const struct tutti_call *call, int rank, int to)
{
    if (!tutti_collective_is_source(call->collective, (uint32_t)rank, (uint32_t)to,
                                    (uint32_t)call->root))
        return 0;
    return call->input_counts != NULL ? call->input_counts[to] : call->count;
}

/* Returns the number of elements that rank `rank` takes from rank `from`. The rest is as above. */
static inline size_t tutti_call_takes(const struct tutti_call *call, int rank, int from)
{
    if (!tutti_collective_is_source(call->collective, (uint32_t)from, (uint32_t)rank,
                                    (uint32_t)call->root))
        return 0;
    return call->output_counts != NULL ? call->output_counts[from] : call->count;
}

/* Measures the call's buffers on rank `rank`, in bytes. A size reaches from the start of the buffer
 * to the end of the last block that is read or written. 0: the rank needs no such buffer. */
void tutti_call_buffer_bytes(const struct tutti_call *call, int nranks, int rank,
                             size_t *ret_input_bytes, size_t *ret_output_bytes);

/* Returns the counts [nranks] of a v-form whose counts are not by pair, so that they must be the
 * same on all ranks. */
static inline const size_t *tutti_call_shared_counts(const struct tutti_call *call)
{
    return call->output_counts != NULL ? call->output_counts : call->input_counts;
}

/* Returns a hash of `counts` [nranks] for the signature. Arrays that differ in only one entry never
 * have the same hash. */
uint64_t tutti_counts_hash(const size_t *counts, int nranks);

/* Fills in a collective of bytes that the library itself calls, with root 0 if it has a root.
 * `count` is in bytes per block, and the same on all ranks. Error messages name `caller` instead of
 * the collective. The buffers stay the caller's. */
void tutti_call_of_bytes(enum tutti_collective collective, enum tutti_caller caller,
                         const void *input, void *output, size_t count,
                         struct tutti_call *ret_call);

/* Changes a call that tutti_call_of_bytes filled in to elements of `type`. If the collective
 * reduces, it combines them by `op`. The count of the call is then in elements. */
void tutti_call_of_elements(struct tutti_call *call, enum tutti_type type, enum tutti_op op);

/* True if `bytes` is the first size of its class. Marks the class in *seen. A class holds the sizes
 * from one power of two up to the next, and a size of 0 counts as 1. */
static inline bool tutti_call_is_new_size(uint64_t *seen, size_t bytes)
{
    uint64_t class = bytes == 0 ? 1 : UINT64_C(1) << (63 - __builtin_clzll(bytes));
    bool is_new = (*seen & class) == 0;

    *seen |= class;
    return is_new;
}

/* True for an all-to-all in place, whose output overwrites input that other ranks still read. */
static inline bool tutti_call_is_swap(const struct tutti_call *call)
{
    return tutti_collective_in_place(call->collective) == TUTTI_AFTER_COPY &&
           call->input == call->output;
}

/* True if the output of `rank` must be made truth values at the end. Combining makes truth values,
 * but a rank whose result is the input of one rank combines nothing. */
static inline bool tutti_call_makes_truth(const struct tutti_call *call, int rank, int nranks)
{
    return !tutti_call_is_message(call) && tutti_collective_reduces(call->collective) &&
           tutti_op_gives_truth(call->op, call->type) &&
           tutti_collective_summands(call->collective, (uint32_t)rank, (uint32_t)nranks) == 1;
}

/* True if the output of some rank must be made truth values. If there is such a rank, it is rank 0,
 * or rank 1 in an exclusive scan. */
static inline bool tutti_call_makes_truth_somewhere(const struct tutti_call *call, int nranks)
{
    return tutti_call_makes_truth(call, 0, nranks) || tutti_call_makes_truth(call, 1, nranks);
}

/* Returns the address of the scalar of a pre-multiplied sum, which is in the call or the user's. */
static inline const void *tutti_call_scalar(const struct tutti_call *call)
{
    return call->scalar_address ? call->scalar_address : call->scalar;
}

#endif
