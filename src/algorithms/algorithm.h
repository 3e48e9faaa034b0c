/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. Each is a pure function that emits one rank's steps;
 * adding one means a file and a line in table.c; the exhaustive tests find it there.
 */
#ifndef TUTTI_ALGORITHMS_H
#define TUTTI_ALGORITHMS_H

#include "algorithms/cost.h"
#include "schedule/build.h"

/* What of shape->places an algorithm goes by; it must be right without, and for any. */
enum {
    TUTTI_USES_NODES = 1u << 0,
    TUTTI_USES_GROUPS = 1u << 1,
    TUTTI_USES_RINGS = 1u << 2,
    TUTTI_USES_TREES = 1u << 3,
    TUTTI_USES_TORUS = 1u << 4,
    TUTTI_USES_CELLS = 1u << 5,
};

/* Values an option may have; all 0: the algorithm does not have it. `usual` 0: what is usual
 * depends on the shape, and 0 is what emit and cost are given. */
struct tutti_option_range {
    uint32_t least, most, usual;
};

struct tutti_algorithm {
    const char *name;   /* "ring": unique within its collective */
    enum tutti_collective collective;
    uint32_t needs;     /* TUTTI_NEEDS_*; 0: two-sided, runs on any transport */
    bool serves_vector; /* blocks may differ in size (the v-forms) */
    bool is_lean;       /* two-sided, and no rank ever uses SCRATCH: large calls run whole */
    bool sums_in_stages; /* one-sided: see step.h */
    uint32_t uses;      /* TUTTI_USES_* */
    struct tutti_option_range options[TUTTI_OPTION_COUNT];
    /* Emit this rank's steps, declarations (chunks, scratch, ...) included, but for the needs
     * above. Called with two ranks or more: alone, every collective is a copy. */
    int (*emit)(const struct tutti_shape *shape, struct tutti_build *build);
    /* What the longest path of all ranks costs when blocks have `block_bytes` each; called, like
     * emit, with two ranks or more and options resolved. */
    void (*cost)(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost);
};

/* In no particular order; NULL from tutti_algorithm_count() on. */
size_t tutti_algorithm_count(void);
const struct tutti_algorithm *tutti_algorithm(size_t index);

/* By collective and name; NULL if there is none. */
const struct tutti_algorithm *tutti_algorithm_find(enum tutti_collective collective,
                                                   const char *name);

/* Options with every 0 replaced by the usual value, and 0 where the algorithm has no such option.
 * TUTTI_ERR_ARGUMENT: one is given that it does not have, or is out of range. */
int tutti_algorithm_options(const struct tutti_algorithm *algorithm,
                            const struct tutti_options *options, struct tutti_options *ret_options);

/* Resolve options, emit, derive, fuse. Depends on its arguments only; the caller destroys the
 * schedule. TUTTI_ERR_ARGUMENT: options; TUTTI_ERR_SYSTEM: no memory; TUTTI_ERR_INTERNAL: the
 * algorithm emitted what build.h refuses. */
int tutti_algorithm_schedule(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, struct tutti_schedule **ret_schedule);

#endif
