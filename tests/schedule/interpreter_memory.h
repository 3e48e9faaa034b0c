/* SPDX-License-Identifier: Apache-2.0
 * The interpreter's memory: the data that the user of each rank passes, expects and gets. */
#ifndef TUTTI_TESTS_SCHEDULE_INTERPRETER_MEMORY_H
#define TUTTI_TESTS_SCHEDULE_INTERPRETER_MEMORY_H

#include "schedule/step.h"

#define SLICES 3
#define MOST_RUNS 3

struct value {
    uint64_t sum, mix;
};

/* a op b of two operands, which may be swapped. */
struct value value_add(struct value a, struct value b);
/* The next of `nranks` operands of an n-source reduction, from the left. */
struct value value_fold(struct value sum, struct value next, uint32_t nranks);

struct memory_rank {
    struct value *user[MOST_RUNS]; /* INPUT and OUTPUT, overlaid in place */
    uint32_t ninput, noutput, nuser, input_at, output_at;
    struct value *scratch, *window[2];
};

struct memory {
    struct tutti_schedule *const *schedules;
    uint32_t nranks, nruns;
    bool in_place;
    struct memory_rank *ranks;
    /* All-reduce: the first rank's result of each run, that all others must have bit for bit. */
    struct value *agreed[MOST_RUNS];
};

void memory_init(struct memory *memory, struct tutti_schedule *const *schedules, uint32_t nranks,
                 uint32_t nruns, bool in_place);
void memory_fini(struct memory *memory);

/* Slice of chunk i of a span. */
struct value *memory_at(struct memory *memory, uint32_t rank, uint32_t run, struct tutti_span span,
                        uint32_t i, uint32_t slice);

/* The caller calls: the input is there. */
void memory_give(struct memory *memory, uint32_t rank, uint32_t run);
/* Ends the call: returns whether the output is right. The memory is the caller's again. */
bool memory_take(struct memory *memory, uint32_t rank, uint32_t run);
/* At the very end, returns whether no rank has accessed memory that callers had taken back. */
bool memory_is_right(const struct memory *memory);

#endif
