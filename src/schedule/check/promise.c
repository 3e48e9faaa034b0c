/* SPDX-License-Identifier: Apache-2.0
 * Checks the result: whether each output holds what the collective promises, and in which orders
 * the elements are summed.
 */
#include "schedule/check/flow.h"

#include "base/result.h"

#include <stdlib.h>

#define NONE TUTTI_CHECK_NONE

/* Find the rank and the input chunk that output chunk c of `rank` must hold. Rank NONE: the sum
 * over the sources of `rank`. */
static void find_promise(const struct tutti_check *check, uint32_t rank, uint32_t c,
                         uint32_t *ret_rank, uint32_t *ret_chunk)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    uint32_t k = schedule->chunks_per_block;

    *ret_chunk = (tutti_input_is_per_rank(schedule->collective) ? rank * k : 0) + c % k;
    *ret_rank = tutti_output_is_per_rank(schedule->collective) ? c / k : NONE;
    if (tutti_collective_sources(schedule->collective) == TUTTI_FROM_ROOT)
        *ret_rank = schedule->root;
}

static struct tutti_span output_of(const struct tutti_check_flow *flow, uint32_t rank)
{
    const struct tutti_schedule *schedule = flow->check->schedules[rank];

    return (struct tutti_span){.buffer = TUTTI_BUF_OUTPUT,
                               .count = tutti_buffer_chunks(schedule, rank, TUTTI_BUF_OUTPUT)};
}

/* Check that a piece is the sum over the sources of `rank`. */
static int check_sum(struct tutti_check_flow *flow, uint32_t rank, uint32_t c,
                     const struct tutti_check_piece *piece)
{
    struct tutti_check *check = flow->check;
    uint32_t count = tutti_collective_summands(check->schedules[rank]->collective, rank,
                                               check->nranks);
    uint32_t missing;

    if (tutti_check_is_sum(flow->exprs, piece->value, count))
        return TUTTI_OK;
    missing = tutti_check_missing(flow->exprs, piece->value, count);
    if (missing != NONE)
        return tutti_check_fail(check, rank, NONE, "%s: output %u lacks rank %u",
                                tutti_check_form(flow), c, missing);
    return tutti_check_fail(check, rank, NONE,
                             "%s: output %u has %u contributions, not one of each of the %u ranks",
                             tutti_check_form(flow), c,
                             tutti_check_contributors(flow->exprs, piece->value), count);
}

/* Check a piece of the output of `rank`, from chunk c on. */
static int check_piece(struct tutti_check_flow *flow, uint32_t rank, uint32_t c,
                       const struct tutti_check_piece *piece)
{
    struct tutti_check *check = flow->check;
    uint32_t from = NONE, chunk;

    if (piece->value == TUTTI_CHECK_UNDEFINED)
        return tutti_check_fail(check, rank, NONE, "%s: output %u is never written",
                                tutti_check_form(flow), c);
    for (uint32_t i = 0; i < piece->count; i++) {
        find_promise(check, rank, c + i, &from, &chunk);
        if (piece->chunk + i != chunk)
            return tutti_check_fail(check, rank, NONE, "%s: output %u holds chunk %u, not %u",
                                    tutti_check_form(flow), c + i, piece->chunk + i, chunk);
        if (from != NONE && piece->value != tutti_check_leaf(from))
            return tutti_check_fail(check, rank, NONE,
                                     "%s: output %u holds rank %u's chunk, not %u's",
                                     tutti_check_form(flow), c + i,
                                     tutti_check_lowest(flow->exprs, piece->value), from);
    }
    return from == NONE ? check_sum(flow, rank, c, piece) : TUTTI_OK;
}

/* Check that a rank's outputs are the same expressions as those of rank 0. */
static int check_agreement(struct tutti_check_flow *flow, uint32_t rank)
{
    struct tutti_span output = output_of(flow, rank);
    struct tutti_check_piece own, first;
    uint32_t count;

    for (uint32_t c = 0; c < output.count; c += count) {
        own = tutti_check_piece(flow, rank, output, c);
        first = tutti_check_piece(flow, 0, output, c);
        /* Both pieces are of the right chunk: the check of the output has compared that. */
        if (!tutti_check_is_same(flow->exprs, own.value, first.value))
            return tutti_check_fail(flow->check, rank, NONE,
                                    "%s: output %u is bracketed differently from rank 0's",
                                    tutti_check_form(flow), c);
        count = own.count < first.count ? own.count : first.count;
    }
    return TUTTI_OK;
}

