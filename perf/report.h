/* SPDX-License-Identifier: Apache-2.0
 * The table on stdout, the JSON file, and progress on a terminal. Rank 0 writes; all ranks
 * contribute results. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "measure.h"
#include "overlap.h"

#include <stdio.h>

/* The two forms of a call: out of place and in place. */
#define PERF_PLACES 2

/* The result of one form in one row, over all ranks. */
struct perf_cell {
    double time_us, algbw, busbw; /* microseconds; the bandwidths in GB/s */
    struct perf_stats blocks, samples;
    uint64_t wrong, overruns;
};

/* The place of a rank. Ranks exchange it as plain bytes. */
struct perf_where {
    int pid;
    char host[64];
    char device[PERF_GPU_NAME_BYTES + 16]; /* "": no GPU */
    double formed_us;
};

struct perf_report {
    FILE *json; /* NULL: no file, or not rank 0 */
    size_t rows;
    double bus_sum;     /* GB/s, over all timed columns */
    size_t bus_count;
    uint64_t wrong, overruns;
};

/* Collective: gathers where the ranks run, and rank 0 prints the header. */
void perf_report_open(struct perf_report *report, struct perf_rank *rank);

/* Collective: reports one row. `mine` points to this rank's PERF_PLACES results, of which the first
 * `nplaces` were measured. `overlap` is NULL if it was not measured. */
void perf_report_row(struct perf_report *report, struct perf_rank *rank, const struct perf_case *c,
                     const struct perf_result *mine, int nplaces,
                     const struct perf_overlap *overlap);

/* Collective: prints the footer, with --waiting the CPU use of waiting ranks, and with -M the
 * memory of all ranks. Returns the exit code, which is not 0 after a wrong value, a byte out of
 * bounds or too little bandwidth. */
int perf_report_close(struct perf_report *report, struct perf_rank *rank);

/* The memory that the calls use, in a few words. */
const char *perf_report_memory(const struct perf_options *options);

/* Shows on a terminal what is being measured; the next line overwrites it. */
void perf_report_progress(const struct perf_rank *rank, const struct perf_field *field, int block,
                          int nblocks);

#endif
