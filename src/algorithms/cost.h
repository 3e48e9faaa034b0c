/* SPDX-License-Identifier: Apache-2.0
 * The cost of an algorithm, counted on the longest path through all ranks: messages and bytes that
 * follow one another. These are counts, not seconds: topology/machine/machine.h has the rates.
 *
 * The model has synchronous rounds, and one port per direction. The time of a level is
 *
 *     rounds * (latency + overhead) + posted * overhead + bytes / bandwidth
 *
 * The total is the sum over the levels (but see `segments`), plus the time to reduce and to copy.
 * The tests compare these counts with the simulator, so a count that is too low is found.
 */
#ifndef TUTTI_ALGORITHMS_COST_H
#define TUTTI_ALGORITHMS_COST_H

#include "schedule/shape.h"

#include <math.h>

/* How far a message goes. A round costs as much as its most distant pair of ranks. */
enum tutti_level {
    TUTTI_LEVEL_NODE,  /* between ranks of a node */
    TUTTI_LEVEL_GROUP, /* between nodes of a group */
    TUTTI_LEVEL_TOP,   /* between groups, and between nodes where there are no groups */
    TUTTI_LEVEL_COUNT
};

struct tutti_cost {
    struct {
        double rounds; /* messages or one-sided phases, one after the other */
        double posted; /* messages sent right behind others, without waiting for an answer */
        double bytes;  /* through the busiest port, the larger direction */
    } level[TUTTI_LEVEL_COUNT];
    /* If above 1, the levels work at the same time, each on another of this many segments. The
     * counts above cover all segments together. */
    double segments;
    /* True if at most one rank of a node at a time sends out of the node, and at most one receives
     * from outside. Where ranks share a network port, that rank then has the port to itself. */
    bool is_alone;
    double reduced; /* bytes that the busiest rank reduces */
    double copied;  /* bytes that it copies within its own memory */
    /* Bytes of a node's memory that all its ranks together load and store in one-sided steps. This
     * bounds the speed where cores or memory are shared. */
    double memory;
    /* One-sided steps also use the port of the rank whose memory they access, on machines where the
     * memory of each rank is behind a port of its own. `served` is the bytes through the busiest
     * such port. It is 0 if the port of some rank that itself loads and stores is at least as busy,
     * as `level` counts that port already. Machines whose ranks share memory ignore it. */
    double served;
    /* For nodes with cells. `rounds`: the rounds in which messages or signals cross between cells.
     * `bytes`: the bytes that the ranks of the busiest cell together exchange with the rest of the
     * node, in the larger direction. Both are 0 if the algorithm ignores cells: a rank then
     * exchanges as much with one rank of its node as with any other. */
    struct {
        double rounds, bytes;
    } bridge;
    /* For algorithms that know a torus: the counts where its links carry the messages. They replace
     * the counts of `level`, which are those of one port per rank. `hops`: the links that the
     * messages of all rounds cross one after the other. `bytes`: through the busiest link, in one
     * direction. All are 0 if the shape has no torus, or the algorithm does not use it. */
    struct {
        double rounds, hops, bytes;
    } torus;
};

/* The cost if memory ran out while the cost was counted. An algorithm with this cost is never the
 * cheapest. */
#define TUTTI_COST_UNKNOWN ((struct tutti_cost){.reduced = HUGE_VAL})

/* The time of all levels together, from the time of each. Without segments it is the sum. With
 * segments it is the longest time, plus the time of one segment on the other levels, for filling
 * and draining the pipeline. */
static inline double tutti_cost_sum(const struct tutti_cost *cost,
                                    const double seconds[TUTTI_LEVEL_COUNT])
{
    double sum = 0, longest = 0;

    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        sum += seconds[level];
        longest = seconds[level] > longest ? seconds[level] : longest;
    }
    return cost->segments > 1 ? longest + (sum - longest) / cost->segments : sum;
}

/* The level of the most distant pair of ranks of the shape. */
enum tutti_level tutti_level_of_shape(const struct tutti_shape *shape);

/* True if the ranks of every node have consecutive numbers. Data that goes from rank to rank in
 * order then leaves each node once. */
bool tutti_cost_is_block(const struct tutti_shape *shape);

/* The largest distance between two ranks of one run. The runs have `run` consecutive ranks each and
 * follow one another around the circle of ranks, starting at rank `first`. Takes constant time. */
enum tutti_level tutti_level_of_run(const struct tutti_shape *shape, uint32_t first, uint32_t run);

/* For the runs of tutti_level_of_run: add `rounds` rounds in which the ranks of each run exchange
 * data among themselves, and `bytes` bytes in all these rounds together. */
void tutti_cost_add(const struct tutti_shape *shape, uint32_t first, uint32_t run, double rounds,
                    double bytes, struct tutti_cost *cost);

/* Count the ranks other than `rank`, by their distance from it, in time proportional to the number
 * of ranks. */
void tutti_level_count_others(const struct tutti_shape *shape, uint32_t rank,
                              uint32_t ret_count[TUTTI_LEVEL_COUNT]);

/* The common case: all rounds and bytes count at the level of the most distant ranks. */
static inline void tutti_cost_flat(const struct tutti_shape *shape, double rounds, double bytes,
                                   double reduced, double copied, struct tutti_cost *ret_cost)
{
    enum tutti_level level = tutti_level_of_shape(shape);

    *ret_cost = (struct tutti_cost){.reduced = reduced, .copied = copied};
    ret_cost->level[level].rounds = rounds;
    ret_cost->level[level].bytes = bytes;
}

#endif
