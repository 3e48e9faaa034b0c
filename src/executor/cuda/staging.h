/* SPDX-License-Identifier: Apache-2.0
 * Finds the stretches of the user's buffers that the blocks of each column copy before and after
 * the steps of a program (device/cuda/program.h). */
#ifndef TUTTI_EXECUTOR_CUDA_STAGING_H
#define TUTTI_EXECUTOR_CUDA_STAGING_H

#include "executor/cuda/columns.h"

struct tutti_cuda_staging {
    struct tutti_kernel_staging *of_column; /* [ncolumns] */
    struct tutti_kernel_stretch *stretches; /* [count] */
    uint32_t count, capacity;
};

/* Finds the stretches for pieces that are bound as `bound`. `of_step` has the column of each step.
 * If there is one column, it stages and finishes all of the piece. The caller frees *ret_staging
 * with tutti_cuda_staging_fini, also on failure. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_staging_find(const struct tutti_program *program, const struct tutti_call *call,
                            const struct tutti_bound *bound, uint32_t ncolumns,
                            const uint32_t *of_step, struct tutti_cuda_staging *ret_staging);
void tutti_cuda_staging_fini(struct tutti_cuda_staging *staging);

#endif
