/* SPDX-License-Identifier: Apache-2.0
 * All-reduce, reduce-scatter and reduce through windows. Each rank copies what others need into its
 * window. Then it sums the part that it is responsible for directly from all windows at once, in
 * rank order.
 *
 *   one-shot   rank r   INPUT -> WINDOW | signal, wait for all | sum of all windows -> OUTPUT
 *
 *   two-shot   rank 0   INPUT a b c -> WINDOW . b c   |  sum a -> OUTPUT a, WINDOW a   |  get b, c
 *              rank 1   INPUT a b c -> WINDOW a . c   |  sum b -> OUTPUT b, WINDOW b   |  get c, a
 *              rank 2   INPUT a b c -> WINDOW a b .   |  sum c -> OUTPUT c, WINDOW c   |  get a, b
 *                                        signal, wait                    signal, wait
 *
 * A rank reads its own part from INPUT, so its own window slot stays free for the sum. In one-shot
 * each rank reads everything, which is for small vectors. Two-shot divides the work and costs one
 * more signal.
 *
 * A window is written again two runs later. The run between waits for every rank's first signal,
 * which a rank gives only after it has finished the run before.
 *
 * Source: textbook reduce-scatter and all-gather; reading all sources in one pass as in Peng et
 * al., "Optimizing MPI collectives on shared memory multi-cores", 2023.
 */
#include "algorithms/window.h"

#include "algorithms/ranks.h"

int tutti_algorithm_lay_out_others(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t above = shape->rank + 1;

    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, shape->rank),
                               tutti_span(TUTTI_BUF_WINDOW, 0, shape->rank)));
    return tutti_build_copy(build,
                            tutti_span(TUTTI_BUF_INPUT, above, shape->nranks - above),
                            tutti_span(TUTTI_BUF_WINDOW, above, shape->nranks - above));
}

/* Sum this rank's chunk over all ranks. */
static int sum_own_chunk(const struct tutti_shape *shape, struct tutti_build *build,
                         struct tutti_span dst, struct tutti_span also)
{
    return tutti_build_gather_reduce(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                                     tutti_span(TUTTI_BUF_WINDOW, shape->rank, 1), dst, also,
                                     TUTTI_NO_SPAN);
}

/* Get the sums of the other ranks' chunks as they become ready, beginning with the next rank. */
static int get_others(const struct tutti_shape *shape, struct tutti_build *build, uint32_t signal)
{
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t from = tutti_rank_after(shape->rank, i, shape->nranks);

        TUTTI_TRY(tutti_build_wait(build, (int32_t)from, signal));
        TUTTI_TRY(tutti_build_get(build, from, tutti_span(TUTTI_BUF_WINDOW, from, 1),
                                  tutti_span(TUTTI_BUF_OUTPUT, from, 1)));
    }
    return TUTTI_OK;
}

static int emit_one_shot(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);
    struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, 0, 1);

    (void)shape;
    tutti_build_window(build, 1);
    tutti_build_signals(build, 1);
    TUTTI_TRY(tutti_build_copy(build, input, slot));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    return tutti_build_gather_reduce(build, input, slot, tutti_span(TUTTI_BUF_OUTPUT, 0, 1),
                                     TUTTI_NO_SPAN, TUTTI_NO_SPAN);
}

