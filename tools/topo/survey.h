/* SPDX-License-Identifier: Apache-2.0
 * Measuring a machine: who lives where, all that meter.h measures, and the description. */
#ifndef TUTTI_TOPO_SURVEY_H
#define TUTTI_TOPO_SURVEY_H

#include "topo/crew.h"

/* What every rank does; rank 0 writes the description. Gives the exit status. */
int survey_run(struct crew *crew);

/* Cores that this process may use. */
int survey_cores(void);

/* Write to the file, or to stdout if there is none. Gives the exit status. */
int survey_write(const char *file, const char *text);

#endif
