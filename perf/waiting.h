/* SPDX-License-Identifier: Apache-2.0
 * Measures the CPU time that a rank uses while it waits. */
#ifndef PERF_WAITING_H
#define PERF_WAITING_H

#include "rank.h"

/* CPU time in percent of one core, of the rank that used most. The time of a process is divided
 * evenly among its ranks. */
struct perf_waiting {
    double idle;      /* no call is running and the stream is empty */
    double blocked;   /* rank 0 is late, all others are in a call */
    double on_stream; /* rank 0 is late, all others wait for a call on their streams */
};

/* Measures all three. All ranks must call this together; it takes about three times --waiting. */
void perf_waiting_measure(struct perf_rank *rank, struct perf_waiting *ret_waiting);

#endif
