/* SPDX-License-Identifier: Apache-2.0
 * Messages between the ranks of a stage: their contents, their destinations, and one launch for
 * all. */
#ifndef TUTTI_TESTS_SIMCUDA_POST_H
#define TUTTI_TESTS_SIMCUDA_POST_H

#include "simcuda/scene.h"

enum { POST_MOST = 600 };

struct parcel {
    uint32_t from, to;
    size_t size_bytes;
    uint8_t *sent, *received; /* with a guard byte on each side */
};

/* One batch of all ranks, which has each rank's messages in the order of parcels. */
struct post {
    struct stage *stage;
    struct parcel parcels[POST_MOST];
    size_t count;
    uint64_t seed;
    struct tutti_cuda_program_image images[TUTTI_KERNEL_RANKS];
    uint8_t *scratch[TUTTI_KERNEL_RANKS];
    uint64_t sequences[TUTTI_KERNEL_RANKS][TUTTI_KERNEL_RANKS]; /* of pairs, over all batches */
};

void post_add(struct post *post, uint32_t from, uint32_t to, size_t size_bytes);

/* A message as its rank's batch has it. */
struct tutti_cuda_message post_message(const struct post *post, size_t index, bool sends);

/* The tables of all ranks. */
void post_encode(struct post *post);
struct tutti_kernel_work post_work(const struct post *post, uint32_t rank);

/* Encode, launch, compare; the batch is empty then. */
void post_deliver(struct post *post);
void post_compare(struct post *post);

#endif
