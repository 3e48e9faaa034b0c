/* SPDX-License-Identifier: Apache-2.0
 * The checker: proves that the schedules of all ranks together do what their
 * collective promises, for every timing, or says where they do not.
 *
 *  1. Result: each output chunk holds exactly the contributions the collective
 *     promises, none lost, none counted twice; in place and out of place.
 *     A barrier (step.h) promises order only: each rank's end happens after each other's start.
 *  2. Matching: sends and receives of each (sender, receiver, channel) pair up
 *     in order, chunk for chunk and size class for size class (blocks of a vector collective
 *     differ in size).
 *  3. Causality: nothing is read before it was written.
 *  4. Deadlock: none, when every lane holds `credits` messages or more that were sent and not yet
 *     received; with 0 a send completes only with its receive. The executor's lanes and
 *     dependencies are as build.h tells; fused steps move slice by slice.
 *  5. Races: no two accesses to one chunk (local, window, remote), one of them a write, are
 *     unordered by dependencies, messages, and signals; also between successive runs of the
 *     schedule with two window halves in turns, under the executor's reuse rule (executor/host/host.h).
 *     Nobody is taken to wait because a lane is full: so this, like causality and the result, holds
 *     for any number of credits from the given one on.
 *  6. Agreement: every rank's result of a chunk is the same reduction expression
 *     (bracketing and order), up to commuting the two operands of one step.
 *
 * Two forms differ in how they know who is in a sum. The exact form keeps the set of ranks of each
 * distinct sum, and each expression once. The hashed form, for thousands of ranks, keeps how many
 * ranks are in it and 128 bits, the sum of a random number per rank; and 64 bits of hash for the
 * expression. A wrong set passes with a chance of 2^-128, a wrong bracketing with one of 2^-64 per
 * pair compared; which rank is lost or counted twice is not told, nor at which step. Everything
 * else, races and deadlock included, is proved alike in both.
 *
 * What it takes: neighbouring chunks with one history are one item, so work grows with steps, not
 * with chunks; with 4096 ranks, seconds for algorithms whose steps grow with the logarithm. Each
 * distinct sum takes nranks bits (hashed: 128). Where ranks share memory each WAIT takes nranks
 * counters, but once for all who wait for the same signal of all; each n-source reduction takes
 * nranks reads. So one-sided schedules grow with the square of the ranks, or, where waits are for
 * single peers, with the cube: some thousand, or some hundred.
 *
 * Sources of the method: symbolic execution over contributor sets as in MSCCLang
 * (Cowan et al. 2023); happens-before by vector clocks (Mattern 1989); the least credits by
 * repeated play, as the least buffers of marked graphs (Commoner et al. 1971).
 */
#ifndef TUTTI_SCHEDULE_CHECK_CHECK_H
#define TUTTI_SCHEDULE_CHECK_CHECK_H

#include "schedule/step.h"

struct tutti_check_options {
    /* Messages that each lane is known to hold; UINT32_MAX: as many as there are. */
    uint32_t credits;
    /* Blocks differ in size (the v-forms): a chunk may only travel and rest where memory is sized
     * for its own block. Else all blocks are equal, and only the chunks of one block differ. */
    bool is_vector;
    bool is_hashed;
};

struct tutti_check_report {
    /* What is wrong. */
    uint32_t rank;
    uint32_t step;   /* index in that rank's schedule; UINT32_MAX: none in particular */
    char what[512];  /* one line */

    /* What was found where all is right. */
    uint32_t credits;     /* the least that do */
    /* In how many different orders elements are summed: 1 for all alike; 0 where nothing is. Equal
     * hashes of two schedules: the same order, element for element, whatever their chunks. */
    uint32_t orders;
    uint64_t order_hash;
    uint32_t rounds;      /* messages, or signals waited for, of the longest chain of them */
    uint64_t messages;    /* of all ranks */
    uint64_t sent;        /* chunks in messages, of the rank that has most; likewise below */
    uint64_t received;
    uint64_t reached;     /* chunks of peers' memory loaded and stored in one-sided steps */
    uint32_t steps;
    uint32_t scratch;     /* chunks */
};

/* `schedules` holds those of ranks 0 .. nranks-1. TUTTI_OK, or TUTTI_ERR_ARGUMENT and the report
 * says what is wrong (not logged), or TUTTI_ERR_SYSTEM. */
int tutti_schedule_prove(const struct tutti_schedule *const *schedules, uint32_t nranks,
                         const struct tutti_check_options *options,
                         struct tutti_check_report *ret_report);

/* With no credits, exact: what every algorithm of the library passes. */
int tutti_schedule_check(const struct tutti_schedule *const *schedules, uint32_t nranks,
                         struct tutti_check_report *ret_report);

/* Matching and deadlock alone: the least number of credits with which none is stuck. When none is
 * enough, TUTTI_ERR_ARGUMENT, and the report tells who waits for whom. */
int tutti_schedule_credits(const struct tutti_schedule *const *schedules, uint32_t nranks,
                           uint32_t *ret_least, struct tutti_check_report *ret_report);

#endif
