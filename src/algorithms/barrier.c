/* SPDX-License-Identifier: Apache-2.0
 * Barriers: no rank leaves before every rank has entered.
 *
 * Dissemination: in round i every rank tells the rank 2^i after it about all ranks that it has
 * heard of:
 *
 *   rank 0 heard of   0 | 4 (i = 0) | 3 2 (i = 1) | 1 0 4 3 (i = 2)       p = 5
 *
 * There are ceil(log2 p) rounds. A message of round i must be sent after the messages of all rounds
 * before have arrived. A barrier has no data, so no dependency would enforce this order by itself.
 * Therefore each arrival is copied, local steps run one after another, and the next message sends
 * the result of the last copy.
 *
 *   SCRATCH    0 -> send, recv -> 1 - copy -> 2 -> send, recv -> 3 - copy -> 4 -> send ...
 *
 * Direct: each rank gives a signal and waits for those of all others.
 *
 * Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Size of a message (step.h). */
#define MESSAGE_BYTES 8

static int emit_dissemination(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks;
    uint32_t rounds = tutti_rounds_of(n);

    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 2 * rounds);
    for (uint32_t i = 0; i < rounds; i++) {
        struct tutti_span told = tutti_span(TUTTI_BUF_SCRATCH, 2 * i, 1);
        struct tutti_span heard = tutti_span(TUTTI_BUF_SCRATCH, 2 * i + 1, 1);

        TUTTI_TRY(tutti_build_send(build, tutti_rank_after(shape->rank, 1u << i, n), told));
        TUTTI_TRY(tutti_build_recv(build, tutti_rank_before(shape->rank, 1u << i, n), heard));
        if (i + 1 < rounds)
            TUTTI_TRY(tutti_build_copy(build, heard,
                                       tutti_span(TUTTI_BUF_SCRATCH, 2 * i + 2, 1)));
    }
    return TUTTI_OK;
}

static int emit_direct(const struct tutti_shape *shape, struct tutti_build *build)
{
    (void)shape;
    tutti_build_signals(build, 1);
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 1);
}

static void cost_dissemination(const struct tutti_shape *shape, double block_bytes,
                               struct tutti_cost *ret_cost)
{
    double rounds = tutti_rounds_of(shape->nranks);

    (void)block_bytes;
    tutti_cost_flat(shape, rounds, rounds * MESSAGE_BYTES, 0, (rounds - 1) * MESSAGE_BYTES,
                    ret_cost);
}

static void cost_direct(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    (void)block_bytes;
    tutti_cost_flat(shape, 1, 0, 0, 0, ret_cost);
}

const struct tutti_algorithm tutti_dissemination_barrier = {
    .name = "dissemination",
    .collective = TUTTI_BARRIER,
    .emit = emit_dissemination,
    .cost = cost_dissemination,
};

const struct tutti_algorithm tutti_direct_barrier = {
    .name = "direct",
    .collective = TUTTI_BARRIER,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_direct,
    .cost = cost_direct,
};
