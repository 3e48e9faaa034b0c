/* SPDX-License-Identifier: Apache-2.0
 * Shows the results of a sweep to the user as JSON or as a picture. */
#ifndef TUTTI_SIM_VIEWS_H
#define TUTTI_SIM_VIEWS_H

#include "sim/sweep.h"

#include <stdio.h>

/* Writes all cases, or the fastest of each size, as a JSON object. view_json_cases writes only its
 * member "cases". */
void view_json(const struct sweep *sweep, bool only_best, FILE *out);
void view_json_cases(const struct sweep *sweep, bool only_best, FILE *out);

/* Draws time against size if the sweep has several sizes. If it has several numbers of ranks, draws
 * time against the number of ranks. Otherwise draws the critical path of the fastest case. The file
 * is the one that the option -o names. Returns REQUEST_GO or, after an error message, the exit
 * status. It is a mistake if sizes and numbers of ranks both vary, or if no case was simulated. */
int view_picture(const struct request *request, const struct sweep *sweep);

/* Draws the critical path of one case over time into the file. Returns 0, or an error number of
 * errno.h. */
int view_path(const struct sweep *sweep, const struct sim_case *one, const char *file_name);

#endif
