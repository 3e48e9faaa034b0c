/* SPDX-License-Identifier: Apache-2.0
 * Measures how much of a call on a stream is hidden behind computation on the calling thread. */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

#include "rank.h"
#include "verify.h"

/* Medians over the rounds, in microseconds; a round's time is that of its slowest rank. */
struct perf_overlap {
    double compute_us, call_us, both_us; /* computation alone, call alone, both at the same time */
    double beside_us;                    /* the computation while the call runs */
    double enqueue_us;                   /* until the call returns */
    double percent;                      /* (compute + call - both) / min(compute, call) */
};

/* Fills the field and measures overlap on it. All ranks must call this together, and rank 0's
 * result covers all ranks. Adds the errors found in the buffers afterwards to *wrong and
 * *overruns. */
void perf_overlap_measure(struct perf_rank *rank, struct perf_field *field,
                          struct perf_overlap *ret_overlap, uint64_t *wrong, uint64_t *overruns);

#endif