static int emit_two_shot(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_chunks(build, shape->nranks);
    tutti_build_window(build, shape->nranks);
    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_algorithm_lay_out_others(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    TUTTI_TRY(sum_own_chunk(shape, build, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1),
                            tutti_span(TUTTI_BUF_WINDOW, shape->rank, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    return get_others(shape, build, 2);
}

static int emit_reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_window(build, shape->nranks);
    tutti_build_signals(build, 1);
    TUTTI_TRY(tutti_algorithm_lay_out_others(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    return sum_own_chunk(shape, build, tutti_span(TUTTI_BUF_OUTPUT, 0, 1), TUTTI_NO_SPAN);
}

/* Two-shot, but only the root collects the sums. */
static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    bool is_root = shape->rank == shape->root;
    enum tutti_buffer kept = is_root ? TUTTI_BUF_OUTPUT : TUTTI_BUF_WINDOW;

    tutti_build_chunks(build, shape->nranks);
    tutti_build_window(build, shape->nranks);
    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_algorithm_lay_out_others(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    TUTTI_TRY(sum_own_chunk(shape, build, tutti_span(kept, shape->rank, 1), TUTTI_NO_SPAN));
    TUTTI_TRY(tutti_build_signal(build));
    return is_root ? get_others(shape, build, 2) : TUTTI_OK;
}

/* The root's signal means that it has read the windows; the signals of the others mean that their
 * windows are ready. */
static int emit_reduce_one_shot(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);
    struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, 0, 1);

    tutti_build_window(build, 1);
    tutti_build_signals(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(tutti_build_copy(build, input, slot));
        return tutti_build_signal(build);
    }
    for (uint32_t i = 1; i < shape->nranks; i++)
        TUTTI_TRY(tutti_build_wait(build, (int32_t)tutti_rank_absolute(shape, i), 1));
    TUTTI_TRY(tutti_build_gather_reduce(build, input, slot, tutti_span(TUTTI_BUF_OUTPUT, 0, 1),
                                        TUTTI_NO_SPAN, TUTTI_NO_SPAN));
    return tutti_build_signal(build);
}

/* ---- costs --------------------------------------------------------------------------------- */

/* A rank reads the windows of all others. All ranks together: a copy to the window (each byte of a
 * copy is loaded and stored), p loads and one store. */
static void cost_one_shot(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) * block_bytes;

    tutti_cost_flat(shape, 1, others, others, block_bytes, ret_cost);
    ret_cost->memory = p * (2 + p + 1) * block_bytes;
}

/* As in cost_reduce, but each sum is stored twice, and every rank gets the sums of the others. */
static void cost_two_shot(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) / p * block_bytes;

    tutti_cost_flat(shape, 2, 2 * others, others, others, ret_cost);
    ret_cost->memory = (2 * (p - 1) + p + 2 + 2 * (p - 1)) * block_bytes;
}

/* As in cost_reduce, but each rank keeps its sum. A rank's input has p blocks. */
static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) * block_bytes;

    tutti_cost_flat(shape, 1, others, others, others, ret_cost);
    ret_cost->memory = p * (2 * (p - 1) + p + 1) * block_bytes;
}

/* Each rank copies (p - 1) / p of its vector to its window. All ranks together read the p vectors
 * once and store one sum. Then the root gets the sums of the other ranks. */
static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) / p * block_bytes;

    tutti_cost_flat(shape, 2, 2 * others, others, others, ret_cost);
    ret_cost->memory = 2 * p * others + (p + 1) * block_bytes + 2 * others;
}

/* All ranks but the root copy their vectors to their windows, and the root reads the windows. */
static void cost_reduce_one_shot(const struct tutti_shape *shape, double block_bytes,
                                 struct tutti_cost *ret_cost)
{
    double p = shape->nranks, others = (p - 1) * block_bytes;

    tutti_cost_flat(shape, 1, others, others, block_bytes, ret_cost);
    ret_cost->memory = 2 * others + (p + 1) * block_bytes;
}

const struct tutti_algorithm tutti_one_shot_allreduce = {
    .name = "one_shot",
    .collective = TUTTI_ALLREDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_one_shot,
    .cost = cost_one_shot,
};

const struct tutti_algorithm tutti_two_shot_allreduce = {
    .name = "two_shot",
    .collective = TUTTI_ALLREDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_two_shot,
    .cost = cost_two_shot,
};

const struct tutti_algorithm tutti_direct_reduce_scatter = {
    .name = "direct",
    .collective = TUTTI_REDUCE_SCATTER,
    .needs = TUTTI_NEEDS_WINDOW,
    .serves_vector = true,
    .emit = emit_reduce_scatter,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_direct_reduce = {
    .name = "direct",
    .collective = TUTTI_REDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_reduce,
    .cost = cost_reduce,
};

const struct tutti_algorithm tutti_direct_one_shot_reduce = {
    .name = "direct_one_shot",
    .collective = TUTTI_REDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .emit = emit_reduce_one_shot,
    .cost = cost_reduce_one_shot,
};
