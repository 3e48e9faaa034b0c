/* SPDX-License-Identifier: Apache-2.0
 * Inputs with an exactly known result, whatever the order of summation.
 *
 * Every rank's input repeats with a prime period, so that no block size is a multiple of it and a
 * misplaced block is detected. All floating-point values are small integers. They are few and small
 * enough that each partial sum or product, in any order, is representable in the type itself. So no
 * rounding happens, and there is one right answer, to the bit. Averages are whole numbers. Where
 * nothing is reduced the values are arbitrary bits.
 */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include "perf.h"

#define PERF_PERIOD 1009

struct perf_pattern;

/* Creates the values of all ranks and their reduction by `op` (PERF_NO_OP: none). The caller
 * destroys the pattern. NULL: out of memory. */
struct perf_pattern *perf_pattern_create(tuttiDataType_t type, enum perf_op op, int nranks);
void perf_pattern_destroy(struct perf_pattern *pattern);

/* Writes elements from .. from + count - 1 of the input of `source` (a rank, or PERF_REDUCED for
 * the reduction). */
void perf_pattern_fill(const struct perf_pattern *pattern, int source, size_t from, void *to,
                       size_t count);

/* The number of elements, of the `count` at `at`, that differ in any byte from what fill would
 * write. */
size_t perf_pattern_wrong(const struct perf_pattern *pattern, int source, size_t from,
                          const void *at, size_t count);

/* The factor (1 or 2) that PERF_MULSUM applies to a rank's input. */
int perf_pattern_scalar(int rank);

/* Writes the whole number `value`, which must be representable in the type, as one element. */
void perf_pattern_encode(tuttiDataType_t type, int64_t value, void *to);

#endif
