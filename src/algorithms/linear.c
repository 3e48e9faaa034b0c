/* SPDX-License-Identifier: Apache-2.0
 * Linear: the root deals with every other rank directly.
 *
 *        1                One round, p - 1 messages at the root. For few ranks, and for large
 *        ^                gathers and scatters, where the root's line is the limit anyway.
 *   3 <- 0 -> 2
 *
 * The root serves the ranks in order from the one after it on.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (shape->rank != shape->root)
        return tutti_build_recv(build, shape->root, output);
    for (uint32_t place = 1; place < shape->nranks; place++)
        TUTTI_TRY(tutti_build_send(build, to_rank(shape, place), input));
    return tutti_build_copy(build, input, output);
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (shape->rank != shape->root)
        return tutti_build_send(build, shape->root, sum);
    for (uint32_t place = 1; place < shape->nranks; place++) {
        TUTTI_TRY(tutti_build_recv_reduce(build, to_rank(shape, place), sum, output));
        sum = output;
    }
    return TUTTI_OK;
}

static int emit_gather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (shape->rank != shape->root)
        return tutti_build_send(build, shape->root, own);
    for (uint32_t place = 1; place < shape->nranks; place++) {
        uint32_t from = to_rank(shape, place);

        TUTTI_TRY(tutti_build_recv(build, from, tutti_span(TUTTI_BUF_OUTPUT, from, 1)));
    }
    return tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, shape->root, 1));
}

static int emit_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (shape->rank != shape->root)
        return tutti_build_recv(build, shape->root, own);
    for (uint32_t place = 1; place < shape->nranks; place++) {
        uint32_t to = to_rank(shape, place);

        TUTTI_TRY(tutti_build_send(build, to, tutti_span(TUTTI_BUF_INPUT, to, 1)));
    }
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->root, 1), own);
}

/* The root's messages are the longest path, each of a block: broadcast, gather, scatter alike. */
static void cost_copies(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    double others = shape->nranks - 1;

    tutti_cost_flat(shape, others, others * block_bytes, 0, block_bytes, ret_cost);
}

static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    double others = shape->nranks - 1;

    tutti_cost_flat(shape, others, others * block_bytes, others * block_bytes, 0, ret_cost);
}

const struct tutti_algorithm tutti_linear_broadcast = {
    .name = "linear",
    .collective = TUTTI_BROADCAST,
    .emit = emit_broadcast,
    .cost = cost_copies,
};

const struct tutti_algorithm tutti_linear_reduce = {
    .name = "linear",
    .collective = TUTTI_REDUCE,
    .emit = emit_reduce,
    .cost = cost_reduce,
};

const struct tutti_algorithm tutti_linear_gather = {
    .name = "linear",
    .collective = TUTTI_GATHER,
    .emit = emit_gather,
    .cost = cost_copies,
};

const struct tutti_algorithm tutti_linear_scatter = {
    .name = "linear",
    .collective = TUTTI_SCATTER,
    .emit = emit_scatter,
    .cost = cost_copies,
};
