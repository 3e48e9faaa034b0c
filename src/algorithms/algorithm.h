/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. Each is a pure function that emits one rank's steps;
 * adding one means a file and a line in table.c; the exhaustive tests find it there.
 */
#ifndef TUTTI_ALGORITHMS_H
#define TUTTI_ALGORITHMS_H

#include "schedule/build.h"

struct tutti_algorithm {
    const char *name;   /* "ring": unique within its collective */
    enum tutti_collective collective;
    uint32_t needs;     /* TUTTI_NEEDS_*; 0: two-sided, runs on any transport */
    bool serves_vector; /* blocks may differ in size (the v-forms) */
    /* Emit this rank's steps, declarations (chunks, scratch, ...) included, but for the needs
     * above. Called with two ranks or more: alone, every collective is a copy. */
    int (*emit)(const struct tutti_shape *shape, struct tutti_build *build);
};

/* In no particular order; NULL from tutti_algorithm_count() on. */
size_t tutti_algorithm_count(void);
const struct tutti_algorithm *tutti_algorithm(size_t index);

/* By collective and name; NULL if there is none. */
const struct tutti_algorithm *tutti_algorithm_find(enum tutti_collective collective,
                                                   const char *name);

/* Emit, derive, fuse. Depends on its arguments only; the caller destroys the schedule.
 * TUTTI_ERR_SYSTEM: no memory; TUTTI_ERR_INTERNAL: the algorithm emitted what build.h refuses. */
int tutti_algorithm_schedule(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, struct tutti_schedule **ret_schedule);

#endif
