/* SPDX-License-Identifier: Apache-2.0
 * All-reduce, reduce-scatter and reduce on mapped user buffers. Each rank sums its own part
 * directly from all INPUTs, in rank order, and stores the sum where it belongs.
 *
 *                 INPUT 0   a b c          rank 0 sums a, 1 sums b, 2 sums c
 *                 INPUT 1   a b c
 *                 INPUT 2   a b c          all-reduce: into all OUTPUTs; reduce-scatter: into its
 *                           | | |          own; reduce: into the root's
 *                 OUTPUT    a b c
 *
 * The first signal of a rank means that its buffers are ready, the second that it is done with the
 * buffers of the others. After it has waited for all second signals, a rank owns its buffers again.
 * In-place calls are safe, because only rank r reads and writes part r of any buffer.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Wait until the buffers of all ranks are ready. */
static int begin(struct tutti_build *build)
{
    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 1);
}

/* Wait until all ranks are done with each other's buffers. */
static int end(struct tutti_build *build)
{
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 2);
}

/* Sum INPUT chunk `index` of all ranks into `dst` and, unless that is TUTTI_NO_SPAN, into
 * `remote_dst` of every other rank. */
static int sum_chunk(struct tutti_build *build, uint32_t index, struct tutti_span dst,
                     struct tutti_span remote_dst)
{
    struct tutti_span chunk = tutti_span(TUTTI_BUF_INPUT, index, 1);

    return tutti_build_gather_reduce(build, chunk, chunk, dst, TUTTI_NO_SPAN, remote_dst);
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span chunk = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    tutti_build_chunks(build, shape->nranks);
    TUTTI_TRY(begin(build));
    TUTTI_TRY(sum_chunk(build, shape->rank, chunk, chunk));
    return end(build);
}

static int emit_reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    TUTTI_TRY(begin(build));
    TUTTI_TRY(sum_chunk(build, shape->rank, tutti_span(TUTTI_BUF_OUTPUT, 0, 1), TUTTI_NO_SPAN));
    return end(build);
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span part = tutti_span(TUTTI_BUF_INPUT, shape->rank, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    tutti_build_chunks(build, shape->nranks);
    TUTTI_TRY(begin(build));
    if (shape->rank == shape->root)
        TUTTI_TRY(sum_chunk(build, shape->rank, sum, TUTTI_NO_SPAN));
    else
        TUTTI_TRY(tutti_build_gather_reduce_to(build, part, part, shape->root, sum));
    return end(build);
}

/* ---- costs --------------------------------------------------------------------------------- */

/* Loads and stores use opposite directions of this rank's port. Where each rank's memory is behind
 * a port of its own, the loads and stores of the other ranks pass through that port as well.
 * `memory` counts the bytes that all ranks load and store. */
static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) / p * block_bytes;

    tutti_cost_flat(shape, 2, others, others, 0, ret_cost);
    ret_cost->memory = 2 * p * block_bytes;
    ret_cost->served = 2 * others;
}

static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) * block_bytes;

    tutti_cost_flat(shape, 2, others, others, 0, ret_cost);
    ret_cost->memory = p * (p + 1) * block_bytes;
}

/* Every rank reads its part of all vectors and stores the sum at the root. */
static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) / p * block_bytes;

    tutti_cost_flat(shape, 2, others, others, 0, ret_cost);
    ret_cost->memory = (p + 1) * block_bytes;
    ret_cost->served = 2 * others;
}

const struct tutti_algorithm tutti_mapped_allreduce = {
    .name = "mapped",
    .collective = TUTTI_ALLREDUCE,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};

const struct tutti_algorithm tutti_mapped_reduce_scatter = {
    .name = "mapped",
    .collective = TUTTI_REDUCE_SCATTER,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .serves_vector = true,
    .emit = emit_reduce_scatter,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_mapped_reduce = {
    .name = "mapped",
    .collective = TUTTI_REDUCE,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .emit = emit_reduce,
    .cost = cost_reduce,
};
