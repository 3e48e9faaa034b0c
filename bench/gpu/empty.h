/* SPDX-License-Identifier: Apache-2.0
 * Measures the time to launch an empty kernel. No call on a GPU can be faster. */
#ifndef BENCH_GPU_EMPTY_H
#define BENCH_GPU_EMPTY_H

#include "machine.h"

#include <stdio.h>

/* Measures launches of an empty kernel with a wait for each, and replays of graphs of empty
 * kernels. One thread does so, and then `nthreads` at the same time, each on a stream of its own,
 * as ranks of one process do. Takes `rounds` samples of each. Writes lines to stdout, and JSON
 * lines to `json` if that is not NULL. */
void bench_empty(struct bench_gpu *gpu, uint32_t nthreads, uint32_t rounds, FILE *json);

#endif
