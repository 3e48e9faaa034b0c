/* SPDX-License-Identifier: Apache-2.0
 * The results as a JSON file, which rank 0 writes. */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "report.h"

/* Open the file that the options name, if any, and write what is known before the first row.
 * `where` has an entry for each rank. Sets report->json. */
void perf_json_open(struct perf_report *report, const struct perf_rank *rank,
                    const struct perf_where *where);

/* The others need an open file. `overlap` NULL: not measured. */
void perf_json_row(const struct perf_report *report, const struct perf_options *options,
                   const struct perf_case *c, const struct perf_cell *cells, int nplaces,
                   const struct perf_overlap *overlap, const tuttiExplanation_t *explanation);
void perf_json_close(struct perf_report *report, const struct perf_rank *rank, double average,
                     bool is_good);

#endif
