/* SPDX-License-Identifier: Apache-2.0
 * Inputs whose result is known exactly, whatever the order of summation.
 *
 * Every rank's input repeats with a prime period, so that no block size is a multiple of it and a
 * misplaced block shows. All floating values are small integers, few and small enough that each
 * partial sum or product, in any order, is representable in the type itself: no rounding happens,
 * so there is one right answer, to the bit. Averages come out whole. Where nothing is reduced the
 * values are arbitrary bits.
 */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include "perf.h"

#define PERF_PERIOD 1009

struct perf_pattern;

/* Values of all ranks and their reduction by `op` (PERF_NO_OP: none). NULL: out of memory. */
struct perf_pattern *perf_pattern_create(tuttiDataType_t type, enum perf_op op, int nranks);
void perf_pattern_destroy(struct perf_pattern *pattern);

/* Write elements from .. from + count - 1 of `source`'s input (a rank, or PERF_REDUCED). */
void perf_pattern_fill(const struct perf_pattern *pattern, int source, size_t from, void *to,
                       size_t count);

/* How many of the `count` elements at `at` are not, byte for byte, what fill would write. */
size_t perf_pattern_wrong(const struct perf_pattern *pattern, int source, size_t from,
                          const void *at, size_t count);

/* The factor that PERF_MULSUM gives to a rank: 1 or 2. */
int perf_pattern_scalar(int rank);

/* Write the whole number `value`, representable in the type, as one element. */
void perf_pattern_encode(tuttiDataType_t type, int64_t value, void *to);

#endif
