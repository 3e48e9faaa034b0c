/* SPDX-License-Identifier: Apache-2.0
 * Measures a machine: finds the places of the ranks, runs all measurements of meter.h, and writes a
 * description of the machine. */
#ifndef TUTTI_TOPO_SURVEY_H
#define TUTTI_TOPO_SURVEY_H

#include "topo/crew.h"

/* Runs all measurements; rank 0 writes the description. All ranks must call this together. Returns
 * the exit status. */
int survey_run(struct crew *crew);

/* Writes the text to the file, or to stdout if `file` is NULL. Returns the exit status. */
int survey_write(const char *file, const char *text);

#endif
