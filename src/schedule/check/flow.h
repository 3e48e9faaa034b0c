/* SPDX-License-Identifier: Apache-2.0
 * The values in the memory of all ranks. flow.c moves the values as the steps do, and promise.c
 * checks the outputs. For check*.c only.
 */
#ifndef TUTTI_SCHEDULE_CHECK_FLOW_H
#define TUTTI_SCHEDULE_CHECK_FLOW_H

#include "schedule/check/expr.h"
#include "schedule/check/model.h"

/* The contents of a stretch of memory: one expression, over the ranks' input chunks from `chunk`
 * on. */
struct tutti_check_content {
    uint32_t value, chunk;
};

struct tutti_check_piece {
    uint32_t value, chunk, count;
};

struct tutti_check_flow {
    struct tutti_check *check;
    struct tutti_check_memory memory;
    struct check_exprs *exprs;
    bool is_overlaid;
    struct tutti_check_content *contents; /* per stretch */
    /* Messages as they were sent: per sending step, the range of `pieces` that it consists of. */
    uint32_t *message_first, *message_count;
    struct tutti_check_piece *pieces;
    uint32_t npieces, pieces_capacity;
};

static inline const char *tutti_check_form(const struct tutti_check_flow *flow)
{
    return flow->is_overlaid ? "in place" : "out of place";
}

/* The contents of a span from its chunk i on, up to the end of the span or to where the value
 * changes. */
struct tutti_check_piece tutti_check_piece(const struct tutti_check_flow *flow, uint32_t owner,
                                           struct tutti_span span, uint32_t i);

/* Check that every output holds what the collective promises, and that all ranks have the same
 * expression. */
int tutti_check_promise(struct tutti_check_flow *flow);
/* Set `orders` and `order_hash` of the report. */
int tutti_check_orders(struct tutti_check_flow *flow);

#endif
