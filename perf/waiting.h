/* SPDX-License-Identifier: Apache-2.0
 * Measures the CPU time that a rank uses while it waits. */
#ifndef PERF_WAITING_H
#define PERF_WAITING_H

#include "rank.h"

/* The CPU time of the rank that used most, in percent of one core. The time of a process is divided
 * evenly among its ranks. */
struct perf_waiting {
    double idle;      /* no call is running and the stream is empty */
    double blocked;   /* rank 0 is late, and all others are in a call */
    double on_stream; /* rank 0 is late, and all others wait for a call on their streams */
};

/* Measures all three values. All ranks must call this together. It takes about three times the time
 * that --waiting gives. */
void perf_waiting_measure(struct perf_rank *rank, struct perf_waiting *ret_waiting);

#endif
