/* SPDX-License-Identifier: Apache-2.0
 * Following values: the steps are run once, on symbols, in the logged order.
 * Where nothing races, every timing moves the same values. At the end each
 * output chunk must hold what the collective promises.
 */
#include "schedule/check_model.h"

#include "base/result.h"

#include <stdlib.h>

#define NONE TUTTI_CHECK_NONE
#define UNDEFINED TUTTI_CHECK_UNDEFINED

struct flow {
    struct check *check;
    struct check_memory memory;
    struct check_exprs *exprs;
    bool is_overlaid;
    uint32_t *values;     /* per cell */
    uint32_t *sent_first; /* per step: where in `sent` a fused step keeps what it sends on */
    uint32_t *sent;
};

static const char *form(const struct flow *flow)
{
    return flow->is_overlaid ? "in place" : "out of place";
}

static uint32_t *cell_of(struct flow *flow, uint32_t owner, struct tutti_span span, uint32_t i)
{
    return &flow->values[tutti_check_cell(&flow->memory, 0, owner, span.buffer, span.first + i)];
}

/* Read chunk i of a span, for step `at`. */
static int load(struct flow *flow, uint32_t at, uint32_t owner, struct tutti_span span, uint32_t i,
                uint32_t *ret_value)
{
    struct check *check = flow->check;

    *ret_value = *cell_of(flow, owner, span, i);
    if (*ret_value != UNDEFINED)
        return TUTTI_OK;
    return tutti_check_found(check, check->step_rank[at], at,
                             "%s: reads %s %u of rank %u, which nothing has written", form(flow),
                             tutti_buffer_name((enum tutti_buffer)span.buffer), span.first + i,
                             owner);
}

static int store(struct flow *flow, uint32_t at, uint32_t owner, struct tutti_span span, uint32_t i,
                 uint32_t value)
{
    struct check *check = flow->check;
    uint32_t class = tutti_check_class(check, owner, span.buffer, span.first + i);

    *cell_of(flow, owner, span, i) = value;
    if (class == NONE || value == TUTTI_CHECK_TOKEN ||
        class == tutti_check_class(check, tutti_check_lowest(flow->exprs, value), TUTTI_BUF_INPUT,
                                   tutti_check_chunk_of(flow->exprs, value)))
        return TUTTI_OK;
    return tutti_check_found(check, check->step_rank[at], at,
                             "%s: stores chunk %u of rank %u into %s %u of rank %u, which may "
                             "differ in size",
                             form(flow), tutti_check_chunk_of(flow->exprs, value),
                             tutti_check_lowest(flow->exprs, value),
                             tutti_buffer_name((enum tutti_buffer)span.buffer), span.first + i,
                             owner);
}

static int combine(struct flow *flow, uint32_t at, uint32_t a, uint32_t b, bool is_ordered,
                   uint32_t *ret_value)
{
    struct check *check = flow->check;
    uint32_t rank = check->step_rank[at], common;
    uint32_t chunk_a = tutti_check_chunk_of(flow->exprs, a);
    uint32_t chunk_b = tutti_check_chunk_of(flow->exprs, b);

    if (chunk_a != chunk_b)
        return tutti_check_found(check, rank, at, "%s: combines chunk %u with chunk %u", form(flow),
                                 chunk_a, chunk_b);
    common = tutti_check_common(flow->exprs, a, b);
    if (common != NONE)
        return tutti_check_found(check, rank, at, "%s: counts rank %u twice in chunk %u",
                                 form(flow), common, chunk_a);
    return tutti_check_combine(flow->exprs, a, b, is_ordered, ret_value);
}

/* Chunk i of the message that the half `send` sends. */
static int load_sent(struct flow *flow, uint32_t send, uint32_t i, uint32_t *ret_value)
{
    uint32_t at = send / 2;
    const struct tutti_step *step = check_step(flow->check, at);

    if (!check_is_fused(step))
        return load(flow, at, flow->check->step_rank[at], step->src, i, ret_value);
    *ret_value = flow->sent[flow->sent_first[at] + i];
    return TUTTI_OK;
}

static int run_receive(struct flow *flow, uint32_t half)
{
    struct check *check = flow->check;
    uint32_t at = half / 2, rank = check->step_rank[at];
    const struct tutti_step *step = check_step(check, at);
    bool copies = step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_COPY_SEND;
    uint32_t count = copies ? step->dst.count : step->src.count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t value, own;

        TUTTI_TRY(load_sent(flow, check->mate[half], i, &value));
        if (!copies) {
            TUTTI_TRY(load(flow, at, rank, step->src, i, &own));
            TUTTI_TRY(combine(flow, at, own, value, false, &value));
        }
        if (check_is_fused(step))
            flow->sent[flow->sent_first[at] + i] = value;
        if (step->kind != TUTTI_STEP_RECV_REDUCE_SEND)
            TUTTI_TRY(store(flow, at, rank, step->dst, i, value));
    }
    return TUTTI_OK;
}

