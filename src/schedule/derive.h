/* SPDX-License-Identifier: Apache-2.0
 * Derives which steps must wait for which (build.h) from what the steps touch.
 */
#ifndef TUTTI_SCHEDULE_DERIVE_H
#define TUTTI_SCHEDULE_DERIVE_H

#include "schedule/step.h"

/* Set nchannels and is_one_sided from the steps. */
void tutti_schedule_summarize(struct tutti_schedule *schedule);

/* Replace the dependencies of all steps; also does what tutti_schedule_summarize does. Time and
 * memory grow with the number of accesses and of chunks. TUTTI_ERR_SYSTEM: no memory; the
 * dependencies are then incomplete, and the schedule can only be destroyed. */
int tutti_schedule_derive(struct tutti_schedule *schedule);

#endif
