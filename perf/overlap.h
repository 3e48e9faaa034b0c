/* SPDX-License-Identifier: Apache-2.0
 * Measures how much of a call on a stream is hidden behind computation on the calling thread. */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

#include "rank.h"
#include "verify.h"

/* The times are medians over all rounds, in microseconds. The time of a round is the time of its
 * slowest rank. */
struct perf_overlap {
    double compute_us, call_us, both_us; /* computation alone, call alone, both at the same time */
    double beside_us;                    /* time of the computation while the call runs */
    double enqueue_us;                   /* time until the call returns to the caller */
    double percent;                      /* 100 (compute + call - both) / min(compute, call) */
};

/* Fills the buffers of `field` and measures the overlap of its call. All ranks must call this
 * together. Only the result of rank 0 covers all ranks. Checks the buffers afterwards: adds the
 * wrong elements to *wrong, and the changed guard bytes to *overruns. */
void perf_overlap_measure(struct perf_rank *rank, struct perf_field *field,
                          struct perf_overlap *ret_overlap, uint64_t *wrong, uint64_t *overruns);

#endif
