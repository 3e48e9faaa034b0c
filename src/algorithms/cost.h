/* SPDX-License-Identifier: Apache-2.0
 * What an algorithm costs, counted on the longest path through all ranks: messages that follow
 * one another, and bytes that do. Counts, not seconds: topology/machine/machine.h has the rates.
 *
 * The model is that of synchronous rounds on one port per direction. The time of a level is
 *
 *     rounds * (latency + overhead) + posted * overhead + bytes / bandwidth
 *
 * and that of the whole the sum over the levels (but see `segments`), plus what reducing and
 * copying take. The tests hold these counts against the simulator, so an algorithm cannot promise
 * what its schedule does not do.
 */
#ifndef TUTTI_ALGORITHMS_COST_H
#define TUTTI_ALGORITHMS_COST_H

#include "schedule/shape.h"

#include <math.h>

/* How far a message goes. A round costs what its outermost pair of ranks is apart. */
enum tutti_level {
    TUTTI_LEVEL_NODE,  /* between ranks of a node */
    TUTTI_LEVEL_GROUP, /* between nodes of a group */
    TUTTI_LEVEL_TOP,   /* between groups, and between nodes where there are no groups */
    TUTTI_LEVEL_COUNT
};

struct tutti_cost {
    struct {
        double rounds; /* messages, or one-sided phases, one after the other */
        double posted; /* messages that go out behind others without waiting for an answer */
        double bytes;  /* through the busiest port, one after the other; the larger direction */
    } level[TUTTI_LEVEL_COUNT];
    /* Above 1: the levels work at the same time, on one of so many segments each. The counts above
     * are those of all segments together. */
    double segments;
    /* No two ranks of a node leave it at the same time, the same way: where ranks share a network
     * port, whoever does has it for itself. */
    bool is_alone;
    double reduced; /* bytes that the busiest rank combines */
    double copied;  /* bytes that it copies from place to place in its own memory */
    /* Bytes of memory of a node that all its ranks together load and store in one-sided steps:
     * what bounds them when cores or memory are shared. */
    double memory;
    /* Of one-sided steps, where each rank's memory lies behind a port of its own: bytes through the
     * busiest of all those ports, where that is not the port of the rank that loads and stores.
     * Where ranks share memory, nobody but whoever loads and stores is busy. */
    double served;
    /* Where nodes have cells: rounds in which messages or signals cross from one cell to another,
     * and bytes that the ranks of the busiest cell together exchange with the others of its node,
     * the larger direction. Both 0: nothing is kept within cells, and ranks have as much to do with
     * one of their node as with another. */
    struct {
        double rounds, bytes;
    } bridge;
};

/* Of an algorithm whose cost could not be counted, for want of memory: never the best. */
#define TUTTI_COST_UNKNOWN ((struct tutti_cost){.reduced = HUGE_VAL})

/* The time of all levels from the time of each: one after the other, or, in segments, the longest
 * with the first segment before and the last after it on the others. */
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

/* The level that the outermost pair of ranks is apart. */
enum tutti_level tutti_shape_level(const struct tutti_shape *shape);

/* Are the ranks of every node neighbours? What then goes from rank to rank leaves a node once. */
bool tutti_shape_is_block(const struct tutti_shape *shape);

/* The level that two of a run are apart at most, for runs of `run` neighbours that follow each
 * other around the circle from rank `first` on. O(1). */
enum tutti_level tutti_shape_run_level(const struct tutti_shape *shape, uint32_t first,
                                       uint32_t run);

/* Add rounds in which ranks of such runs have to do with each other, with so many bytes
 * together. */
void tutti_cost_add(const struct tutti_shape *shape, uint32_t first, uint32_t run, double rounds,
                    double bytes, struct tutti_cost *cost);

/* Ranks other than `rank`, by how far they are from it. O(p). */
void tutti_shape_others(const struct tutti_shape *shape, uint32_t rank,
                        uint32_t ret_count[TUTTI_LEVEL_COUNT]);

/* The common case: everything at the outermost level. */
static inline void tutti_cost_flat(const struct tutti_shape *shape, double rounds, double bytes,
                                   double reduced, double copied, struct tutti_cost *ret_cost)
{
    enum tutti_level level = tutti_shape_level(shape);

    *ret_cost = (struct tutti_cost){.reduced = reduced, .copied = copied};
    ret_cost->level[level].rounds = rounds;
    ret_cost->level[level].bytes = bytes;
}

#endif