static int run_gather_reduce(struct flow *flow, uint32_t at)
{
    struct check *check = flow->check;
    const struct tutti_step *step = check_step(check, at);
    uint32_t rank = check->step_rank[at];

    for (uint32_t i = 0; i < step->dst.count; i++) {
        uint32_t sum = UNDEFINED, value;

        for (uint32_t other = 0; other < check->nranks; other++) {
            TUTTI_TRY(load(flow, at, other, other == rank ? step->src : step->remote, i, &value));
            /* Of two, either may come first; more are added up from the left and rounded once. */
            if (other == 0)
                sum = value;
            else
                TUTTI_TRY(combine(flow, at, sum, value, check->nranks > 2, &sum));
        }
        TUTTI_TRY(store(flow, at, rank, step->dst, i, sum));
        if (step->also.buffer != TUTTI_BUF_NONE)
            TUTTI_TRY(store(flow, at, rank, step->also, i, sum));
        for (uint32_t other = 0; other < check->nranks && step->to == TUTTI_ALL_RANKS; other++)
            if (other != rank && step->remote_dst.buffer != TUTTI_BUF_NONE)
                TUTTI_TRY(store(flow, at, other, step->remote_dst, i, sum));
    }
    return TUTTI_OK;
}

static int run_copy(struct flow *flow, uint32_t at, uint32_t from, struct tutti_span src,
                    uint32_t to, struct tutti_span dst)
{
    for (uint32_t i = 0; i < dst.count; i++) {
        uint32_t value;

        TUTTI_TRY(load(flow, at, from, src, i, &value));
        TUTTI_TRY(store(flow, at, to, dst, i, value));
    }
    return TUTTI_OK;
}

static int run_reduce(struct flow *flow, uint32_t at)
{
    const struct tutti_step *step = check_step(flow->check, at);
    uint32_t rank = flow->check->step_rank[at];

    for (uint32_t i = 0; i < step->dst.count; i++) {
        uint32_t a, b;

        TUTTI_TRY(load(flow, at, rank, step->dst, i, &a));
        TUTTI_TRY(load(flow, at, rank, step->src, i, &b));
        TUTTI_TRY(combine(flow, at, a, b, false, &a));
        TUTTI_TRY(store(flow, at, rank, step->dst, i, a));
    }
    return TUTTI_OK;
}

static int run_half(struct flow *flow, uint32_t half)
{
    uint32_t at = half / 2, rank = flow->check->step_rank[at];
    const struct tutti_step *step = check_step(flow->check, at);

    if ((half & 1) == 0 && tutti_access_receives(step))
        return run_receive(flow, half);
    switch (step->kind) {
    case TUTTI_STEP_COPY:
        return run_copy(flow, at, rank, step->src, rank, step->dst);
    case TUTTI_STEP_PUT:
        return run_copy(flow, at, rank, step->src, (uint32_t)step->to, step->remote);
    case TUTTI_STEP_GET:
        return run_copy(flow, at, (uint32_t)step->from, step->remote, rank, step->dst);
    case TUTTI_STEP_REDUCE:
        return run_reduce(flow, at);
    case TUTTI_STEP_GATHER_REDUCE:
        return run_gather_reduce(flow, at);
    default:
        return TUTTI_OK; /* sending is the receiver's business */
    }
}

/* ---- what is promised --------------------------------------------------------- */

/* Output chunk c of `rank` holds whose input chunk? Rank NONE: the sum of all. */
static void find_promise(const struct check *check, uint32_t rank, uint32_t c, uint32_t *ret_rank,
                         uint32_t *ret_chunk)
{
    const struct tutti_schedule *schedule = check->schedules[rank];
    uint32_t k = schedule->chunks_per_block;

    *ret_rank = NONE;
    *ret_chunk = c;
    switch (schedule->collective) {
    case TUTTI_REDUCE_SCATTER:
        *ret_chunk = rank * k + c;
        return;
    case TUTTI_BROADCAST:
        *ret_rank = schedule->root;
        return;
    case TUTTI_ALLGATHER:
    case TUTTI_GATHER:
        *ret_rank = c / k;
        *ret_chunk = c % k;
        return;
    case TUTTI_ALLTOALL:
        *ret_rank = c / k;
        *ret_chunk = rank * k + c % k;
        return;
    case TUTTI_SCATTER:
        *ret_rank = schedule->root;
        *ret_chunk = rank * k + c;
        return;
    default:
        return;
    }
}

