/* SPDX-License-Identifier: Apache-2.0
 * The schedules of all ranks that a command line asks for.
 */
#ifndef TUTTI_SCHED_TEAM_H
#define TUTTI_SCHED_TEAM_H

#include "common/request.h"
#include "schedule/text.h"

/* "COLLECTIVE ALGORITHM --ranks N --root R --option ... --topo ...", or one word: a file. The
 * caller finishes the team. REQUEST_GO or the exit status. */
int team_create(const struct request *request, struct tutti_ensemble *ret_team);

/* The algorithm's schedules of all ranks. TUTTI_OK or a failure. */
int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_places *places, uint32_t nranks, uint32_t root,
              struct tutti_ensemble *ret_team);

#endif
