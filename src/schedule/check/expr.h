/* SPDX-License-Identifier: Apache-2.0
 * The contents of a chunk as an expression over ranks. Values are numbered: value 0 is undefined,
 * then there is one leaf per rank, then there are reductions. A value does not say which input
 * chunk it is made of; that number is stored elsewhere (flow.h). For check*.c only.
 *
 * In the exact form equal expressions are stored once, so that equal values are equal numbers, and
 * each value has the set of its ranks. In the hashed form a value has the number of its ranks and
 * the sum of a random number per rank.
 */
#ifndef TUTTI_SCHEDULE_CHECK_EXPR_H
#define TUTTI_SCHEDULE_CHECK_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_CHECK_UNDEFINED 0
#define TUTTI_CHECK_TOKEN (UINT32_MAX - 1) /* the content of a barrier's messages */

struct tutti_check_exprs;

/* Create the leaves. On an error *ret_exprs may be set, or remain as it was; destroy it if it is
 * not NULL. TUTTI_ERR_SYSTEM: no memory. */
int tutti_check_exprs_create(uint32_t nranks, bool is_hashed,
                             struct tutti_check_exprs **ret_exprs);
/* NULL is ignored. */
void tutti_check_exprs_destroy(struct tutti_check_exprs *exprs);

/* The value that is the input of one rank. */
static inline uint32_t tutti_check_leaf(uint32_t rank)
{
    return 1 + rank;
}

/* True if two values are the same expression. */
bool tutti_check_is_same(const struct tutti_check_exprs *exprs, uint32_t a, uint32_t b);
/* True if the value contains each of ranks 0 to count - 1 exactly once, and no other rank. */
bool tutti_check_is_sum(const struct tutti_check_exprs *exprs, uint32_t value, uint32_t count);
/* Number of ranks in a value; the lowest of them. */
uint32_t tutti_check_contributors(const struct tutti_check_exprs *exprs, uint32_t value);
uint32_t tutti_check_lowest(const struct tutti_check_exprs *exprs, uint32_t value);
/* One of ranks 0 to count - 1 that is not in the value; a rank that is in both values. UINT32_MAX
 * if there is none, and always in the hashed form. */
uint32_t tutti_check_missing(const struct tutti_check_exprs *exprs, uint32_t value, uint32_t count);
uint32_t tutti_check_common(const struct tutti_check_exprs *exprs, uint32_t a, uint32_t b);
/* A hash of the expression. It is equal for equal expressions, also in different sets of
 * schedules. */
uint64_t tutti_check_order_of(const struct tutti_check_exprs *exprs, uint32_t value);
/* Mix the bits of a number; used for all hashes here. */
uint64_t tutti_check_mix(uint64_t number);

/* Find the value of a op b; the two must have no common ranks. Unless `is_ordered`, a op b and b op
 * a are the same value. TUTTI_ERR_SYSTEM: no memory. */
int tutti_check_combine(struct tutti_check_exprs *exprs, uint32_t a, uint32_t b, bool is_ordered,
                        uint32_t *ret_value);

#endif
