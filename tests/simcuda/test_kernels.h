/* SPDX-License-Identifier: Apache-2.0
 * Arguments of the kernels that try the machine, and the driver. */
#ifndef TUTTI_TESTS_SIMCUDA_TEST_KERNELS_H
#define TUTTI_TESTS_SIMCUDA_TEST_KERNELS_H

#include <stdint.h>

/* try_sum: the sum of what thread t of block b has, which is b * 1000 + t, into sums[b]. */
struct try_sum {
    uint64_t *sums;
};

/* try_warps: what each thread's warp thinks of it, into rows[thread]. */
struct try_warp_row {
    uint32_t votes, all, any;
};
struct try_warps {
    struct try_warp_row *rows;
};

/* try_votes: barriers that vote; counts[0..1] of threads that found the right answer. */
struct try_votes {
    uint64_t *counts; /* [2] */
};

/* try_send: block 0 (of `sender`) sends `nmessages` of `nwords` words, the others receive and count
 * words that are wrong. */
enum try_how {
    TRY_RELEASE, TRY_FENCE, TRY_NO_ORDER, TRY_BARRIER_RELEASE, TRY_FLAGGED,
    TRY_FENCES,     /* relaxed accesses, with a fence on either side */
    TRY_NO_ACQUIRE, /* released, but seen by relaxed loads */
};
struct try_message {
    uint64_t sequence, unused[15];
    uint64_t received, unused_too[15];
    uint64_t words[1]; /* as many as are there */
};
struct try_send {
    struct try_message *message;
    uint64_t *wrong;
    uint32_t how, nmessages, nwords, is_sender, is_receiver;
};

/* try_lines: the first warp of block 0 sends lines, the one of block 1 counts those that are
 * neither old nor new. */
struct try_lines {
    unsigned char *lines; /* [4][128], zero */
    uint64_t *torn;       /* one counter, then one for acknowledging */
    uint32_t nrounds;
};

/* try_own: each thread stores its word of the block's row in every round, and then loads the word of
 * the next thread, which must be that of the round. */
struct try_own {
    uint64_t *words; /* [blocks][threads] */
    uint64_t *wrong;
    uint32_t nrounds;
};

/* try_mistake: what kernels must not do. */
enum try_mistake_kind {
    TRY_LEAVES_BEFORE_BARRIER, TRY_BARRIER_OF_HALF, TRY_VOTE_OF_HALF, TRY_MISALIGNED,
    TRY_TWO_BARRIERS, TRY_MUCH_SHARED, TRY_DEEP_STACK, TRY_ENDLESS,
};
struct try_mistake {
    uint32_t what;
    uint64_t *memory; /* [2] */
};

/* try_race: two threads store to the same place, ordered by a barrier or not. */
struct try_race {
    uint64_t *memory; /* [64] */
    uint32_t has_barrier;
};

/* try_add: each thread adds 1, `times` times. */
struct try_add {
    uint64_t *at;
    uint32_t times;
};

/* try_meet: all blocks of all launches meet by a counter, `rounds` times; `total` are expected. */
struct try_meet {
    uint64_t *counter;
    uint64_t total, rounds;
};

/* try_fill: words[i] = value + i over the grid; try_wait: until *at is `value`. */
struct try_fill {
    uint64_t *words;
    uint64_t nwords, value;
};
struct try_wait {
    const uint64_t *at;
    uint64_t value;
};

#endif
