/* SPDX-License-Identifier: Apache-2.0
 * Arranges the blocks that run a schedule in columns, so that each channel of the schedule runs in
 * blocks of its own (device/cuda/program.h). */
#ifndef TUTTI_EXECUTOR_CUDA_COLUMNS_H
#define TUTTI_EXECUTOR_CUDA_COLUMNS_H

#include "executor/cuda/program.h"

/* ncopies and fifo_step are the same on all ranks. */
struct tutti_cuda_columns {
    uint32_t ncolumns, ncopies; /* blocks side by side, and how many times */
    uint32_t fifo_step;         /* FIFOs of one copy: one for each channel */
    /* True if lanes are divided among the columns, instead of channels. This makes a call that
     * cannot be cut into pieces run in several blocks, even if its schedule has one channel. */
    bool divides_lanes;
};

/* Returns the columns for the schedule of a call, which the grid can run. A schedule with one-sided
 * steps has one column, because blocks with the same number then meet in windows and signals. The
 * lanes of a v-form are divided, because a v-form has only one piece. */
struct tutti_cuda_columns tutti_cuda_columns_of(const struct tutti_schedule *schedule,
                                                const struct tutti_call *call,
                                                const struct tutti_cuda_grid *grid);

/* Finds the column of each step. Channels, or lanes, whose steps depend on one another share a
 * column. The caller frees *ret_columns, which has an entry for each step. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_cuda_columns_divide(const struct tutti_schedule *schedule,
                              const struct tutti_cuda_columns *columns, uint32_t **ret_columns);

#endif
