/* SPDX-License-Identifier: Apache-2.0
 * An interpreter of schedules that shares nothing with the checker. It runs the steps of all ranks
 * on numbers, slice by slice, in one order that a seed selects, and compares the results. It
 * proves nothing, but every error that it finds is an error. */
#ifndef TUTTI_TESTS_SCHEDULE_INTERPRETER_H
#define TUTTI_TESTS_SCHEDULE_INTERPRETER_H

#include "schedule/step.h"

enum outcome {
    OUTCOME_RIGHT,
    OUTCOME_WRONG_RESULT,
    OUTCOME_DEADLOCK,
    OUTCOME_MISMATCH, /* a message of other length than its receive */
};

struct interpreter_options {
    uint64_t seed;     /* of the interleaving */
    bool in_place;
    bool is_buffered;  /* sends complete without their receives; else rendezvous */
    bool is_uniform;   /* any lane that can move may move next; else a fixed priority of lanes */
};

/* Run the schedules. If they have one-sided steps they run three times, with the two window halves
 * used alternately. Every index in them must be in range. */
enum outcome interpret(struct tutti_schedule *const *schedules, uint32_t nranks,
                       const struct interpreter_options *options);

#endif