int tutti_check_promise(struct tutti_check_flow *flow)
{
    struct tutti_check *check = flow->check;

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        struct tutti_span output = output_of(flow, rank);
        struct tutti_check_piece piece;

        for (uint32_t c = 0; c < output.count; c += piece.count) {
            piece = tutti_check_piece(flow, rank, output, c);
            TUTTI_TRY(check_piece(flow, rank, c, &piece));
        }
        if (tutti_collective_gives_one_result(check->schedules[rank]->collective))
            TUTTI_TRY(check_agreement(flow, rank));
    }
    return TUTTI_OK;
}

/* ---- orders --------------------------------------------------------------------- */

/* The chunks from number `at` on, up to those of the next entry, are summed in one order. */
struct order_range {
    uint64_t order; /* hash of the order */
    uint64_t at;
};

struct orders {
    struct order_range *ranges; /* room for an entry per output chunk */
    size_t count;
    uint64_t nchunks; /* chunks of the outputs so far */
};

/* Append the orders in which the output of `rank` is summed. */
static void add_orders(const struct tutti_check_flow *flow, uint32_t rank, struct orders *orders)
{
    struct tutti_span output = output_of(flow, rank);
    struct tutti_check_piece piece;

    for (uint32_t c = 0; c < output.count; c += piece.count) {
        uint64_t order;

        piece = tutti_check_piece(flow, rank, output, c);
        order = tutti_check_order_of(flow->exprs, piece.value);
        if (orders->count == 0 || orders->ranges[orders->count - 1].order != order)
            orders->ranges[orders->count++] = (struct order_range){order, orders->nchunks + c};
    }
    orders->nchunks += output.count;
}

static int compare_orders(const void *a, const void *b)
{
    const struct order_range *left = a, *right = b;

    return left->order < right->order ? -1 : left->order > right->order;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Hash the orders and where each begins. The beginning is hashed as a fraction of the whole, so
 * that the size of chunks does not matter. */
static uint64_t hash_orders(const struct orders *orders)
{
    uint64_t hash = orders->ranges[0].order;

    for (size_t i = 1; i < orders->count; i++) {
        uint64_t at = orders->ranges[i].at, by = common_divisor(at, orders->nchunks);

        hash = tutti_check_mix(hash ^ at / by);
        hash = tutti_check_mix(hash ^ orders->nchunks / by);
        hash = tutti_check_mix(hash ^ orders->ranges[i].order);
    }
    return hash;
}

int tutti_check_orders(struct tutti_check_flow *flow)
{
    struct tutti_check *check = flow->check;
    const struct tutti_schedule *schedule = check->schedules[0];
    bool is_scattered = tutti_input_is_per_rank(schedule->collective);
    bool has_root = tutti_collective_has_root(schedule->collective);
    /* All ranks of an all-reduce agree, so one is enough. If the ranks combine different numbers of
     * inputs, the last rank combines the most. */
    uint32_t chosen = has_root ? schedule->root : check->nranks - 1;
    struct orders orders = {.count = 0};

    if (!tutti_collective_reduces(schedule->collective))
        return TUTTI_OK;
    TUTTI_TRY(tutti_check_alloc(&orders.ranges,
                                (size_t)schedule->chunks_per_block *
                                    (is_scattered ? check->nranks : 1),
                                sizeof(*orders.ranges), 0));
    /* In a reduce-scatter the blocks of all ranks follow one another. */
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        if (is_scattered || rank == chosen)
            add_orders(flow, rank, &orders);

    if (orders.count > 0)
        check->report->order_hash = hash_orders(&orders);
    qsort(orders.ranges, orders.count, sizeof(*orders.ranges), compare_orders);
    for (size_t i = 0; i < orders.count; i++)
        if (i == 0 || orders.ranges[i].order != orders.ranges[i - 1].order)
            check->report->orders++;
    free(orders.ranges);
    return TUTTI_OK;
}
