/* SPDX-License-Identifier: Apache-2.0
 * How much of a call on a stream is hidden behind computing on the calling thread. */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

#include "rank.h"
#include "verify.h"

/* Medians over the rounds; a round's time is that of its slowest rank. In microseconds. */
struct perf_overlap {
    double compute_us, call_us, both_us; /* alone, alone, at the same time */
    double beside_us;                    /* the computing, while the call runs */
    double enqueue_us;                   /* until the call returns */
    double percent;                      /* (compute + call - both) / min(compute, call) */
};

/* Collective over the ranks. Rank 0's result is that of all. Adds what is wrong in the buffers
 * afterwards to `wrong` and `overruns`. */
void perf_overlap_measure(struct perf_rank *rank, struct perf_field *field,
                          struct perf_overlap *ret_overlap, uint64_t *wrong, uint64_t *overruns);

#endif
