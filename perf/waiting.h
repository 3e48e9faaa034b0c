/* SPDX-License-Identifier: Apache-2.0
 * What a rank costs its machine while it waits. */
#ifndef PERF_WAITING_H
#define PERF_WAITING_H

#include "rank.h"

/* CPU time in percent of one core, that of the rank that used most. Ranks of one process share
 * alike. */
struct perf_waiting {
    double idle;      /* nothing is called; the stream is empty */
    double blocked;   /* rank 0 is late, all others are in a call */
    double on_stream; /* rank 0 is late, all others wait for a call on their streams */
};

/* Collective over the ranks; takes about three times --waiting. */
void perf_waiting_measure(struct perf_rank *rank, struct perf_waiting *ret_waiting);

#endif
