/* SPDX-License-Identifier: Apache-2.0
 * The results as a JSON file, written by rank 0. */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "report.h"

/* Opens the file that the options name, if any, writes what is known before the first row, and sets
 * report->json. `where` has one entry per rank. */
void perf_json_open(struct perf_report *report, const struct perf_rank *rank,
                    const struct perf_where *where);

/* The functions below need an open file (report->json). `overlap` is NULL if it was not
 * measured. */
void perf_json_row(const struct perf_report *report, const struct perf_options *options,
                   const struct perf_case *c, const struct perf_cell *cells, int nplaces,
                   const struct perf_overlap *overlap, const tuttiExplanation_t *explanation);
void perf_json_close(struct perf_report *report, const struct perf_rank *rank, double average,
                     bool is_good);

#endif
