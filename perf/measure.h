/* SPDX-License-Identifier: Apache-2.0
 * Measures one case on one rank. It checks the results, warms up, takes the times, and checks the
 * results again. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "rank.h"
#include "timing.h"
#include "verify.h"

/* The result of one rank, out of place or in place. Ranks exchange it as plain bytes. */
struct perf_result {
    struct perf_stats blocks;  /* time of one operation, averaged over each block of iterations */
    struct perf_stats samples; /* time of each iteration on its own; only with option -I */
    uint64_t wrong, overruns;  /* wrong elements; bytes overwritten outside the regions */
};

/* Sets field->nregions to the number of regions that measuring this field needs.
 * perf_field_input_need and perf_field_output_need then give the arenas' sizes. */
void perf_measure_plan(const struct perf_options *options, struct perf_field *field);

/* Measures the field. All ranks must call this function together. It calls `progress` on every rank
 * before each block of iterations; `block` counts from 0. If memory runs out, it ends the
 * process. */
void perf_measure(struct perf_rank *rank, struct perf_field *field,
                  void (*progress)(const struct perf_rank *rank, const struct perf_field *field,
                                   int block, int nblocks),
                  struct perf_result *ret_result);

#endif
