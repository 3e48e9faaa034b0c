/* SPDX-License-Identifier: Apache-2.0
 * Schedules from files (TUTTI_SCHEDULE). Rank 0 reads and shares the files, and every rank proves
 * the schedules correct before use. A schedule replaces the tuner's choice for the calls that it
 * was made for. */
#ifndef TUTTI_COMM_SCHEDULES_H
#define TUTTI_COMM_SCHEDULES_H

#include "comm/share.h"
#include "executor/plan.h"
#include "tuner/tuner.h"

struct tutti_schedules; /* the schedules of one rank; NULL: none */

/* On rank 0: reads the files that TUTTI_SCHEDULE names, as `FILE` or `collective[64K-1M]=FILE`,
 * separated by ':', and offers them to the other ranks. Files for another number of ranks are
 * skipped, with a log line. TUTTI_ERR_USAGE: the variable or a file is malformed, or a schedule is
 * wrong; the message names the file, the place in it, and the mistake. The caller destroys
 * *ret_schedules. */
int tutti_schedules_read(struct tutti_share *share, uint32_t nranks,
                         struct tutti_schedules **ret_schedules);
/* On the other ranks: takes this rank's schedules out of `share`, once its bytes have arrived. The
 * errors are those of tutti_schedules_read, and TUTTI_ERR_REMOTE: the bytes are malformed. The
 * caller destroys *ret_schedules. */
int tutti_schedules_take(const struct tutti_share *share, uint32_t nranks, uint32_t rank,
                         struct tutti_schedules **ret_schedules);
/* Frees the schedules. NULL is ignored. */
void tutti_schedules_destroy(struct tutti_schedules *schedules);

/* Returns the plan of the first schedule that was made for the call and can run on this
 * communicator. Returns NULL if there is none, or if the call is a v-form. All ranks find the same
 * schedule. The plan lives as long as `schedules`. */
const struct tutti_plan *tutti_schedules_find(const struct tutti_schedules *schedules,
                                              const struct tutti_tuner_view *view,
                                              const struct tutti_tuner_query *query);

/* Returns the name of the file of a plan that tutti_schedules_find returned. The name lives as long
 * as `schedules`. */
const char *tutti_schedules_file(const struct tutti_schedules *schedules,
                                 const struct tutti_plan *plan);
/* If files have a schedule of the call's collective, but tutti_schedules_find finds none, writes
 * why the first of them does not serve the call, and returns true. For example, "ring.tutti serves
 * no v-form". */
bool tutti_schedules_refusal(const struct tutti_schedules *schedules,
                             const struct tutti_tuner_view *view,
                             const struct tutti_tuner_query *query, char *text, size_t size);

/* Returns the bytes of heap that the schedules hold, for the memory report. */
size_t tutti_schedules_bytes(const struct tutti_schedules *schedules);

#endif
