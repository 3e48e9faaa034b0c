/* SPDX-License-Identifier: Apache-2.0
 * Linear: the root exchanges with every other rank directly.
 *
 *        1                One round with p - 1 messages at the root. It suits few ranks, and large
 *        ^                gathers and scatters, in which the root's link is the limit anyway.
 *   3 <- 0 -> 2
 *
 * The root serves the ranks in order, beginning with the one after it.
 *
 * A scan has no root: each rank sends its input to all ranks after it, and combines the inputs of
 * the ranks before it in their order, and at last its own. It serves the last rank first, so that
 * all messages take p - 1 rounds.
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
        TUTTI_TRY(tutti_build_send(build, tutti_rank_absolute(shape, place), input));
    return tutti_build_copy(build, input, output);
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (shape->rank != shape->root)
        return tutti_build_send(build, shape->root, sum);
    for (uint32_t place = 1; place < shape->nranks; place++) {
        TUTTI_TRY(tutti_build_recv_reduce(build, tutti_rank_absolute(shape, place), sum, output));
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
        uint32_t from = tutti_rank_absolute(shape, place);

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
        uint32_t to = tutti_rank_absolute(shape, place);

        TUTTI_TRY(tutti_build_send(build, to, tutti_span(TUTTI_BUF_INPUT, to, 1)));
    }
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->root, 1), own);
}

static int emit_scan(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1), sum = own;
    struct tutti_span scratch = tutti_span(TUTTI_BUF_SCRATCH, 0, 1);
    bool is_exclusive = shape->collective == TUTTI_EXCLUSIVE_SCAN;

    if (shape->rank > 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    for (uint32_t to = shape->nranks - 1; to > shape->rank; to--)
        TUTTI_TRY(tutti_build_send(build, to, own));
    for (uint32_t from = 0; from < shape->rank; from++) {
        if (from == 0)
            TUTTI_TRY(tutti_build_recv(build, from, scratch));
        else
            TUTTI_TRY(tutti_build_recv_reduce(build, from, scratch, scratch));
        sum = scratch;
    }
    if (shape->rank > 0 && !is_exclusive)
        TUTTI_TRY(tutti_build_reduce(build, own, scratch));
    if (!tutti_collective_has_output(shape->collective, shape->rank, shape->root))
        return TUTTI_OK;
    return tutti_build_copy(build, sum, tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

/* The longest path is at one rank: one message per other rank, each of one block. */
static void add_others(const struct tutti_shape *shape, uint32_t rank, double block_bytes,
                       struct tutti_cost *cost)
{
    uint32_t others[TUTTI_LEVEL_COUNT];

    tutti_level_count_others(shape, rank, others);
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        cost->level[level].rounds = others[level];
        cost->level[level].bytes = others[level] * block_bytes;
    }
}

/* The cost of broadcast, of gather and of scatter. */
static void cost_copies(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    *ret_cost = (struct tutti_cost){.copied = block_bytes, .is_alone = true};
    add_others(shape, shape->root, block_bytes, ret_cost);
}

static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    *ret_cost =
        (struct tutti_cost){.reduced = (shape->nranks - 1) * block_bytes, .is_alone = true};
    add_others(shape, shape->root, block_bytes, ret_cost);
}

/* The last rank receives from all others, and the first one sends as much. */
static void cost_scan(const struct tutti_shape *shape, double block_bytes,
                      struct tutti_cost *ret_cost)
{
    bool is_exclusive = shape->collective == TUTTI_EXCLUSIVE_SCAN;

    *ret_cost = (struct tutti_cost){
        .reduced = (shape->nranks - (is_exclusive ? 2 : 1)) * block_bytes, .copied = block_bytes};
    add_others(shape, shape->nranks - 1, block_bytes, ret_cost);
}

const struct tutti_algorithm tutti_linear_broadcast = {
    .name = "linear",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .emit = emit_broadcast,
    .cost = cost_copies,
};

const struct tutti_algorithm tutti_linear_reduce = {
    .name = "linear",
    .collective = TUTTI_REDUCE,
    .is_lean = true,
    .emit = emit_reduce,
    .cost = cost_reduce,
};

const struct tutti_algorithm tutti_linear_gather = {
    .name = "linear",
    .collective = TUTTI_GATHER,
    .serves_vector = true,
    .is_lean = true,
    .emit = emit_gather,
    .cost = cost_copies,
};

const struct tutti_algorithm tutti_linear_scatter = {
    .name = "linear",
    .collective = TUTTI_SCATTER,
    .serves_vector = true,
    .is_lean = true,
    .emit = emit_scatter,
    .cost = cost_copies,
};

const struct tutti_algorithm tutti_linear_scan = {
    .name = "linear",
    .collective = TUTTI_SCAN,
    .emit = emit_scan,
    .cost = cost_scan,
};

const struct tutti_algorithm tutti_linear_exclusive_scan = {
    .name = "linear",
    .collective = TUTTI_EXCLUSIVE_SCAN,
    .emit = emit_scan,
    .cost = cost_scan,
};
