/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. An algorithm is a pure function that emits the steps of one rank. To add
 * an algorithm, write a file that defines it and add a line to table.c. The exhaustive tests then
 * cover it.
 */
#ifndef TUTTI_ALGORITHMS_ALGORITHM_H
#define TUTTI_ALGORITHMS_ALGORITHM_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* The parts of shape->places that an algorithm uses. The algorithm must be correct even if these
 * parts are missing, and for any values of them. */
enum {
    TUTTI_USES_NODES = 1u << 0,
    TUTTI_USES_GROUPS = 1u << 1,
    TUTTI_USES_RINGS = 1u << 2,
    TUTTI_USES_TREES = 1u << 3,
    TUTTI_USES_TORUS = 1u << 4,
    TUTTI_USES_CELLS = 1u << 5,
};

/* The values that an option may have: `least` to `most`, both included. If all three are 0, the
 * algorithm does not have the option. `usual` is the default. If `usual` is 0, emit and cost
 * receive 0 and choose a value that depends on the shape. */
struct tutti_algorithm_range {
    uint32_t least, most, usual;
};

struct tutti_moves;
struct tutti_cells_ops;

struct tutti_algorithm {
    const char *name;   /* e.g. "ring"; unique within its collective */
    enum tutti_collective collective;
    uint32_t needs;     /* TUTTI_NEEDS_*; 0: two-sided, runs on any transport */
    bool serves_vector; /* blocks may differ in size (the v-forms) */
    /* The algorithm is two-sided, and no rank uses SCRATCH, whatever the options are. Large calls
     * then run whole, not in pieces. */
    bool is_lean;
    bool sums_in_stages; /* one-sided algorithms only; see struct tutti_schedule */
    uint32_t uses;      /* TUTTI_USES_* */
    struct tutti_algorithm_range options[TUTTI_OPTION_COUNT];
    /* Exactly one of `emit`, `moves` and `in_cells` is set. They are used only with at least two
     * ranks, because with one rank every collective is a copy. */
    /* Emit this rank's steps and declarations (chunks, scratch, ...); the needs above are declared
     * by the caller. */
    int (*emit)(const struct tutti_shape *shape, struct tutti_build *build);
    /* List this rank's moves of an all-gather. The collective, which may also be a reduce-scatter
     * or an all-reduce, is emitted from the list (moves.h). */
    int (*moves)(const struct tutti_shape *shape, struct tutti_moves *ret_moves);
    /* For an algorithm that uses cells: its functions, and the algorithm that it falls back to
     * where cells are of no use (cells.h). */
    const struct tutti_cells_ops *in_cells;
    /* Fill in the cost of the longest path through all ranks when each block has `block_bytes`
     * bytes. It is called, like emit, with at least two ranks and with resolved options. NULL if
     * `in_cells` is set, because `in_cells` has a cost function of its own. */
    void (*cost)(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost);
};

/* All algorithms, in the order of table.c. tutti_algorithm returns NULL if `index` is
 * tutti_algorithm_count() or more. */
size_t tutti_algorithm_count(void);
const struct tutti_algorithm *tutti_algorithm(size_t index);

/* Find an algorithm by collective and name; NULL if there is none. */
const struct tutti_algorithm *tutti_algorithm_find(enum tutti_collective collective,
                                                   const char *name);

/* Resolve options: every 0 is replaced by the usual value, and options that the algorithm does not
 * have become 0. TUTTI_ERR_ARGUMENT: the algorithm does not have an option that is given, or the
 * value is out of range. */
int tutti_algorithm_options(const struct tutti_algorithm *algorithm,
                            const struct tutti_options *options, struct tutti_options *ret_options);

/* Emit the algorithm's collective. There must be at least two ranks, and the options must be
 * resolved. Returns the result of the algorithm's own function. */
int tutti_algorithm_emit(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                         struct tutti_build *build);

/* Fill in the cost of the longest path through all ranks when each block has `block_bytes` bytes.
 * There must be at least two ranks, and the options must be resolved. */
void tutti_algorithm_cost(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                          double block_bytes, struct tutti_cost *ret_cost);

/* Make the schedule of rank shape->rank: resolve the options, emit, fuse, and derive the
 * dependencies. The result depends only on the arguments; the caller destroys the schedule.
 * TUTTI_ERR_ARGUMENT: wrong options. TUTTI_ERR_SYSTEM: no memory. TUTTI_ERR_INTERNAL: the algorithm
 * emitted a step that build.h refuses. */
int tutti_algorithm_schedule(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, struct tutti_schedule **ret_schedule);

#endif
