/* SPDX-License-Identifier: Apache-2.0
 * The measurements: messages between two ranks, and what a rank does in its memory. All ranks call
 * these functions in the same order, and ranks that do not take part wait. Every time is the median
 * of several blocks.
 */
#ifndef TUTTI_TOPO_METER_H
#define TUTTI_TOPO_METER_H

#include "topo/crew.h"
#include "topo/fit.h"

/* Times of messages between two ranks, known to both ranks and to rank 0. */
struct link_times {
    struct samples one_way;  /* half of the time there and back */
    struct samples both_ways; /* one message in each direction at once; bytes of both together */
    double overhead_s;       /* time per message of many small ones in one direction */
};

void meter_link(struct crew *crew, int a, int b, struct link_times *ret_times);

/* Each rank sends a message to the next, all at once. This measures the cost of a round in which
 * `turns` ranks take turns on each core. The bytes of the samples are those that a core sends and
 * receives for all of its ranks. */
void meter_crowd(struct crew *crew, double turns, struct samples *ret_rounds);

/* The time of a barrier. Where ranks share memory that is one signal of each rank, seen by all. */
double meter_signal(struct crew *crew);

/* Measures the work of one rank while the others are idle. */
struct memory_times {
    struct samples copy, reduce, load;
    struct samples together; /* all ranks of a node copy at once; bytes loaded and stored by all */
};

/* `mates`: the number of ranks on this rank's node. */
void meter_memory(struct crew *crew, int mates, struct memory_times *ret_times);

#endif
