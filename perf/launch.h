/* SPDX-License-Identifier: Apache-2.0
 * Starts the ranks of a measuring program. It can fork processes on this host and start threads in
 * each process. If a launcher such as mpirun has started this process, the process joins the
 * launcher's job. */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include "rank.h"

/* Runs perf_rank_main on every rank that the options ask for, and waits until all ranks have ended.
 * Returns the program's exit code. */
int perf_launch(const struct perf_options *options);

#endif
