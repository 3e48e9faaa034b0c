/* SPDX-License-Identifier: Apache-2.0
 * Writes the results to a JSON file. Only rank 0 calls these functions. If the file cannot be
 * written, the program ends. */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "report.h"

/* Opens the file that the options name, writes all members before the results, and sets
 * report->json. Does nothing if the options name no file. `where` has one entry per rank. */
void perf_json_open(struct perf_report *report, const struct perf_rank *rank,
                    const struct perf_where *where);

/* perf_json_row writes one row of results. `cells` has `nplaces` entries, for calls out of place
 * and in place. `overlap` is NULL if the overlap was not measured. perf_json_close writes the
 * totals and closes the file. Both functions need an open file (report->json). */
void perf_json_row(const struct perf_report *report, const struct perf_options *options,
                   const struct perf_case *c, const struct perf_cell *cells, int nplaces,
                   const struct perf_overlap *overlap, const tuttiExplanation_t *explanation);
void perf_json_close(struct perf_report *report, const struct perf_rank *rank, double average,
                     bool is_good);

#endif
