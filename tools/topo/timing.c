/* SPDX-License-Identifier: Apache-2.0
 * Reads the clock, takes medians of measured times, and shows progress while a measurement runs. */
#include "topo/timing.h"

#include "common/progress.h"
#include "common/units.h"

#include <stdlib.h>
#include <time.h>

double timing_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int timing_blocks(const struct crew *crew)
{
    return crew->is_quick ? 3 : TIMING_BLOCKS;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double timing_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void timing_show(const struct crew *crew, const char *what, size_t size)
{
    char text[UNITS_TEXT];

    if (crew->rank == 0)
        progress_show("measuring %s of %s", what, units_bytes((double)size, text));
}

void timing_show_end(const struct crew *crew)
{
    if (crew->rank == 0)
        progress_clear();
}
