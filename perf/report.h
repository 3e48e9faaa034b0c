/* SPDX-License-Identifier: Apache-2.0
 * The table on stdout, the JSON file, progress on a terminal. Rank 0 writes, all ranks add up. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "measure.h"
#include "overlap.h"

#include <stdio.h>

/* Out of place and in place. */
#define PERF_PLACES 2

/* One place of one row, over all ranks. */
struct perf_cell {
    double time_us, algbw, busbw; /* GB/s */
    struct perf_stats blocks, samples;
    uint64_t wrong, overruns;
};

/* Where a rank runs. Plain bytes: ranks exchange it. */
struct perf_where {
    int pid;
    char host[64];
    char device[PERF_GPU_NAME_BYTES + 16]; /* "": none */
    double formed_us;
};

struct perf_report {
    FILE *json; /* NULL: none, or not rank 0 */
    size_t rows;
    double bus_sum;     /* GB/s, over all timed columns */
    size_t bus_count;
    uint64_t wrong, overruns;
};

/* Collective: gathers where the ranks run. */
void perf_report_open(struct perf_report *report, struct perf_rank *rank);

/* Collective: one row. `mine` is what this rank measured, for the first `nplaces` places;
 * `overlap` is NULL if that was not asked for. */
void perf_report_row(struct perf_report *report, struct perf_rank *rank, const struct perf_case *c,
                     const struct perf_result *mine, int nplaces,
                     const struct perf_overlap *overlap);

/* Collective: the footer, with --waiting what waiting costs, with -M the memory of all ranks.
 * Returns the exit code: not 0 after a wrong value, a byte out of bounds or too little
 * bandwidth. */
int perf_report_close(struct perf_report *report, struct perf_rank *rank);

/* Which memory the calls use, in a few words. */
const char *perf_report_memory(const struct perf_options *options);

/* On a terminal, show what is being measured; overwritten by the next line. */
void perf_report_progress(const struct perf_rank *rank, const struct perf_field *field, int block,
                          int nblocks);

#endif
