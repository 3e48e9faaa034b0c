/* SPDX-License-Identifier: Apache-2.0
 * Sums that are large enough to use buffers in place, and the lines that the library logs
 * meanwhile. */
#ifndef TUTTI_TESTS_GPU_LISTENING_H
#define TUTTI_TESTS_GPU_LISTENING_H

#include "gpu/numbers.h"

#include <stddef.h>

/* The numbers of a sum, and how often sum_often sums: more calls than it takes until all ranks use
 * a new buffer in place. */
enum { SUM_COUNT = 12000, SUM_TIMES = 5 };

/* Sums SUM_COUNT numbers in place, again and again, and complains about wrong results. */
void sum_often(struct member *member, int32_t *numbers, const char *what);

/* Runs `fn` on ranks with a communicator, or without. Returns the lines at level `debug`, until the
 * next time. `faults` are those of the simulated driver; "": none. */
const char *run_and_listen(const struct place *place, bool forms_world, const char *debug,
                           const char *faults, member_fn fn);

/* Fails the test unless the word occurs in so many lines. */
void expect_lines(const char *said, const char *word, size_t count);

#endif
