/* SPDX-License-Identifier: Apache-2.0
 * Schedules from files (TUTTI_SCHEDULE): read and proved by rank 0, shared, and used by the calls
 * that they are made for, in place of what the tuner would choose.
 */
#ifndef TUTTI_COMM_SCHEDULES_H
#define TUTTI_COMM_SCHEDULES_H

#include "comm/share.h"
#include "executor/plan.h"
#include "tuner/tuner.h"

struct tutti_schedules; /* those of one rank; NULL is none */

/* Rank 0: read what TUTTI_SCHEDULE names, `FILE` or `collective[64K-1M]=FILE`, separated by ':',
 * and offer it to the others. TUTTI_ERR_USAGE names the file, the place in it, and what is wrong.
 */
int tutti_schedules_read(struct tutti_share *share, uint32_t nranks,
                         struct tutti_schedules **ret_schedules);
/* The others, when it has come. */
int tutti_schedules_take(const struct tutti_share *share, uint32_t nranks, uint32_t rank,
                         struct tutti_schedules **ret_schedules);
void tutti_schedules_destroy(struct tutti_schedules *schedules);

/* The plan of the first one that is made for the call, and can run here; NULL if none is. Alike on
 * all ranks. */
const struct tutti_plan *tutti_schedules_find(const struct tutti_schedules *schedules,
                                              const struct tutti_tuner_view *view,
                                              const struct tutti_tuner_query *query);

/* Heap held, for the memory report. */
size_t tutti_schedules_bytes(const struct tutti_schedules *schedules);

#endif
