/* SPDX-License-Identifier: Apache-2.0
 * Follows values: the steps are run once, on symbols, in the logged order. Without races, every
 * timing moves the same values. At the end each output chunk must hold what the collective promises
 * (promise.c).
 */
#include "schedule/check/flow.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

#define UNDEFINED TUTTI_CHECK_UNDEFINED

/* ---- memory ------------------------------------------------------------------- */

struct tutti_check_piece tutti_check_piece(const struct tutti_check_flow *flow, uint32_t owner,
                                           struct tutti_span span, uint32_t i)
{
    uint32_t cell = tutti_check_cell(&flow->memory, 0, owner, span.buffer, span.first + i);
    uint32_t stretch = tutti_check_stretch(&flow->memory, cell);
    uint32_t left = tutti_check_stretch_end(&flow->memory, cell) - cell;
    struct tutti_check_content content = flow->contents[stretch];

    return (struct tutti_check_piece){.value = content.value,
                                      .chunk = content.chunk + (cell - stretch),
                                      .count = left < span.count - i ? left : span.count - i};
}

/* Read the contents from chunk i of a span on, for step `at`. Refuse undefined contents. */
static int load(struct tutti_check_flow *flow, uint32_t at, uint32_t owner, struct tutti_span span,
                uint32_t i, struct tutti_check_piece *ret_piece)
{
    struct tutti_check *check = flow->check;

    *ret_piece = tutti_check_piece(flow, owner, span, i);
    if (ret_piece->value != UNDEFINED)
        return TUTTI_OK;
    return tutti_check_fail(check, check->step_rank[at], at,
                             "%s: reads %s %u of rank %u, which nothing has written",
                             tutti_check_form(flow),
                             tutti_buffer_name((enum tutti_buffer)span.buffer), span.first + i,
                             owner);
}

/* Begin a stretch at `cell`, with the contents that the cell has. */
static void split(struct tutti_check_flow *flow, uint32_t cell)
{
    uint32_t stretch = tutti_check_stretch(&flow->memory, cell);

    if (tutti_check_split(&flow->memory, cell))
        flow->contents[cell] = (struct tutti_check_content){
            .value = flow->contents[stretch].value,
            .chunk = flow->contents[stretch].chunk + (cell - stretch),
        };
}

/* Store a piece from chunk i of a span on. */
static void set(struct tutti_check_flow *flow, uint32_t owner, struct tutti_span span, uint32_t i,
                const struct tutti_check_piece *piece)
{
    uint32_t cell = tutti_check_cell(&flow->memory, 0, owner, span.buffer, span.first + i);

    split(flow, cell);
    if (cell + piece->count < flow->memory.count)
        split(flow, cell + piece->count);
    tutti_check_join(&flow->memory, cell, piece->count);
    flow->contents[cell] =
        (struct tutti_check_content){.value = piece->value, .chunk = piece->chunk};
}

/* The same for step `at`. Refuse a piece whose chunks may be larger or smaller than the span's. */
static int store(struct tutti_check_flow *flow, uint32_t at, uint32_t owner, struct tutti_span span,
                 uint32_t i, const struct tutti_check_piece *piece)
{
    struct tutti_check *check = flow->check;
    struct tutti_span source = {.buffer = TUTTI_BUF_INPUT, .first = piece->chunk};
    uint32_t from, wrong;

    set(flow, owner, span, i, piece);
    if (piece->value == TUTTI_CHECK_TOKEN)
        return TUTTI_OK;
    from = tutti_check_lowest(flow->exprs, piece->value);
    span.first += i;
    if (tutti_check_class(check, owner, span.buffer, span.first) == TUTTI_CHECK_NONE)
        return TUTTI_OK;
    wrong = tutti_check_classes_differ(check, owner, &span, from, &source, piece->count, false);
    if (wrong == piece->count)
        return TUTTI_OK;
    return tutti_check_fail(check, check->step_rank[at], at,
                            "%s: stores chunk %u of rank %u into %s %u of rank %u, which may "
                            "differ in size",
                            tutti_check_form(flow), piece->chunk + wrong, from,
                            tutti_buffer_name((enum tutti_buffer)span.buffer), span.first + wrong,
                            owner);
}

/* a = a op b, for as many chunks as both have. */
static int combine(struct tutti_check_flow *flow, uint32_t at, struct tutti_check_piece *a,
                   const struct tutti_check_piece *b, bool is_ordered)
{
    struct tutti_check *check = flow->check;
    uint32_t rank = check->step_rank[at], common;

    a->count = a->count < b->count ? a->count : b->count;
    if (a->chunk != b->chunk)
        return tutti_check_fail(check, rank, at, "%s: combines chunk %u with chunk %u",
                                tutti_check_form(flow), a->chunk, b->chunk);
    common = tutti_check_common(flow->exprs, a->value, b->value);
    if (common != TUTTI_CHECK_NONE)
        return tutti_check_fail(check, rank, at, "%s: counts rank %u twice in chunk %u",
                                tutti_check_form(flow), common, a->chunk);
    if (tutti_check_contributors(flow->exprs, a->value) +
            tutti_check_contributors(flow->exprs, b->value) > check->nranks)
        return tutti_check_fail(check, rank, at, "%s: counts some rank twice in chunk %u",
                                tutti_check_form(flow), a->chunk);
    return tutti_check_combine(flow->exprs, a->value, b->value, is_ordered, &a->value);
}

