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
    bool is_vector;  /* supports blocks of different sizes */
};

/* Creates the team of "COLLECTIVE ALGORITHM --ranks N --root R --option ... --topo ...", or reads
 * it from a file if there is only one word. The caller releases it with team_fini. Returns
 * REQUEST_GO or the exit status. */
int team_create(const struct request *request, struct team *ret_team);

/* True if the words name a file. team_read reads it and returns REQUEST_GO or the exit status. */
bool team_is_file(const struct request *request);
int team_read(const struct request *request, struct team *ret_team);

/* Builds the algorithm's schedules of all ranks. Returns TUTTI_OK or an error code. */
int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_places *places, uint32_t nranks, uint32_t root,
              struct team *ret_team);

static inline void team_fini(struct team *team)
{
    tutti_ensemble_fini(&team->ensemble);
}

#endif
