/* SPDX-License-Identifier: Apache-2.0
 * Lists the blocks that each call of the API reads and writes. The lists are derived from the
 * promises of tutti.h, and share no code with the library. */
#ifndef TUTTI_TEST_LAYOUT_H
#define TUTTI_TEST_LAYOUT_H

#include "support/trial.h"

/* A run of elements in a buffer. */
struct block {
    size_t at, count;
    uint64_t key; /* moved: of its stream of bytes; reduced: index of its first element */
    int peer;     /* of exchanges */
    int summands; /* of outputs that are reduced: the number of ranks, from 0 on, combined */
};

struct layout_arrays {
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
    size_t own_count; /* of this rank's block */
};

/* The arrays that a v-form is called with, out of attempt->arrays. */
struct layout_arrays layout_arrays(const struct member *member, const struct trial *trial,
                                   const size_t *arrays);

/* Whether the rank receives anything in this call. */
bool layout_has_output(const struct member *member, const struct trial *trial);

/* Fill the attempt's arrays and lists of blocks; attempt_end frees them. */
void layout_blocks(struct attempt *attempt);

/* Where the two arguments of a call in place are, given both as the start of the one buffer. */
void layout_in_place(const struct attempt *attempt, const uint8_t **send, uint8_t **recv);

#endif
