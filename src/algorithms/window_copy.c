/* SPDX-License-Identifier: Apache-2.0
 * All-gather, all-to-all, broadcast, gather and scatter through windows. The sender copies its data
 * into its own window and gives a signal; each receiver gets the data from there.
 *
 *   rank 0   INPUT -> WINDOW | signal |        wait for 1 | get 1's | wait for 2 | get 2's
 *   rank 1   INPUT -> WINDOW | signal |        wait for 2 | get 2's | wait for 0 | get 0's
 *   rank 2   INPUT -> WINDOW | signal |        wait for 0 | get 0's | wait for 1 | get 1's
 *
 * Each rank starts with the rank after it, so that no window is read by all at once. With a root, a
 * receiver gives its signal when it is done, a sender when its window is ready. A window is written
 * again two runs later, after the first signals of all ranks in the run between; by then its
 * readers are done.
 *
 * An all-to-all of blocks of different sizes is not served. No rank knows the largest of all
 * blocks, so the ranks could not agree on the number of pieces in which it goes through the
 * windows.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"
#include "algorithms/window.h"

static void declare(struct tutti_build *build, uint32_t slots)
{
    tutti_build_window(build, slots);
    tutti_build_signals(build, 1);
}

/* Get window slot `slot` of rank `from` into OUTPUT chunk `dst` once that rank is ready. */
static int take(struct tutti_build *build, uint32_t from, uint32_t slot, uint32_t dst)
{
    TUTTI_TRY(tutti_build_wait(build, (int32_t)from, 1));
    return tutti_build_get(build, from, tutti_span(TUTTI_BUF_WINDOW, slot, 1),
                           tutti_span(TUTTI_BUF_OUTPUT, dst, 1));
}

/* Get one slot of each other rank into that rank's block of OUTPUT, beginning with the next
 * rank. */
static int take_from_all(const struct tutti_shape *shape, struct tutti_build *build, uint32_t slot)
{
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t from = tutti_rank_after(shape->rank, i, shape->nranks);

        TUTTI_TRY(take(build, from, slot, from));
    }
    return TUTTI_OK;
}

static int emit_allgather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    declare(build, 1);
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_WINDOW, 0, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    return take_from_all(shape, build, 0);
}

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    declare(build, shape->nranks);
    TUTTI_TRY(tutti_algorithm_lay_out_others(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    return take_from_all(shape, build, shape->rank);
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    declare(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(take(build, shape->root, 0, 0));
        return tutti_build_signal(build);
    }
    TUTTI_TRY(tutti_build_copy(build, input, tutti_span(TUTTI_BUF_WINDOW, 0, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_copy(build, input, tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static int emit_gather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    declare(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_WINDOW, 0, 1)));
        return tutti_build_signal(build);
    }
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    TUTTI_TRY(take_from_all(shape, build, 0));
    return tutti_build_signal(build);
}

static int emit_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    declare(build, shape->nranks);
    if (shape->rank != shape->root) {
        TUTTI_TRY(take(build, shape->root, shape->rank, 0));
        return tutti_build_signal(build);
    }
    TUTTI_TRY(tutti_algorithm_lay_out_others(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

/* `memory` counts the bytes that all ranks load and store; a byte that is copied is loaded and
 * stored. A rank copies its block to its window and to its output, and gets the blocks of the
 * others. */
static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    double p = shape->nranks;

    tutti_cost_flat(shape, 1, (p - 1) * block_bytes, 0, 2 * block_bytes, ret_cost);
    ret_cost->memory = p * (4 + 2 * (p - 1)) * block_bytes;
}

/* All blocks except the rank's own go through windows. */
static void cost_alltoall(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) * block_bytes;

    tutti_cost_flat(shape, 1, others, 0, others + block_bytes, ret_cost);
    ret_cost->memory = p * 2 * (2 * others + block_bytes);
}

/* The root copies the vector to its window and to its output, and the others get it; each byte is
 * loaded and stored. */
static void cost_broadcast(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, 1, block_bytes, 0, 2 * block_bytes, ret_cost);
    ret_cost->memory = 2 * (shape->nranks + 1.0) * block_bytes;
    ret_cost->served = (shape->nranks - 1) * block_bytes;
}

/* Every block is copied to and from a window, except the root's own, which is copied once. */
static double window_bytes(const struct tutti_shape *shape, double block_bytes)
{
    return 2 * (2.0 * (shape->nranks - 1) + 1) * block_bytes;
}

static void cost_gather(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, 1, (shape->nranks - 1) * block_bytes, 0, block_bytes, ret_cost);
    ret_cost->memory = window_bytes(shape, block_bytes);
}

static void cost_scatter(const struct tutti_shape *shape, double block_bytes,
                         struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, 1, block_bytes, 0, shape->nranks * block_bytes, ret_cost);
    ret_cost->memory = window_bytes(shape, block_bytes);
    ret_cost->served = (shape->nranks - 1) * block_bytes;
}

const struct tutti_algorithm tutti_direct_allgather = {
    .name = "direct",
    .collective = TUTTI_ALLGATHER,
    .needs = TUTTI_NEEDS_WINDOW,
    .serves_vector = true,
    .emit = emit_allgather,
    .cost = cost_allgather,
};

const struct tutti_algorithm tutti_direct_alltoall = {
    .name = "direct",
    .collective = TUTTI_ALLTOALL,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_alltoall,
    .cost = cost_alltoall,
};

const struct tutti_algorithm tutti_direct_broadcast = {
    .name = "direct",
    .collective = TUTTI_BROADCAST,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_broadcast,
    .cost = cost_broadcast,
};

const struct tutti_algorithm tutti_direct_gather = {
    .name = "direct",
    .collective = TUTTI_GATHER,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_gather,
    .cost = cost_gather,
};

const struct tutti_algorithm tutti_direct_scatter = {
    .name = "direct",
    .collective = TUTTI_SCATTER,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_scatter,
    .cost = cost_scatter,
};
