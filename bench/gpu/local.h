/* SPDX-License-Identifier: Apache-2.0
 * Measures kernels that need no other rank, in turn with copies of as many bytes. */
#ifndef BENCH_GPU_LOCAL_H
#define BENCH_GPU_LOCAL_H

#include "machine.h"

#include <stdbool.h>
#include <stdio.h>

struct bench_local {
    size_t min_bytes, max_bytes; /* of a source; sizes grow by `factor` */
    size_t factor;
    uint32_t rounds;   /* samples of each contender in a cell */
    double sample_us;  /* how long a sample takes at least; 0: one launch */
    bool is_copy_only; /* measures the copies and no reduction */
};

/* Measures all types, numbers of sources and sizes. Writes a line for each to stdout, and JSON
 * lines to `json` if that is not NULL. Returns the number of wrong results. */
int bench_local(struct bench_gpu *gpu, const struct bench_local *what, FILE *json);

#endif
