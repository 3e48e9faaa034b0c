/* SPDX-License-Identifier: Apache-2.0
 * Measures messages between ranks, barriers, and the work of a rank in its own memory.
 *
 * All ranks must call these functions together and in the same order. Ranks that do not take part
 * wait. Every time is the median of several blocks of repetitions, in seconds. If a call fails, the
 * process ends.
 */
#ifndef TUTTI_TOPO_METER_H
#define TUTTI_TOPO_METER_H

#include "topo/crew.h"
#include "topo/fit.h"

/* The times of messages between two ranks. */
struct link_times {
    struct samples one_way;  /* half of the time of a message and its answer */
    struct samples both_ways; /* a message in each direction at the same time; bytes of both */
    double overhead_s;       /* time per message when many small messages go in one direction */
};

/* Measures messages between the ranks a and b. Every rank gets the times that rank a has
 * measured. */
void meter_link(struct crew *crew, int a, int b, struct link_times *ret_times);

/* Measures rounds in which each rank sends a message to the next rank, all at the same time.
 * `turns` is the number of ranks per core; these ranks take turns. The bytes of a sample are the
 * bytes that a core sends and receives for all of its ranks. */
void meter_crowd(struct crew *crew, double turns, struct samples *ret_rounds);

/* Returns the time of a barrier in seconds. If the ranks share memory, this is the time of a
 * signal: in a barrier each rank gives one signal and waits for the signals of all others. */
double meter_signal(struct crew *crew);

/* The times of the work of rank 0 in its memory. The other ranks are idle, except for `together`.
 * Only rank 0 has the samples of the first three. */
struct memory_times {
    struct samples copy, reduce, load;
    struct samples together; /* all ranks copy at the same time; bytes of all ranks of a node */
};

/* Measures copies, reductions, and loads of data that another core has just stored. `node_ranks` is
 * the number of ranks on this rank's node, including the rank itself. */
void meter_memory(struct crew *crew, int node_ranks, struct memory_times *ret_times);

#endif
