/* SPDX-License-Identifier: Apache-2.0
 * The checker: proves that the schedules of all ranks together do what their
 * collective promises, for every timing, or says where they do not.
 *
 *  1. Result: each output chunk holds exactly the contributions the collective
 *     promises, none lost, none counted twice; in place and out of place.
 *     A barrier (step.h) promises order only: each rank's end happens after each other's start.
 *  2. Matching: sends and receives of each (sender, receiver, channel) pair up
 *     in order, chunk for chunk and size class for size class (blocks of a vector collective differ
 * in size).
 *  3. Causality: nothing is read before it was written.
 *  4. Deadlock: with no credits at all (a send completes only with its receive), with the
 *     executor's lanes and dependencies as build.h tells; fused steps move slice by slice.
 *  5. Races: no two accesses to one chunk (local, window, remote), one of them a write, are
 *     unordered by dependencies, messages, and signals; also between successive runs of the
 * schedule with two window halves in turns, under the executor's reuse rule (executor/host.h).
 *  6. Agreement: every rank's result of a chunk is the same reduction expression
 *     (bracketing and order), up to commuting the two operands of one step.
 *
 * Source of the method: symbolic execution over contributor sets as in MSCCLang
 * (Cowan et al. 2023); happens-before by vector clocks (Mattern 1989).
 */
#ifndef TUTTI_SCHEDULE_CHECK_H
#define TUTTI_SCHEDULE_CHECK_H

#include "schedule/step.h"

struct tutti_check_report {
    uint32_t rank;
    uint32_t step;   /* index in that rank's schedule; UINT32_MAX: none in particular */
    char what[256];  /* one line */
};

/* `schedules` holds those of ranks 0 .. nranks-1. TUTTI_OK, or TUTTI_ERR_ARGUMENT with *ret_report
 * filled (not logged), or TUTTI_ERR_SYSTEM. */
int tutti_schedule_check(const struct tutti_schedule *const *schedules, uint32_t nranks,
                         struct tutti_check_report *ret_report);

/* The same for algorithms that serve blocks of different sizes (the v-forms): then a chunk may
 * only travel and rest where memory is sized for its own block. The plain check takes all blocks
 * to be equal, and only the chunks of one block to differ. */
int tutti_schedule_check_vector(const struct tutti_schedule *const *schedules, uint32_t nranks,
                                struct tutti_check_report *ret_report);

#endif
