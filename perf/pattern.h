/* SPDX-License-Identifier: Apache-2.0
 * Generates inputs whose result is exactly known, whatever the order of summation.
 *
 * Every rank's input repeats with a prime period. Usual block sizes are not multiples of this
 * period, so a misplaced block is detected. All floating-point values are small integers. They are
 * so few and so small that the type itself can represent each partial sum or product, in any order.
 * So no rounding happens, and only one result is right, to the bit. Averages of floating-point
 * values are whole numbers. If nothing is reduced, the values are arbitrary bits.
 */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include "perf.h"

#define PERF_PERIOD 1009 /* elements */

struct perf_pattern;

/* Creates the values of all ranks, and the reduction by `op` of those of ranks 0 to `summands` - 1.
 * With PERF_NO_OP, or without summands, there is no reduction. The caller destroys the pattern.
 * Returns NULL if memory runs out. perf_pattern_destroy accepts NULL. */
struct perf_pattern *perf_pattern_create(tuttiDataType_t type, enum perf_op op, int summands,
                                         int nranks);
void perf_pattern_destroy(struct perf_pattern *pattern);

/* Writes `count` elements of the input of `source`, from element `from` on. `source` is a rank, or
 * PERF_REDUCED for the reduction. */
void perf_pattern_fill(const struct perf_pattern *pattern, int source, size_t from, void *to,
                       size_t count);

/* Compares `count` elements at `at` with those that perf_pattern_fill would write. Returns the
 * number of elements that differ in any byte. */
size_t perf_pattern_wrong(const struct perf_pattern *pattern, int source, size_t from,
                          const void *at, size_t count);

/* Returns the factor, 1 or 2, that PERF_MULSUM applies to a rank's input. */
int perf_pattern_scalar(int rank);

/* Writes the whole number `value` as one element of the type. The type must be able to represent
 * the value. */
void perf_pattern_encode(tuttiDataType_t type, int64_t value, void *to);

#endif
