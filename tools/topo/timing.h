/* SPDX-License-Identifier: Apache-2.0
 * Clocks, medians, and progress on a terminal. */
#ifndef TUTTI_TOPO_TIMING_H
#define TUTTI_TOPO_TIMING_H

#include "topo/crew.h"

#define TIMING_BLOCKS 15

double timing_now_s(void);
/* The number of blocks that a median is taken of. */
int timing_blocks(const struct crew *crew);
/* Sorts `values` and returns their median. */
double timing_median(double *values, int count);
/* Shows progress; does nothing unless this is rank 0 on a terminal. */
void timing_show(const struct crew *crew, const char *what, size_t size);
void timing_show_end(const struct crew *crew);

#endif
