/* SPDX-License-Identifier: Apache-2.0
 * Runs one collective or exchange through the public API, with all buffers between guard bytes, and
 * compares the results with the promises of tutti.h. All ranks run the same trial. */
#ifndef TUTTI_TEST_TRIAL_H
#define TUTTI_TEST_TRIAL_H

#include "support/area.h"
#include "support/crowd.h"
#include "support/values.h"

enum act {
    ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, ALL_GATHER_V, REDUCE_SCATTER, REDUCE_SCATTER_V,
    ALLTOALL, ALLTOALL_V, GATHER, GATHER_V, SCATTER, SCATTER_V, BARRIER, SCAN, EXCLUSIVE_SCAN,
    RING_EXCHANGE, /* in a group: send to the next rank, receive from the one before */
    ALL_EXCHANGE,  /* in a group: send to and receive from every rank, oneself included */
    PASS_ON,       /* receive from the rank before, then send to the next, without a group */
    ACT_COUNT
};

/* How many elements each block of a v-form has. */
enum counts { COUNTS_EQUAL, COUNTS_NONE, COUNTS_SOME_ZERO, COUNTS_ONE_BIG, COUNTS_RAMP,
              COUNTS_LAWS };

/* Where the blocks of a v-form are. Gaps differ between ranks. */
enum places { PLACES_PACKED, PLACES_GAPS, PLACES_REVERSED, PLACES_COUNT };

struct trial {
    enum act act;
    tuttiDataType_t type;
    int op; /* of values.h */
    int root;
    size_t count; /* per block, as in the call; of v-forms the typical one */
    enum counts counts;
    enum places places;
    bool in_place;
    bool is_shifted; /* buffers are aligned to one element, no more */
};

/* The act that calls a collective of the library's table, or its v-form; ACT_COUNT: none does. */
enum act act_find(const char *collective, bool is_vector);
const char *act_name(enum act act);
bool act_reduces(enum act act);
/* True if the act may be called with that operation. Where nothing is reduced, tuttiSum stands for
 * none. */
bool act_has_op(enum act act, int op);
/* One of the operations that the call and the type have, by any number; tuttiSum if the call does
 * not reduce. */
int act_op(enum act act, tuttiDataType_t type, size_t number);
bool act_has_root(enum act act);
bool act_is_vector(enum act act);
bool act_can_be_in_place(enum act act);

/* A call that has been issued and not been verified yet. */
struct attempt {
    struct trial trial;
    struct member *member;
    struct area input, output; /* in place: only the output */
    struct block *input_blocks, *output_blocks;
    size_t inputs, outputs;
    size_t *arrays; /* counts and displacements of the v-forms */
    uint64_t scalar;
    uint8_t *device_scalar; /* where it is on a GPU; NULL */
    bool is_issued;
    uint8_t *device_input, *device_output; /* where the areas are on a GPU meanwhile; else NULL */
};

/* Fill the buffers, which are on the rank's GPU if it has one, and make the call. The attempt must
 * stay where it is until its end. */
void attempt_begin(struct attempt *attempt, struct member *member, const struct trial *trial,
                   tuttiStream_t stream);

/* Compare everything with what it must be now that the call is complete, and free it. */
void attempt_end(struct attempt *attempt);

/* Both, with stream NULL. */
void trial_run(struct member *member, const struct trial *trial);

#endif