/* ---- steps -------------------------------------------------------------------- */

/* Append a piece to the message that step `at` sends. */
static int put_in_message(struct tutti_check_flow *flow, uint32_t at,
                          const struct tutti_check_piece *piece)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(flow->pieces, flow->npieces, flow->pieces_capacity, "pieces"));
    if (flow->message_count[at]++ == 0)
        flow->message_first[at] = flow->npieces;
    flow->pieces[flow->npieces++] = *piece;
    return TUTTI_OK;
}

static int run_send(struct tutti_check_flow *flow, uint32_t at)
{
    uint32_t rank = flow->check->step_rank[at];
    const struct tutti_step *step = tutti_check_step(flow->check, at);
    struct tutti_check_piece piece;

    for (uint32_t i = 0; i < step->src.count; i += piece.count) {
        TUTTI_TRY(load(flow, at, rank, step->src, i, &piece));
        TUTTI_TRY(put_in_message(flow, at, &piece));
    }
    return TUTTI_OK;
}

/* Receive the beginning of a message into chunk i of a receiving step and the chunks after it: as
 * much as combines with one value there. *ret_piece is the result. */
static int receive_piece(struct tutti_check_flow *flow, uint32_t at, uint32_t i,
                         const struct tutti_check_piece *message,
                         struct tutti_check_piece *ret_piece)
{
    uint32_t rank = flow->check->step_rank[at];
    const struct tutti_step *step = tutti_check_step(flow->check, at);
    struct tutti_check_piece piece = *message;

    if (step->kind != TUTTI_STEP_RECV && step->kind != TUTTI_STEP_RECV_COPY_SEND) {
        TUTTI_TRY(load(flow, at, rank, step->src, i, &piece));
        TUTTI_TRY(combine(flow, at, &piece, message, false));
    }
    if (tutti_step_is_fused(step))
        TUTTI_TRY(put_in_message(flow, at, &piece));
    if (step->kind != TUTTI_STEP_RECV_REDUCE_SEND)
        TUTTI_TRY(store(flow, at, rank, step->dst, i, &piece));
    *ret_piece = piece;
    return TUTTI_OK;
}

static int run_receive(struct tutti_check_flow *flow, uint32_t half)
{
    uint32_t from = flow->check->mate[half] / 2, i = 0;

    for (uint32_t m = 0; m < flow->message_count[from]; m++) {
        struct tutti_check_piece message = flow->pieces[flow->message_first[from] + m], piece;

        while (message.count > 0) {
            TUTTI_TRY(receive_piece(flow, half / 2, i, &message, &piece));
            i += piece.count;
            message.chunk += piece.count;
            message.count -= piece.count;
        }
    }
    return TUTTI_OK;
}

static int run_gather_reduce(struct tutti_check_flow *flow, uint32_t at)
{
    struct tutti_check *check = flow->check;
    const struct tutti_step *step = tutti_check_step(check, at);
    uint32_t rank = check->step_rank[at];
    struct tutti_step_ranks among = tutti_step_ranks(check->schedules[rank], step);
    struct tutti_step_ranks to = tutti_step_peers(check->schedules[rank], step, step->to);
    struct tutti_check_piece sum, next;

    for (uint32_t i = 0; i < step->src.count; i += sum.count) {
        for (uint32_t m = 0; m < among.count; m++) {
            uint32_t other = tutti_step_ranks_at(among, m);
            struct tutti_check_piece *into = m == 0 ? &sum : &next;

            TUTTI_TRY(load(flow, at, other, other == rank ? step->src : step->remote, i, into));
            /* The sum of two operands does not depend on their order. More operands are added from
             * the left, and the sum is rounded once. */
            if (m > 0)
                TUTTI_TRY(combine(flow, at, &sum, &next, among.count > 2));
        }
        if (step->dst.buffer != TUTTI_BUF_NONE)
            TUTTI_TRY(store(flow, at, rank, step->dst, i, &sum));
        if (step->also.buffer != TUTTI_BUF_NONE)
            TUTTI_TRY(store(flow, at, rank, step->also, i, &sum));
        for (uint32_t m = 0; m < to.count; m++)
            if (tutti_step_ranks_at(to, m) != rank)
                TUTTI_TRY(store(flow, at, tutti_step_ranks_at(to, m), step->remote_dst, i, &sum));
    }
    return TUTTI_OK;
}

static int run_copy(struct tutti_check_flow *flow, uint32_t at, uint32_t from,
                    struct tutti_span src, uint32_t to, struct tutti_span dst)
{
    struct tutti_check_piece piece;

    for (uint32_t i = 0; i < dst.count; i += piece.count) {
        TUTTI_TRY(load(flow, at, from, src, i, &piece));
        TUTTI_TRY(store(flow, at, to, dst, i, &piece));
    }
    return TUTTI_OK;
}

