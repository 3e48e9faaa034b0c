/* SPDX-License-Identifier: Apache-2.0
 * Starts the ranks: as processes on this host, as threads of a process, or as what a launcher
 * started. */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include "rank.h"

/* Runs perf_rank_main on every rank that the options ask for. Returns the program's exit code. */
int perf_launch(const struct perf_options *options);

#endif
