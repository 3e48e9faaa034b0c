/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. An algorithm is a pure function that emits the steps of one rank. To add
 * one, write a file and add a line to table.c; the exhaustive tests find it there.
 */
#ifndef TUTTI_ALGORITHMS_H
#define TUTTI_ALGORITHMS_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* Which parts of shape->places an algorithm uses. It must be correct without them, and with any
 * values of them. */
enum {
    TUTTI_USES_NODES = 1u << 0,
    TUTTI_USES_GROUPS = 1u << 1,
    TUTTI_USES_RINGS = 1u << 2,
    TUTTI_USES_TREES = 1u << 3,
    TUTTI_USES_TORUS = 1u << 4,
    TUTTI_USES_CELLS = 1u << 5,
};

/* Values that an option may have, both bounds included. All 0: the algorithm does not have the
 * option. `usual` is the default; if it is 0, emit and cost are passed 0 and choose a value that
 * depends on the shape. */
struct tutti_option_range {
    uint32_t least, most, usual;
};

struct tutti_moves;
struct tutti_in_cells;

struct tutti_algorithm {
    const char *name;   /* e.g. "ring"; unique within its collective */
    enum tutti_collective collective;
    uint32_t needs;     /* TUTTI_NEEDS_*; 0: two-sided, runs on any transport */
    bool serves_vector; /* blocks may differ in size (the v-forms) */
    /* Two-sided, and no rank uses SCRATCH, with any options: large calls run whole, not in
     * pieces. */
    bool is_lean;
    bool sums_in_stages; /* one-sided; see step.h */
    uint32_t uses;      /* TUTTI_USES_* */
    struct tutti_option_range options[TUTTI_OPTION_COUNT];
    /* An algorithm has one of the next three. All are called with at least two ranks, because with
     * one rank every collective is a copy. */
    /* Emit this rank's steps and declarations (chunks, scratch, ...); the needs above are declared
     * by the caller. */
    int (*emit)(const struct tutti_shape *shape, struct tutti_build *build);
    /* List this rank's moves of an all-gather. The collective, which may also be a reduce-scatter
     * or an all-reduce, is emitted from the list (moves.h). */
    int (*moves)(const struct tutti_shape *shape, struct tutti_moves *ret_moves);
    /* What to emit, and what that costs, where cells are of use, and what else (cells.h). */
    const struct tutti_in_cells *in_cells;
    /* Fill in the cost of the longest path through all ranks when each block has `block_bytes`
     * bytes. Called, like emit, with at least two ranks and with resolved options. NULL with
     * in_cells, which has a cost of its own. */
    void (*cost)(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost);
};

/* The algorithms are in no particular order. tutti_algorithm returns NULL from index
 * tutti_algorithm_count() on. */
size_t tutti_algorithm_count(void);
const struct tutti_algorithm *tutti_algorithm(size_t index);

/* Find an algorithm by collective and name; NULL if there is none. */
const struct tutti_algorithm *tutti_algorithm_find(enum tutti_collective collective,
                                                   const char *name);

/* Resolve options: every 0 is replaced by the usual value, and options that the algorithm does not
 * have become 0. TUTTI_ERR_ARGUMENT: a value is given for an option that it does not have, or is
 * out of range. */
int tutti_algorithm_options(const struct tutti_algorithm *algorithm,
                            const struct tutti_options *options, struct tutti_options *ret_options);

/* Emit the algorithm's collective for at least two ranks, with resolved options. Returns what the
 * algorithm's functions return. */
int tutti_algorithm_emit(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                         struct tutti_build *build);

/* The cost of the longest path through all ranks when each block has `block_bytes` bytes, for at
 * least two ranks and with resolved options. */
void tutti_algorithm_cost(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                          double block_bytes, struct tutti_cost *ret_cost);

/* Resolve the options, emit, derive the dependencies and fuse. The result depends only on the
 * arguments; the caller destroys the schedule. TUTTI_ERR_ARGUMENT: wrong options. TUTTI_ERR_SYSTEM:
 * no memory. TUTTI_ERR_INTERNAL: the algorithm emitted something that build.h refuses. */
int tutti_algorithm_schedule(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, struct tutti_schedule **ret_schedule);

#endif
