/* SPDX-License-Identifier: Apache-2.0
 * Ranks: processes of this host, threads of a process, or what a launcher started. */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include "rank.h"

/* Run perf_rank_main on every rank that the options ask for. Returns the program's exit code. */
int perf_launch(const struct perf_options *options);

#endif
