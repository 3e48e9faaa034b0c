/* SPDX-License-Identifier: Apache-2.0
 * Measures one case on one rank: check, warm up, time, check again. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "rank.h"
#include "timing.h"
#include "verify.h"

/* The result of one rank, out of place or in place. Ranks exchange it as plain bytes. */
struct perf_result {
    struct perf_stats blocks;  /* time of one operation, over blocks of iterations */
    struct perf_stats samples; /* time of one operation, over single iterations; only with -I */
    uint64_t wrong, overruns;
};

/* Sets field->nregions to the number of regions that measuring this field needs.
 * perf_field_input_need and perf_field_output_need then give the arenas' sizes. */
void perf_measure_plan(const struct perf_options *options, struct perf_field *field);

/* Measures the field. All ranks must call this together. Every rank calls `progress` before each
 * block. */
void perf_measure(struct perf_rank *rank, struct perf_field *field,
                  void (*progress)(const struct perf_rank *rank, const struct perf_field *field,
                                   int block, int nblocks),
                  struct perf_result *ret_result);

#endif
