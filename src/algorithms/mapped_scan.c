/* SPDX-License-Identifier: Apache-2.0
 * Scans on mapped user buffers. Each rank scans its own part of the vector: it gets this part of
 * all INPUTs, combines them in rank order, and puts what each rank needs into that rank's OUTPUT.
 *
 *                 INPUT 0   a b c          rank 0 scans a, 1 scans b, 2 scans c
 *                 INPUT 1   a b c
 *                 INPUT 2   a b c          inclusive: OUTPUT k gets the sum of INPUTs 0 to k
 *                           | | |          exclusive: OUTPUT k gets the sum of INPUTs 0 to k - 1
 *                 OUTPUT k  a b c
 *
 * SCRATCH has a chunk for each INPUT. Combining each with the one before it turns the inputs into
 * the sums. Each rank starts with the rank after it, so that no buffer is read or written by all
 * ranks at once.
 *
 * The first signal of a rank means that its buffers are ready, the second that it is done with the
 * buffers of the others. After it has waited for all second signals, a rank owns its buffers again.
 * In-place calls are safe, because only rank r reads and writes part r of any buffer, and it reads
 * all of them before it writes.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

static bool is_exclusive(const struct tutti_shape *shape)
{
    return shape->collective == TUTTI_EXCLUSIVE_SCAN;
}

/* Returns the number of INPUTs that some rank needs: in an exclusive scan all but the last. */
static uint32_t count_inputs(const struct tutti_shape *shape)
{
    return shape->nranks - (is_exclusive(shape) ? 1 : 0);
}

static struct tutti_span sum_of(uint32_t input)
{
    return tutti_span(TUTTI_BUF_SCRATCH, input, 1);
}

/* Get this rank's part of all INPUTs that are needed. */
static int get_parts(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span part = tutti_span(TUTTI_BUF_INPUT, shape->rank, 1);

    for (uint32_t i = 0; i < shape->nranks; i++) {
        uint32_t from = tutti_rank_after(shape->rank, i, shape->nranks);

        if (from >= count_inputs(shape))
            continue;
        TUTTI_TRY(from == shape->rank ? tutti_build_copy(build, part, sum_of(from))
                                      : tutti_build_get(build, from, part, sum_of(from)));
    }
    return TUTTI_OK;
}

/* Put the sums into this rank's part of all OUTPUTs. */
static int put_sums(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span part = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    for (uint32_t i = 0; i < shape->nranks; i++) {
        uint32_t to = tutti_rank_after(shape->rank, i, shape->nranks);
        struct tutti_span sum;

        if (!tutti_collective_has_output(shape->collective, to, shape->root))
            continue;
        sum = sum_of(is_exclusive(shape) ? to - 1 : to);
        TUTTI_TRY(to == shape->rank ? tutti_build_copy(build, sum, part)
                                    : tutti_build_put(build, to, sum, part));
    }
    return TUTTI_OK;
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_chunks(build, shape->nranks);
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, count_inputs(shape));
    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    TUTTI_TRY(get_parts(shape, build));
    for (uint32_t input = 1; input < count_inputs(shape); input++)
        TUTTI_TRY(tutti_build_reduce(build, sum_of(input - 1), sum_of(input)));
    TUTTI_TRY(put_sums(shape, build));
    TUTTI_TRY(tutti_build_signal(build));
    return tutti_build_wait(build, TUTTI_ALL_RANKS, 2);
}

/* A rank gets its part of the other inputs, and later puts its part of the other outputs. In an
 * exclusive scan rank 0 gets one part less, as it needs no last input, and the last rank puts one
 * less, as rank 0 has no output. With two ranks nobody then copies its own part twice. `memory`
 * counts the bytes that all ranks load and store: a part that is copied is loaded and stored, and a
 * part that is combined with another takes two loads and a store. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    double p = shape->nranks, inputs = count_inputs(shape), part_bytes = block_bytes / p;
    double copied = is_exclusive(shape) && shape->nranks == 2 ? 1 : 2;

    tutti_cost_flat(shape, 2, (p - 1 + inputs - 1) * part_bytes, (inputs - 1) * part_bytes,
                    copied * part_bytes, ret_cost);
    ret_cost->memory = (4 * inputs + 3 * (inputs - 1)) * block_bytes;
}

const struct tutti_algorithm tutti_mapped_scan = {
    .name = "mapped",
    .collective = TUTTI_SCAN,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .sums_in_stages = true,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_mapped_exclusive_scan = {
    .name = "mapped",
    .collective = TUTTI_EXCLUSIVE_SCAN,
    .needs = TUTTI_NEEDS_PEER_STORE,
    .sums_in_stages = true,
    .emit = emit,
    .cost = cost,
};
