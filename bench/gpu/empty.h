/* SPDX-License-Identifier: Apache-2.0
 * Measures the time to launch an empty kernel. No call on a GPU can be faster. */
#ifndef BENCH_GPU_EMPTY_H
#define BENCH_GPU_EMPTY_H

#include "machine.h"

#include <stdio.h>

/* Launch an empty kernel and wait for it, and replay graphs of empty kernels: by one thread, and by
 * `nthreads` at the same time, each on a stream of its own, as ranks of one process do. `rounds`
 * samples of each. Writes to stdout, and JSON lines to `json` if that is not NULL. */
void bench_empty(struct bench_gpu *gpu, uint32_t nthreads, uint32_t rounds, FILE *json);

#endif
