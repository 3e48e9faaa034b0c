/* SPDX-License-Identifier: Apache-2.0
 * The common start of a job. Its ranks begin an operation together, at a time on which they
 * agreed, and report when they are done. All of this is in one small file of DIRECTORY that they
 * map. */
#ifndef BENCH_SYNC_H
#define BENCH_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_OPS_MAX 4096

struct sync_line;

/* Map DIRECTORY/start, which whoever starts the job has made, large enough. Processes
 * number from 0 to nprocesses - 1; `is_crowded` if they are more than there are CPUs. */
struct sync_line *sync_line_open(const char *directory, int process, int nprocesses,
                                 bool is_crowded);

/* Wait until all processes are here; returns, at the instant that they agreed on, that instant in
 * ns of CLOCK_MONOTONIC. */
uint64_t sync_line_start(struct sync_line *line);

/* This process was done with operation `index` so many ns after its start. */
void sync_line_tell(struct sync_line *line, size_t index, uint64_t elapsed_ns);

/* When all have told about `nops` operations: the slowest process's time of each. */
void sync_line_slowest(struct sync_line *line, size_t nops, double *ret_ns);

#endif
