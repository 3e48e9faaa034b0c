/* SPDX-License-Identifier: Apache-2.0
 * The tuner chooses the algorithm of a call, and the algorithm's options.
 *
 * The tuner uses only inputs that are the same on all ranks, so that all ranks choose the same. It
 * asks the authorities below in order. The first authority that names an algorithm that can serve
 * the call decides. Authorities 1 to 3 are those of rank 0 (policy.h), which distributes them while
 * the communicator forms.
 *
 *   1. the variable TUTTI_ALGORITHM
 *   2. TUTTI_TUNE, the user's rules
 *   3. TUTTI_TUNE_TABLE, measured choices
 *   4. the measured rows of builtin.c, if all ranks share memory, or share the cores of one host.
 *      On hosts with cells, an algorithm that uses cells may replace the choice of a row: if, by
 *      price, it saves more on the traffic between cells than it costs otherwise. On GPUs, the rows
 *      of builtin.c for protocols, if all GPUs are equally near to each other
 *   5. the lowest price, by size class (price.h, memo.h)
 *   6. the general rows of builtin.c, if no machine is known
 */
#ifndef TUTTI_TUNER_H
#define TUTTI_TUNER_H

#include "algorithms/protocols.h"
#include "topology/machine/machine.h"

struct tutti_memo;
struct tutti_policy;

/* An algorithm, its options as resolved by tutti_algorithm_options, and how it runs. */
struct tutti_choice {
    const struct tutti_algorithm *algorithm;
    struct tutti_options options;
    enum tutti_protocol protocol; /* TUTTI_PROTOCOL_STEPS, except on GPUs */
};

/* The authorities in the order of precedence. The user has named the algorithm if the authority is
 * TUTTI_BY_VARIABLE or TUTTI_BY_RULE. */
enum tutti_authority {
    TUTTI_BY_VARIABLE, /* TUTTI_ALGORITHM */
    TUTTI_BY_RULE,     /* TUTTI_TUNE */
    TUTTI_BY_TABLE,    /* TUTTI_TUNE_TABLE, or a table of tuttiCommTune */
    TUTTI_BY_HOST,     /* rows of builtin.c, for ranks that share memory or crowd a host, and for
                          GPUs that are equally near to each other */
    TUTTI_BY_PRICE,    /* the lowest price */
    TUTTI_BY_DEFAULT,  /* general rows of builtin.c, for all others */
    TUTTI_BY_NONE      /* none has decided */
};

/* The properties of the communicator that choices depend on. */
struct tutti_tuner_view {
    uint32_t nranks;
    bool is_one_domain; /* all ranks share windows */
    bool all_read;      /* all ranks can also read each other's memory */
    bool all_store;     /* all ranks can also store to that memory, as threads of one process */
    size_t half_bytes;  /* size of a window half */
    /* On GPUs. `is_even`: no rings along the links carry more than direct accesses between all
     * ranks do. `exchange`: the rates of all ranks at once, where the links are known; else 0. */
    bool is_even;
    struct tutti_machine_exchange exchange;
    /* The most bytes of the larger buffer in one piece of a two-sided call (bind.h). stage_bytes is
     * for calls that are staged, and scratch_bytes for calls that only use SCRATCH. 0: no limit. */
    size_t stage_bytes, scratch_bytes;
    /* The view does not own these objects. Each may be NULL if nothing is known about it. Without a
     * machine no algorithm has a price. The places in the machine are ignored, and `places` is used
     * instead. */
    const struct tutti_placement *places;
    const struct tutti_machine *machine;
    const struct tutti_policy *policy;
    const char *fingerprint; /* selects the section of tables (table.h) */
    struct tutti_memo *memo; /* remembers the cheapest choices; written to (memo.h) */
};

/* One call. */
struct tutti_tuner_query {
    enum tutti_collective collective;
    bool is_vector;      /* a v-form */
    uint32_t root;
    size_t block_bytes;  /* size of a block; in v-forms the mean, and 0 if counts are by pair */
    bool is_scaled;      /* a pre-multiplied sum, whose input is staged */
    bool is_lent;        /* ranks lend each other their buffers for loads and stores */
    uint32_t widening;   /* bytes that a two-sided run sends per byte of the call; 0 means 1 */
    uint32_t protocols;  /* bit p: enum tutti_protocol p can run the call; 0: on hosts */
};

/* Chooses the algorithm of a call, with options resolved. *ret_authority is the authority that
 * decided, unless `ret_authority` is NULL. TUTTI_ERR_INTERNAL: no algorithm serves the call. May
 * write to view->memo, so only one thread at a time may call it for a view. */
int tutti_tuner_choose(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       struct tutti_choice *ret_choice, enum tutti_authority *ret_authority);

/* True if `algorithm` can serve the call on this communicator. The function does not check that the
 * algorithm is of the call's collective. */
bool tutti_tuner_can_serve(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_algorithm *algorithm);

/* True if the choice can run the call on this communicator: its protocol can, or, step by step, its
 * algorithm can serve the call. */
bool tutti_tuner_can_run(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         const struct tutti_choice *choice);

/* True if `algorithm` may be chosen although the user has not named it. Such an algorithm is of the
 * call's collective, can serve the call, and does not depend on cells where hosts have none. */
bool tutti_tuner_is_candidate(const struct tutti_tuner_view *view,
                              const struct tutti_tuner_query *query,
                              const struct tutti_algorithm *algorithm);

/* Returns the bytes of the larger of a rank's two buffers, as in the ranges of rules. */
size_t tutti_tuner_bytes(const struct tutti_tuner_view *view,
                         const struct tutti_tuner_query *query);

#endif
