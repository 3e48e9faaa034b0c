/* SPDX-License-Identifier: Apache-2.0
 * Clocks and the statistics of a list of times. */
#ifndef PERF_TIMING_H
#define PERF_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Statistics of times, in microseconds except for the variation. */
struct perf_stats {
    double median, mean, min, max, p99;
    double variation; /* standard deviation / mean */
};

/* Microseconds of elapsed time, or of CPU time of the whole process. */
double perf_now_us(bool is_cpu_time);

/* Computes the statistics and sorts `times`. All are zero if count is 0. */
struct perf_stats perf_stats_of(double *times, size_t count);

#endif
