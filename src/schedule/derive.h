/* SPDX-License-Identifier: Apache-2.0
 * Deriving what must wait for what (build.h) from what the steps touch. */
#ifndef TUTTI_SCHEDULE_DERIVE_H
#define TUTTI_SCHEDULE_DERIVE_H

#include "schedule/step.h"

/* Find out how many channels there are, and whether all steps are one-sided. */
void tutti_schedule_summarise(struct tutti_schedule *schedule);

/* Replace the dependencies of all steps; also counts the channels and says whether the schedule is
 * one-sided. Time and memory grow with the chunks that the steps touch. TUTTI_ERR_SYSTEM: no
 * memory, the schedule is as before. */
int tutti_schedule_derive(struct tutti_schedule *schedule);

#endif
