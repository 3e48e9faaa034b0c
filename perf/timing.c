/* SPDX-License-Identifier: Apache-2.0
 * Reads clocks and computes statistics. */
#include "timing.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

double perf_now_us(bool is_cpu_time)
{
    struct timespec now;

    clock_gettime(is_cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

struct perf_stats perf_stats_of(double *times, size_t count)
{
    struct perf_stats stats = {.median = 0};
    double squares = 0;

    if (count == 0)
        return stats;
    qsort(times, count, sizeof(*times), by_value);
    for (size_t i = 0; i < count; i++)
        stats.mean += times[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (times[i] - stats.mean) * (times[i] - stats.mean);
    stats.median = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
    stats.min = times[0];
    stats.max = times[count - 1];
    /* The 99th percentile is the smallest time that 99 of 100 times do not exceed. */
    stats.p99 = times[(count * 99 + 99) / 100 - 1];
    stats.variation = stats.mean > 0 ? sqrt(squares / (double)count) / stats.mean : 0;
    return stats;
}
