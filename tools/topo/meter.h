/* SPDX-License-Identifier: Apache-2.0
 * The measurements: messages between two ranks, and what a rank does in its memory. All ranks call
 * these in the same order; who is not concerned waits. Every time is the median of some blocks.
 */
#ifndef TUTTI_TOPO_METER_H
#define TUTTI_TOPO_METER_H

#include "topo/crew.h"
#include "topo/fit.h"

/* Times of messages between two ranks, known to both and to rank 0. */
struct link_times {
    struct samples one_way;  /* there and back, halved */
    struct samples both_ways; /* a message each, at once; bytes are those of both */
    double overhead_s;       /* a message of many small ones, one way */
};

void meter_link(struct crew *crew, int a, int b, struct link_times *ret_times);

/* A message from each rank to the next, all at once: what a round costs where so many ranks take
 * turns on each core. Bytes are those that a core sends and receives for all of them. */
void meter_crowd(struct crew *crew, double turns, struct samples *ret_rounds);

/* A barrier, which where ranks share memory is one signal of each, for all to see. */
double meter_signal(struct crew *crew);

/* What one rank does alone, the others being idle. */
struct memory_times {
    struct samples copy, reduce, load;
    struct samples together; /* all ranks of a node copy at once; bytes loaded and stored by all */
};

/* `mates`: ranks on this rank's node. */
void meter_memory(struct crew *crew, int mates, struct memory_times *ret_times);

#endif