static int run_put(struct tutti_check_flow *flow, uint32_t at)
{
    const struct tutti_step *step = tutti_check_step(flow->check, at);
    uint32_t rank = flow->check->step_rank[at];
    struct tutti_step_ranks to = tutti_step_peers(flow->check->schedules[rank], step, step->to);

    for (uint32_t m = 0; m < to.count; m++)
        if (tutti_step_ranks_at(to, m) != rank)
            TUTTI_TRY(
                run_copy(flow, at, rank, step->src, tutti_step_ranks_at(to, m), step->remote));
    return run_copy(flow, at, rank, step->src, rank, step->dst);
}

static int run_reduce(struct tutti_check_flow *flow, uint32_t at)
{
    const struct tutti_step *step = tutti_check_step(flow->check, at);
    uint32_t rank = flow->check->step_rank[at];
    struct tutti_check_piece sum, other;

    for (uint32_t i = 0; i < step->dst.count; i += sum.count) {
        TUTTI_TRY(load(flow, at, rank, step->dst, i, &sum));
        TUTTI_TRY(load(flow, at, rank, step->src, i, &other));
        TUTTI_TRY(combine(flow, at, &sum, &other, false));
        TUTTI_TRY(store(flow, at, rank, step->dst, i, &sum));
    }
    return TUTTI_OK;
}

static int run_half(struct tutti_check_flow *flow, uint32_t half)
{
    uint32_t at = half / 2, rank = flow->check->step_rank[at];
    const struct tutti_step *step = tutti_check_step(flow->check, at);

    if ((half & 1) == 0 && tutti_access_receives(step))
        return run_receive(flow, half);
    switch (step->kind) {
    case TUTTI_STEP_SEND:
        return run_send(flow, at);
    case TUTTI_STEP_COPY:
        return run_copy(flow, at, rank, step->src, rank, step->dst);
    case TUTTI_STEP_PUT:
        return run_put(flow, at);
    case TUTTI_STEP_GET:
        return run_copy(flow, at, (uint32_t)step->from, step->remote, rank, step->dst);
    case TUTTI_STEP_REDUCE:
        return run_reduce(flow, at);
    case TUTTI_STEP_GATHER_REDUCE:
        return run_gather_reduce(flow, at);
    default:
        return TUTTI_OK; /* a signal, a wait, or the sending half of a fused step */
    }
}

/* ---- the run -------------------------------------------------------------------- */

static int prepare(struct tutti_check_flow *flow)
{
    struct tutti_check *check = flow->check;
    bool is_barrier = !tutti_collective_has_data(check->schedules[0]->collective);

    TUTTI_TRY(tutti_check_exprs_create(check->nranks, check->options.is_hashed, &flow->exprs));
    TUTTI_TRY(tutti_check_memory_init(&flow->memory, check, flow->is_overlaid));
    TUTTI_TRY(tutti_check_alloc(&flow->contents, flow->memory.count, sizeof(*flow->contents), 0));
    TUTTI_TRY(tutti_check_alloc(&flow->message_first, check->nsteps, sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&flow->message_count, check->nsteps, sizeof(uint32_t), 0));

    for (uint32_t rank = 0; rank < check->nranks; rank++) {
        struct tutti_span input = {.buffer = TUTTI_BUF_INPUT};
        struct tutti_span scratch = {.buffer = TUTTI_BUF_SCRATCH};
        struct tutti_check_piece piece = {.value = tutti_check_leaf(rank)};
        struct tutti_check_piece token = {.value = TUTTI_CHECK_TOKEN, .count = 1};

        piece.count = tutti_buffer_chunks(check->schedules[rank], rank, TUTTI_BUF_INPUT);
        if (piece.count > 0)
            set(flow, rank, input, 0, &piece);
        if (is_barrier && check->schedules[rank]->scratch_chunks > 0)
            set(flow, rank, scratch, 0, &token);
    }
    return TUTTI_OK;
}

static int run_flow(struct tutti_check_flow *flow)
{
    struct tutti_check *check = flow->check;

    TUTTI_TRY(prepare(flow));
    for (uint32_t i = 0; i < check->nlog; i++) {
        uint32_t node = check->log[i];

        bool is_end_of_half = node < tutti_check_half_nodes(check) && (node & 1);

        if (is_end_of_half) /* and in the first run, whose nodes come first */
            TUTTI_TRY(run_half(flow, node / 2));
    }
    TUTTI_TRY(tutti_check_promise(flow));
    return flow->is_overlaid ? TUTTI_OK : tutti_check_orders(flow);
}

int tutti_check_flow(struct tutti_check *check, bool is_overlaid)
{
    struct tutti_check_flow flow = {.check = check, .is_overlaid = is_overlaid};
    int rc = run_flow(&flow);

    tutti_check_memory_fini(&flow.memory);
    tutti_check_exprs_destroy(flow.exprs);
    free(flow.contents);
    free(flow.message_first);
    free(flow.message_count);
    free(flow.pieces);
    return rc;
}
