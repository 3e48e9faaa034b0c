/* SPDX-License-Identifier: Apache-2.0
 * What a chunk holds, as an expression over ranks: 0 is undefined, then one leaf for each rank,
 * then reductions. Which chunk of the ranks' inputs it is about is known elsewhere. Inside check*.c
 * only.
 *
 * Exact, equal expressions are stored once, so that equal values are equal numbers, and each has
 * the set of its ranks. Hashed, a value has their number and the sum of a random number per rank.
 */
#ifndef TUTTI_SCHEDULE_CHECK_EXPR_H
#define TUTTI_SCHEDULE_CHECK_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_CHECK_UNDEFINED 0
#define TUTTI_CHECK_TOKEN (UINT32_MAX - 1) /* what a barrier sends */

struct check_exprs;

int tutti_check_exprs_create(uint32_t nranks, bool is_hashed, struct check_exprs **ret_exprs);
void tutti_check_exprs_destroy(struct check_exprs *exprs);

static inline uint32_t tutti_check_leaf(uint32_t rank)
{
    return 1 + rank;
}

/* Are two values the same expression? */
bool tutti_check_is_same(const struct check_exprs *exprs, uint32_t a, uint32_t b);
/* Does it have each rank once? */
bool tutti_check_is_whole(const struct check_exprs *exprs, uint32_t value);
uint32_t tutti_check_contributors(const struct check_exprs *exprs, uint32_t value);
uint32_t tutti_check_lowest(const struct check_exprs *exprs, uint32_t value);
/* A rank that is not in it, or that is in both; NONE when there is none or, hashed, nobody
 * knows. */
uint32_t tutti_check_missing(const struct check_exprs *exprs, uint32_t value);
uint32_t tutti_check_common(const struct check_exprs *exprs, uint32_t a, uint32_t b);
/* Equal for equal expressions, in any set of schedules. */
uint64_t tutti_check_order_of(const struct check_exprs *exprs, uint32_t value);
/* Mixes numbers well; used for all hashes here. */
uint64_t tutti_check_mix(uint64_t number);

/* a op b, without common ranks. Unless ordered, a op b and b op a are the same. */
int tutti_check_combine(struct check_exprs *exprs, uint32_t a, uint32_t b, bool is_ordered,
                        uint32_t *ret_value);

#endif
