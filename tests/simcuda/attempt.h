/* SPDX-License-Identifier: Apache-2.0
 * One collective on all ranks of a domain. It has buffers with guards around them, works for
 * kernels, and the expected result, which the arithmetic of the CPU gives bit for bit. */
#ifndef TUTTI_TESTS_SIMCUDA_ATTEMPT_H
#define TUTTI_TESTS_SIMCUDA_ATTEMPT_H

#include "base/types.h"
#include "schedule/step.h"
#include "simcuda/domain.h"

struct attempt_call {
    enum tutti_kernel_work_kind kind;
    enum tutti_collective collective;
    enum tutti_type type;
    enum tutti_op op;
    bool is_average;
    bool is_premultiplied;
    bool scalar_is_late;  /* read when the kernel runs */
    bool is_vector;       /* blocks differ, and ranks' gaps between them */
    bool is_in_place;
    uint32_t root;
    size_t count;         /* of each block; of v-forms the largest */
    size_t shift;         /* elements that buffers begin behind a line */
    uint64_t unmapped_inputs, unmapped_outputs; /* ranks whose peers cannot use them */
    uint64_t seed;
};

struct attempt_buffer {
    uint8_t *base;   /* of all of it, guards included */
    uint8_t *wanted; /* the expected contents of all of it at the end */
    size_t bytes;
    uint8_t *at;     /* the user's */
};

struct attempt_rank {
    struct attempt_buffer input, output; /* in place: the same */
    uint64_t *arrays;                    /* counts and displacements: of the input, of the output */
    uint64_t scalar;
};

struct attempt {
    struct attempt_call call;
    struct domain *domain;
    struct attempt_rank ranks[TUTTI_KERNEL_RANKS];
};

/* Takes the buffers from the ranks' arenas and fills them. `ret_works`: one for each rank, `stride`
 * apart. `number` is that of the call. */
void attempt_begin(struct attempt *attempt, struct domain *domain, const struct attempt_call *call,
                   uint64_t number, struct tutti_kernel_work *ret_works, uint32_t stride);

/* Compares everything with what it must be (or does not: the call has failed), and frees it. */
void attempt_end(struct attempt *attempt, bool must_be_right);

/* True if the collective has this form in place. */
bool attempt_is_possible(const struct attempt_call *call);

/* All ranks, from begin to end, in a launch of that kernel. */
void attempt_run(struct domain *domain, const struct attempt_call *call, const char *kernel,
                 const struct domain_grid *grids, uint64_t number);

#endif
