/* SPDX-License-Identifier: Apache-2.0
 * The schedules of all ranks that a command line asks for.
 */
#ifndef TUTTI_SCHED_TEAM_H
#define TUTTI_SCHED_TEAM_H

#include "common/request.h"
#include "schedule/text.h"

struct team {
    struct tutti_ensemble ensemble;
    char title[192]; /* "reduce ring segments=4, 8 ranks, root 0" */
    bool is_vector;  /* serves blocks of different sizes */
};

/* "COLLECTIVE ALGORITHM --ranks N --root R --option ... --topo ...", or one word: a file. The
 * caller finishes the team. REQUEST_GO or the exit status. */
int team_create(const struct request *request, struct team *ret_team);

/* Do the words name a file? */
bool team_is_file(const struct request *request);
int team_read(const struct request *request, struct team *ret_team);

/* The algorithm's schedules of all ranks. TUTTI_OK or a failure. */
int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_places *places, uint32_t nranks, uint32_t root,
              struct team *ret_team);

static inline void team_fini(struct team *team)
{
    tutti_ensemble_fini(&team->ensemble);
}

#endif
