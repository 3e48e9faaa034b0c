/* SPDX-License-Identifier: Apache-2.0
 * One case on one rank: checked, warmed up, timed, checked again. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "rank.h"
#include "timing.h"
#include "verify.h"

/* What one rank found out, out of place or in place. Plain bytes: ranks exchange it. */
struct perf_result {
    struct perf_stats blocks;  /* time of an operation, over blocks of iterations */
    struct perf_stats samples; /* of single iterations, with -I */
    uint64_t wrong, overruns;
};

/* Largest need of the two arenas for this field over the options' iterations; sets field->nregions.
 */
void perf_measure_plan(const struct perf_options *options, struct perf_field *field);

/* Collective over the ranks. `progress` is called before each block by every rank. */
void perf_measure(struct perf_rank *rank, struct perf_field *field,
                  void (*progress)(const struct perf_rank *rank, const struct perf_field *field,
                                   int block, int nblocks),
                  struct perf_result *ret_result);

#endif
