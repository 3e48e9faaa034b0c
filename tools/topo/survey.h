/* SPDX-License-Identifier: Apache-2.0
 * Measures a machine: the placement of ranks, everything in meter.h, and the description. */
#ifndef TUTTI_TOPO_SURVEY_H
#define TUTTI_TOPO_SURVEY_H

#include "topo/crew.h"

/* Runs the survey on every rank; rank 0 writes the description. Returns the exit status. */
int survey_run(struct crew *crew);

/* The number of cores that this process may use. */
int survey_cores(void);

/* Writes to the file, or to stdout if `file` is NULL. Returns the exit status. */
int survey_write(const char *file, const char *text);

#endif
