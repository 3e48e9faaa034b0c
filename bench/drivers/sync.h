/* SPDX-License-Identifier: Apache-2.0
 * The common start of a job. Its ranks begin an operation together, at a time on which they
 * agreed, and report when they are done. All of this is in one small file of DIRECTORY that they
 * map. */
#ifndef BENCH_SYNC_H
#define BENCH_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_OPS_MAX 4096 /* operations whose times can be reported */

/* One process's end of the start line. */
struct sync_line;

/* Maps the file DIRECTORY/start, which the program that starts the job has made, and made large
 * enough. Processes are numbered from 0 to nprocesses - 1. `is_crowded` says that there are more
 * processes than CPUs. The result lasts until the process ends. */
struct sync_line *sync_line_open(const char *directory, int process, int nprocesses,
                                 bool is_crowded);

/* Waits until all processes have called this, and then until a time on which they agree. Returns
 * that time in ns of CLOCK_MONOTONIC. */
uint64_t sync_line_start(struct sync_line *line);

/* Reports that this process has finished operation `index` `elapsed_ns` after its start. `index` is
 * below SYNC_OPS_MAX. */
void sync_line_tell(struct sync_line *line, size_t index, uint64_t elapsed_ns);

/* Waits until all processes have reported `nops` operations and called this. ret_ns[i] is the time
 * of operation i on the slowest process. */
void sync_line_slowest(struct sync_line *line, size_t nops, double *ret_ns);

#endif
