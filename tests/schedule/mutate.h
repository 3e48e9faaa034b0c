/* SPDX-License-Identifier: Apache-2.0
 * Single edits of schedules. */
#ifndef TUTTI_TESTS_SCHEDULE_MUTATE_H
#define TUTTI_TESTS_SCHEDULE_MUTATE_H

#include "schedule/step.h"

enum mutation {
    MUTATE_PEER,
    MUTATE_CHUNK,
    MUTATE_BUFFER,
    MUTATE_LOSE_STEP,
    MUTATE_REPEAT_STEP,
    MUTATE_SWAP_STEPS,
    MUTATE_LOSE_DEPENDENCY,
    MUTATE_SIGNAL_NUMBER,
    MUTATE_REDUCE_TO_COPY,
    MUTATION_COUNT
};

const char *mutation_name(enum mutation mutation);

/* A copy of one rank's schedule with one edit, chosen by the seed, that leaves every index in
 * range; dependencies are derived anew, except where one is lost. NULL: nothing to edit so. */
struct tutti_schedule *mutate(const struct tutti_schedule *const *schedules, uint32_t nranks,
                              enum mutation mutation, uint64_t seed, uint32_t *ret_rank,
                              uint32_t *ret_step);

#endif
