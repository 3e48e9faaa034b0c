/* SPDX-License-Identifier: Apache-2.0
 * The values in the memory of all ranks. flow.c moves the values as the steps do, and promise.c
 * checks the outputs. For check*.c only.
 */
#ifndef TUTTI_SCHEDULE_CHECK_FLOW_H
#define TUTTI_SCHEDULE_CHECK_FLOW_H

#include "schedule/check/expr.h"
#include "schedule/check/model.h"

/* The contents of a stretch of memory: one expression for all its chunks (expr.h). The first chunk
 * is made of the ranks' input chunks number `chunk`, the next one of those after them, and so
 * on. */
struct tutti_check_content {
    uint32_t value, chunk;
};

/* `count` neighboring chunks with such contents. */
struct tutti_check_piece {
    uint32_t value, chunk, count;
};

struct tutti_check_flow {
    struct tutti_check *check;
    struct tutti_check_memory memory;
    struct tutti_check_exprs *exprs;
    bool is_overlaid; /* INPUT and OUTPUT lie as in an in-place call */
    struct tutti_check_content *contents; /* per stretch, at the index of its first cell */
    /* Messages as they were sent: per sending step, the range of `pieces` that it consists of. */
    uint32_t *message_first, *message_count;
    struct tutti_check_piece *pieces; /* of all messages */
    uint32_t npieces, pieces_capacity;
};

/* The form of the calls that are checked, for messages. */
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
