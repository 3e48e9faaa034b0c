/* SPDX-License-Identifier: Apache-2.0
 * Provides the clock and the medians of the measurements, and shows progress on a terminal. */
#ifndef TUTTI_TOPO_TIMING_H
#define TUTTI_TOPO_TIMING_H

#include "topo/crew.h"

#define TIMING_BLOCKS 15 /* most timed blocks of a measurement */

/* Returns the time of a monotonic clock, in seconds. */
double timing_now_s(void);
/* Returns the number of blocks whose median is the result of a measurement. The number is at most
 * TIMING_BLOCKS. */
int timing_blocks(const struct crew *crew);
/* Sorts `values` in place and returns their median. `count` must be positive. */
double timing_median(double *values, int count);
/* Shows on stderr that the measurement of `what` with `size` bytes runs. Only rank 0 does so, and
 * only if stderr is a terminal. timing_show_end removes the text. */
void timing_show(const struct crew *crew, const char *what, size_t size);
void timing_show_end(const struct crew *crew);

#endif
