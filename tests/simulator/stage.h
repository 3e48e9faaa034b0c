/* SPDX-License-Identifier: Apache-2.0
 * A stage for the simulator's tests: algorithms and hand-made schedules on machines given as text.
 */
#ifndef TUTTI_TESTS_SIMULATOR_STAGE_H
#define TUTTI_TESTS_SIMULATOR_STAGE_H

#include "algorithms/algorithm.h"
#include "simulator/simulator.h"

struct stage {
    struct tutti_machine *machine;
    const struct tutti_algorithm *algorithm;
    struct tutti_options options;
    uint32_t root;
    /* Instead of an algorithm: a function that emits rank's steps. */
    int (*emit)(const struct tutti_shape *shape, struct tutti_build *build);
    enum tutti_collective collective;
    uint32_t period; /* number of ranks to play by symmetry; 0: all ranks are played */
};

/* Fails the test if the description is wrong. nranks 0: what it says. */
void stage_open(struct stage *stage, const char *machine, uint32_t nranks);
void stage_close(struct stage *stage);

/* Play an algorithm, or stage->emit, with blocks of so many bytes. */
void stage_play(struct stage *stage, enum tutti_collective collective, const char *algorithm,
                size_t block_bytes, struct tutti_sim_report *ret_report);
int stage_try(struct stage *stage, size_t block_bytes, struct tutti_sim_report *ret_report);
/* The number of ranks that can stand for all in such a call; 0: all must be played. Sets the
 * algorithm as stage_play does, and fails the test on an error. */
uint32_t stage_find_period(struct stage *stage, enum tutti_collective collective,
                           const char *algorithm, size_t block_bytes);

/* The same, and only the time. */
double stage_seconds(const char *machine, uint32_t nranks, enum tutti_collective collective,
                     const char *algorithm, size_t block_bytes);

/* Equal but for rounding: 1e-6 of the expected. */
void assert_close(double found, double expected);

#endif
