/* SPDX-License-Identifier: Apache-2.0
 * Single edits of schedules. */
#ifndef TUTTI_TESTS_SCHEDULE_MUTATE_H
#define TUTTI_TESTS_SCHEDULE_MUTATE_H

#include "schedule/step.h"

enum mutation {
    MUTATE_PEER,
    MUTATE_CHANNEL,
    MUTATE_KIND,
    MUTATE_CHUNK,      /* one span lies elsewhere */
    MUTATE_ALL_CHUNKS, /* all spans of the step do */
    MUTATE_COUNT,      /* a chunk more or less, in all spans */
    MUTATE_BUFFER,
    MUTATE_SPLIT_STEP, /* its chunks in two steps: two messages for one */
    MUTATE_LOSE_STEP,
    MUTATE_REPEAT_STEP,
    MUTATE_SWAP_STEPS,
    MUTATE_LOSE_DEPENDENCY,
    MUTATE_OTHER_DEPENDENCY,
    MUTATE_SIGNAL_NUMBER,
    MUTATION_COUNT
};

const char *mutation_name(enum mutation mutation);

/* Returns a copy of one rank's schedule with one edit that leaves every index in range.
 * Dependencies are derived again, except if the edit is in them. Successive seeds from 1 on spread
 * evenly over the steps of all ranks. NULL means that no such edit is possible. */
struct tutti_schedule *mutate(const struct tutti_schedule *const *schedules, uint32_t nranks,
                              enum mutation mutation, uint64_t seed, uint32_t *ret_rank,
                              uint32_t *ret_step);

#endif
