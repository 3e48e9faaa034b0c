/* SPDX-License-Identifier: Apache-2.0
 * Clocks, medians, and what a person at a terminal sees meanwhile. */
#ifndef TUTTI_TOPO_TIMING_H
#define TUTTI_TOPO_TIMING_H

#include "topo/crew.h"

#define TIMING_BLOCKS 15

double timing_now_s(void);
/* Blocks that a median is taken of. */
int timing_blocks(const struct crew *crew);
/* Sorts. */
double timing_median(double *values, int count);
/* Rank 0, on a terminal. */
void timing_show(const struct crew *crew, const char *what, size_t size);
void timing_show_end(const struct crew *crew);

#endif
