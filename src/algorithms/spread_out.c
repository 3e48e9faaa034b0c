/* SPDX-License-Identifier: Apache-2.0
 * Spread-out all-to-all: each block goes straight from its sender to its receiver.
 *
 *   shift 1     0 -> 1 -> 2 -> 3 -> 4 -> 0     In shift i every rank sends to the rank i after
 *   shift 2     0 -> 2 -> 4 -> 1 -> 3 -> 0     it and receives from the rank i before it, so that
 *   shift 3     0 -> 3 -> 1 -> 4 -> 2 -> 0     no rank is the target of all others at once.
 *   shift 4     0 -> 4 -> 3 -> 2 -> 1 -> 0
 *
 * Each rank sends p - 1 messages, and the volume is the least. A rank sends to `window` ranks at a
 * time and receives from as many: each send waits for the send that is `window` shifts earlier, and
 * each receive likewise. A window of 1 is the pairwise exchange; with a window of p - 1 or more no
 * step waits.
 *
 * Source: the order is that of Thakur, Rabenseifner and Gropp, "Optimization of collective
 * communication operations in MPICH", 2005; the window bounds the messages in flight.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t n = shape->nranks, window = shape->options.value[TUTTI_WINDOW];

    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, shape->rank, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    for (uint32_t i = 1; i < n; i++) {
        uint32_t to = tutti_rank_after(shape->rank, i, n);
        uint32_t from = tutti_rank_before(shape->rank, i, n);

        build->queue = (uint16_t)(window < n - 1 ? 1 + (i - 1) % window : 0);
        TUTTI_TRY(tutti_build_send(build, to, tutti_span(TUTTI_BUF_INPUT, to, 1)));
        TUTTI_TRY(tutti_build_recv(build, from, tutti_span(TUTTI_BUF_OUTPUT, from, 1)));
    }
    return TUTTI_OK;
}

/* If the window does not limit, traffic that leaves the node and traffic within the node use
 * different ports at the same time. If the window limits, a shift lasts as long as its most distant
 * message. */
static void cost_alltoall(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    uint32_t others = shape->nranks - 1, window = shape->options.value[TUTTI_WINDOW];
    enum tutti_level outermost = tutti_level_of_shape(shape);
    uint32_t count[TUTTI_LEVEL_COUNT] = {0};
    double rounds = ceil((double)others / window);

    count[outermost] = others;
    if (window >= others)
        tutti_level_count_others(shape, 0, count);
    *ret_cost = (struct tutti_cost){.copied = block_bytes};
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        ret_cost->level[level].posted = count[level];
        ret_cost->level[level].bytes = count[level] * block_bytes;
    }
    ret_cost->level[outermost].rounds = rounds;
    ret_cost->level[outermost].posted -= rounds;
}

const struct tutti_algorithm tutti_spread_out_alltoall = {
    .name = "spread_out",
    .collective = TUTTI_ALLTOALL,
    .serves_vector = true,
    .is_lean = true,
    .options = {[TUTTI_WINDOW] = {.least = 1, .most = 1024, .usual = 16}},
    .emit = emit_alltoall,
    .cost = cost_alltoall,
};
