/* SPDX-License-Identifier: Apache-2.0
 * Reads clocks, and computes the statistics of a list of times. */
#ifndef PERF_TIMING_H
#define PERF_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Statistics of times, in microseconds except for the variation. */
struct perf_stats {
    double median, mean, min, max, p99;
    double variation; /* standard deviation / mean */
};

/* Returns a time in microseconds: the CPU time of the whole process if is_cpu_time is true,
 * otherwise the elapsed time since an arbitrary moment. */
double perf_now_us(bool is_cpu_time);

/* Computes the statistics of `count` times in microseconds, and sorts `times`. If count is 0, all
 * statistics are 0. */
struct perf_stats perf_stats_of(double *times, size_t count);

#endif
