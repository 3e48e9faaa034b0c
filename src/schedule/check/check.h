/* SPDX-License-Identifier: Apache-2.0
 * The checker. It proves that the schedules of all ranks together do what their collective
 * promises, for every timing, or says where they do not.
 *
 *  1. Result: each output chunk holds exactly the contributions that the collective promises, none
 *     lost, none counted twice; in place and out of place. A barrier (step.h) promises order only:
 *     each rank's end happens after every other rank's start.
 *  2. Matching: sends and receives of each (sender, receiver, channel) pair up in order, with the
 *     same number of chunks of equal sizes. In a v-form the blocks differ in size.
 *  3. Causality: nothing is read before it is written.
 *  4. Deadlock: none, if every lane holds at least `credits` messages that are sent and not yet
 *     received. With 0 credits a send completes only with its receive. Lanes and dependencies work
 *     as described in build.h; fused steps move slice by slice.
 *  5. Races: of any two accesses to one chunk (local, window, remote), one of them a write, one
 *     must happen before the other, by dependencies, messages and signals. This also holds between
 *     successive runs of the schedule, which alternate between two window halves under the
 *     executor's reuse rule (executor/host/host.h). No step is assumed to wait because a lane is
 *     full. So the absence of races, like causality and the result, holds for the given number of
 *     credits and for any larger one.
 *  6. Agreement: every rank's result of a chunk is the same reduction expression (bracketing and
 *     order), except that the two operands of one step may be swapped.
 *
 * There are two forms, which differ in how they represent the ranks in a sum. The exact form keeps
 * the set of ranks of each distinct sum, and each expression once. The hashed form, for thousands
 * of ranks, keeps the number of ranks and 128 bits, the sum of a random number per rank; for the
 * expression it keeps 64 bits of hash. A wrong set passes with probability 2^-128, a wrong
 * bracketing with 2^-64 per pair compared. The hashed form does not tell which rank is lost or
 * counted twice, nor at which step. Everything else, races and deadlock included, is proved in the
 * same way in both.
 *
 * Cost: neighboring chunks with the same history are one item, so work grows with steps, not with
 * chunks. A check of 4096 ranks takes seconds if the number of steps per rank grows with the
 * logarithm of the number of ranks. Each distinct sum takes nranks bits (hashed: 128). Where ranks
 * share memory, each WAIT takes nranks counters; ranks that wait for the same signal of all others
 * share them. Each GATHER_REDUCE takes nranks reads. So the cost of one-sided schedules grows with
 * the square of the number of ranks, which allows a few thousand ranks. If ranks wait for single
 * peers, it grows with the cube, which allows a few hundred.
 *
 * Sources of the method: symbolic execution over contributor sets as in MSCCLang (Cowan et al.
 * 2023); happens-before by vector clocks (Mattern 1989); the least credits by repeated play, as the
 * least buffers of marked graphs (Commoner et al. 1971).
 */
#ifndef TUTTI_SCHEDULE_CHECK_CHECK_H
#define TUTTI_SCHEDULE_CHECK_CHECK_H

#include "schedule/step.h"

struct tutti_check_options {
    /* Messages that each lane is known to hold; UINT32_MAX: no limit. */
    uint32_t credits;
    /* Blocks differ in size (the v-forms): a chunk may only be sent and stored where memory is
     * sized for its own block. Otherwise all blocks are equal, and only the chunks of one block
     * differ. */
    bool is_vector;
    bool is_hashed; /* use the hashed form instead of the exact form */
};

struct tutti_check_report {
    /* The error, if the schedules are wrong. */
    uint32_t rank;
    uint32_t step;   /* index in that rank's schedule; UINT32_MAX: no step in particular */
    char what[512];  /* what is wrong, in one line */

    /* Facts, if the schedules are correct. */
    uint32_t credits;     /* the least credits that suffice */
    /* The number of different orders in which elements are summed. It is 1 if all elements are
     * summed in the same order, and 0 if no element is summed. If two schedules have equal hashes,
     * they sum every element in the same order, whatever their chunks. If the ranks' results
     * combine different numbers of inputs, only the last rank's result counts. */
    uint32_t orders;
    uint64_t order_hash;
    /* Messages or signals in the longest chain of which each waits for the one before. A schedule
     * may need more rounds than this, because a rank sends one message per round. */
    uint32_t depth;
    uint64_t messages;    /* messages of all ranks */
    /* Of the rank that has the most of each: */
    uint64_t sent;        /* chunks that it sends in messages */
    uint64_t received;    /* chunks that it receives in messages */
    uint64_t reached;     /* chunks of peers' memory that its one-sided steps load or store */
    uint32_t steps;
    uint32_t scratch;     /* chunks of SCRATCH */
};

/* Check `schedules`, those of ranks 0 .. nranks-1. Returns TUTTI_OK; TUTTI_ERR_ARGUMENT if they are
 * wrong (the report says why, and nothing is logged); or TUTTI_ERR_SYSTEM if memory runs out. */
int tutti_check_prove(const struct tutti_schedule *const *schedules, uint32_t nranks,
                      const struct tutti_check_options *options,
                      struct tutti_check_report *ret_report);

/* The same with no credits, equal blocks and the exact form. Every algorithm of the library passes
 * this check. */
int tutti_check_schedule(const struct tutti_schedule *const *schedules, uint32_t nranks,
                         struct tutti_check_report *ret_report);

/* Check only matching and deadlock, and set *ret_least to the least number of credits with which no
 * rank is stuck. TUTTI_ERR_ARGUMENT: no number is enough, and the report tells which step waits for
 * which. TUTTI_ERR_SYSTEM: no memory. */
int tutti_check_credits_needed(const struct tutti_schedule *const *schedules, uint32_t nranks,
                               uint32_t *ret_least, struct tutti_check_report *ret_report);

#endif