static int check_output(struct flow *flow, uint32_t rank, uint32_t c)
{
    struct check *check = flow->check;
    struct tutti_span span = {.buffer = TUTTI_BUF_OUTPUT, .first = c, .count = 1};
    uint32_t value = *cell_of(flow, rank, span, 0), from, chunk, missing;

    find_promise(check, rank, c, &from, &chunk);
    if (value == UNDEFINED)
        return tutti_check_found(check, rank, NONE, "%s: output %u is never written", form(flow),
                                 c);
    if (tutti_check_chunk_of(flow->exprs, value) != chunk)
        return tutti_check_found(check, rank, NONE, "%s: output %u holds chunk %u, not %u",
                                 form(flow), c, tutti_check_chunk_of(flow->exprs, value), chunk);
    if (from != NONE && value != tutti_check_leaf(flow->exprs, from, chunk))
        return tutti_check_found(check, rank, NONE, "%s: output %u holds rank %u's chunk, not %u's",
                                 form(flow), c, tutti_check_lowest(flow->exprs, value), from);
    missing = tutti_check_missing(flow->exprs, value);
    if (from == NONE && missing < check->nranks)
        return tutti_check_found(check, rank, NONE, "%s: output %u lacks rank %u", form(flow), c,
                                 missing);
    return TUTTI_OK;
}

static int check_outputs(struct flow *flow)
{
    struct check *check = flow->check;
    const struct tutti_schedule *const *schedules = check->schedules;

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        uint32_t count = tutti_buffer_chunks(schedules[rank], rank, TUTTI_BUF_OUTPUT);

        for (uint32_t c = 0; c < count; c++) {
            struct tutti_span span = {.buffer = TUTTI_BUF_OUTPUT, .first = c, .count = 1};

            TUTTI_TRY(check_output(flow, rank, c));
            if (schedules[0]->collective == TUTTI_ALLREDUCE &&
                *cell_of(flow, rank, span, 0) != *cell_of(flow, 0, span, 0))
                return tutti_check_found(check, rank, NONE,
                                         "%s: output %u is bracketed otherwise than at rank 0",
                                         form(flow), c);
        }
    }
    return TUTTI_OK;
}

/* ---- the run -------------------------------------------------------------------- */

static int prepare(struct flow *flow)
{
    struct check *check = flow->check;
    const struct tutti_schedule *schedule = check->schedules[0];
    uint32_t chunks = tutti_input_blocks((enum tutti_collective)schedule->collective,
                                         check->nranks) * schedule->chunks_per_block;
    uint32_t total = 0;

    TUTTI_TRY(tutti_check_exprs_create(check->nranks, chunks, &flow->exprs));
    TUTTI_TRY(tutti_check_memory_init(&flow->memory, check, flow->is_overlaid));
    TUTTI_TRY(tutti_check_alloc(&flow->values, flow->memory.count, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&flow->sent_first, check->nsteps, sizeof(uint32_t), 0));
    for (uint32_t at = 0; at < check->nsteps; at++) {
        const struct tutti_step *step = check_step(check, at);

        flow->sent_first[at] = total;
        if (check_is_fused(step))
            total += tutti_check_sized_span(check, at).count;
    }
    TUTTI_TRY(tutti_check_alloc(&flow->sent, total, sizeof(uint32_t), 0));

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        struct tutti_span input = {.buffer = TUTTI_BUF_INPUT};
        struct tutti_span scratch = {.buffer = TUTTI_BUF_SCRATCH};

        input.count = tutti_buffer_chunks(check->schedules[rank], rank, TUTTI_BUF_INPUT);
        for (uint32_t c = 0; c < input.count; c++)
            *cell_of(flow, rank, input, c) = tutti_check_leaf(flow->exprs, rank, c);
        if (schedule->collective == TUTTI_BARRIER && check->schedules[rank]->scratch_chunks > 0)
            *cell_of(flow, rank, scratch, 0) = TUTTI_CHECK_TOKEN;
    }
    return TUTTI_OK;
}

static int run_flow(struct flow *flow)
{
    struct check *check = flow->check;

    TUTTI_TRY(prepare(flow));
    for (uint32_t i = 0; i < check->nlog; i++) {
        uint32_t node = check->log[i];

        if (node < 4 * check->nsteps && (node & 1)) /* ends of the first run */
            TUTTI_TRY(run_half(flow, node / 2));
    }
    return check_outputs(flow);
}

int tutti_check_flow(struct check *check, bool is_overlaid)
{
    struct flow flow = {.check = check, .is_overlaid = is_overlaid};
    int rc = run_flow(&flow);

    tutti_check_memory_fini(&flow.memory);
    tutti_check_exprs_destroy(flow.exprs);
    free(flow.values);
    free(flow.sent_first);
    free(flow.sent);
    return rc;
}
