/* SPDX-License-Identifier: Apache-2.0
 * Reports the results: as a table on stdout, as a JSON file, and as progress on a terminal. All
 * ranks contribute results, and rank 0 writes them. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "measure.h"
#include "overlap.h"

#include <stdio.h>

/* The two forms of a call. */
enum { PERF_OUT_OF_PLACE, PERF_IN_PLACE, PERF_PLACES };

/* The result of one form in one row, combined over all ranks. */
struct perf_cell {
    double time_us, algbw, busbw; /* microseconds; the bandwidths in GB/s */
    struct perf_stats blocks, samples; /* as in struct perf_result */
    uint64_t wrong, overruns; /* wrong elements; changed guard bytes */
};

/* The place of a rank. Ranks exchange it as plain bytes. */
struct perf_where {
    int pid;
    char host[64];
    char device[PERF_GPU_NAME_BYTES + 16]; /* ", GPU 0 NAME"; "": no GPU */
    double formed_us; /* time that it took to form the communicator, in microseconds */
};

struct perf_report {
    FILE *json; /* NULL: there is no file, or this is not rank 0 */
    size_t rows;        /* number of rows so far */
    double bus_sum;     /* sum of the bus bandwidths of all cells, in GB/s */
    size_t bus_count;   /* number of these cells */
    uint64_t wrong, overruns; /* sums over all cells */
};

/* Initializes the report. Gathers the places of the ranks; then rank 0 prints the header and opens
 * the JSON file. All ranks must call this together. */
void perf_report_open(struct perf_report *report, struct perf_rank *rank);

/* Reports one row. All ranks must call this together. `mine` points to this rank's PERF_PLACES
 * results, of which the first `nplaces` were measured. `overlap` is NULL if it was not measured. */
void perf_report_row(struct perf_report *report, struct perf_rank *rank, const struct perf_case *c,
                     const struct perf_result *mine, int nplaces,
                     const struct perf_overlap *overlap);

/* Prints the footer. With --waiting, also measures and prints the CPU use of waiting ranks. With
 * -M, also prints the memory use of all ranks. All ranks must call this together. Returns the exit
 * code: 1 after a wrong value, a changed guard byte or too little bandwidth, otherwise 0. */
int perf_report_close(struct perf_report *report, struct perf_rank *rank);

/* Returns a static text that names the memory of the buffers. */
const char *perf_report_memory(const struct perf_options *options);

/* Shows the case that is being measured, on rank 0 and only on a terminal. The next line of output
 * overwrites this line. */
void perf_report_progress(const struct perf_rank *rank, const struct perf_field *field, int block,
                          int nblocks);

#endif
