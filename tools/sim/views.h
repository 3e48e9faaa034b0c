/* SPDX-License-Identifier: Apache-2.0
 * Views of a sweep: tables, JSON, pictures. */
#ifndef TUTTI_SIM_VIEWS_H
#define TUTTI_SIM_VIEWS_H

#include "sim/sweep.h"

#include <stdio.h>

void view_table(const struct sweep *sweep, FILE *out);
void view_json(const struct sweep *sweep, FILE *out);

/* Draws time against size if there are several sizes, time against ranks if there are several
 * numbers of ranks, and otherwise the critical path of the fastest case. Returns REQUEST_GO or the
 * exit status. */
int view_picture(const struct request *request, const struct sweep *sweep);

/* Draws the critical path of one case over time. Returns 0, or errno. */
int view_path(const struct sweep *sweep, const struct sim_case *one, const char *file_name);

#endif
