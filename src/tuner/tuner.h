/* SPDX-License-Identifier: Apache-2.0
 * The tuner: which algorithm a call runs by, and with which options.
 *
 * It looks only at what is the same on all ranks, so that all choose alike. Who is asked, in this
 * order; the first that names an algorithm that can serve the call decides:
 *
 *   1. TUTTI_ALGORITHM                      policy.h: rank 0's, distributed while the
 *   2. TUTTI_TUNE, the user's rules         communicator forms
 *   3. TUTTI_TUNE_TABLE, what was measured
 *   4. builtin.c, where all ranks share memory, or a host's cores: measured, too; but where hosts
 *      have cells, what goes by these, if its price is lower
 *   5. the lowest price, by size class      price.h, memo.h
 *   6. builtin.c, for calls that nothing is known about
 */
#ifndef TUTTI_TUNER_H
#define TUTTI_TUNER_H

#include "algorithms/algorithm.h"
#include "topology/machine/machine.h"

struct tutti_memo;
struct tutti_policy;

/* An algorithm, and options as tutti_algorithm_options resolves them. */
struct tutti_choice {
    const struct tutti_algorithm *algorithm;
    struct tutti_options options;
};

/* Who decided. */
enum tutti_authority {
    TUTTI_BY_VARIABLE,
    TUTTI_BY_RULE,
    TUTTI_BY_TABLE,
    TUTTI_BY_HOST,   /* builtin.c, for ranks that share memory or crowd a host */
    TUTTI_BY_PRICE,
    TUTTI_BY_HABIT,  /* builtin.c, for all others */
    TUTTI_BY_NOBODY
};

/* The communicator, as far as the choice depends on it. */
struct tutti_tuner_view {
    uint32_t nranks;
    bool is_one_domain; /* all ranks share windows */
    bool all_read;      /* and can read each other's memory */
    bool all_store;     /* and store to it: one process */
    size_t half_bytes;  /* of a window half */
    /* Two-sided calls that are staged, and those that only use SCRATCH, run in pieces of so much of
     * the larger buffer (bind.h); 0: whole. */
    size_t stage_bytes, scratch_bytes;
    /* Borrowed, each may be NULL: nothing is known about it. Without a machine nothing has a price.
     * What the machine says about places is ignored here. */
    const struct tutti_places *places;
    const struct tutti_machine *machine;
    const struct tutti_policy *policy;
    const char *fingerprint; /* of the machine that tables are for (table.h) */
    struct tutti_memo *memo; /* written to: what was the cheapest (memo.h) */
};

/* One call. */
struct tutti_tuner_query {
    enum tutti_collective collective;
    bool is_vector;      /* a v-form */
    uint32_t root;
    size_t block_bytes;  /* of one block; of v-forms, their mean */
    bool is_scaled;      /* a pre-multiplied sum: its input is staged */
    bool is_lent;        /* ranks lend each other the buffers, and load and store there */
    uint32_t widening;   /* bytes on the wire of a two-sided run per byte of the call; 0 is 1 */
};

/* The choice, and optionally (not NULL) who made it. TUTTI_ERR_INTERNAL: no algorithm serves the
 * call. */
int tutti_tuner_choose(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       struct tutti_choice *ret_choice, enum tutti_authority *ret_authority);

/* Can `algorithm` serve the call on this communicator? */
bool tutti_tuner_can_serve(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_algorithm *algorithm);

/* Is it worth a thought where nobody has named it? Not what goes by cells that there are not. */
bool tutti_tuner_is_candidate(const struct tutti_tuner_view *view,
                              const struct tutti_tuner_query *query,
                              const struct tutti_algorithm *algorithm);

/* What rules go by: bytes of the larger of a rank's two buffers. */
size_t tutti_tuner_bytes(const struct tutti_tuner_view *view,
                         const struct tutti_tuner_query *query);

#endif
