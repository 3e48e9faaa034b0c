/* SPDX-License-Identifier: Apache-2.0
 * What a sweep looks like: tables, JSON, pictures. */
#ifndef TUTTI_SIM_VIEWS_H
#define TUTTI_SIM_VIEWS_H

#include "sim/sweep.h"

#include <stdio.h>

void view_table(const struct sweep *sweep, FILE *out);
void view_json(const struct sweep *sweep, FILE *out);

/* Time against size where there are several sizes, against ranks where there are several of these,
 * else the longest path of the fastest case. REQUEST_GO or the exit status. */
int view_picture(const struct request *request, const struct sweep *sweep);

/* The longest path of one case, in time. 0, or errno. */
int view_path(const struct sweep *sweep, const struct sim_case *one, const char *file_name);

#endif
