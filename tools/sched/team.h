/* SPDX-License-Identifier: Apache-2.0
 * Provides the schedules that a command line asks for. A team is the schedules of all ranks for one
 * collective.
 */
#ifndef TUTTI_SCHED_TEAM_H
#define TUTTI_SCHED_TEAM_H

#include "common/request.h"
#include "schedule/text.h"

struct team {
    struct tutti_ensemble ensemble;
    char title[192]; /* for example "reduce ring segments=4, 8 ranks, root 0" */
    bool is_vector;  /* true if the schedules support blocks of different sizes */
};

/* Builds the team for "COLLECTIVE ALGORITHM --ranks N --root R --option ... --topo ...". If the
 * words name a file, reads the team from the file instead. Returns REQUEST_GO, and then the caller
 * releases the team with team_fini. Otherwise returns the exit status after an error message. */
int team_create(const struct request *request, struct team *ret_team);

/* team_is_file returns true if there is only one word and the word is not a collective. The word is
 * then the name of a file. team_read reads that file, and returns the same as team_create. */
bool team_is_file(const struct request *request);
int team_read(const struct request *request, struct team *ret_team);

/* Builds the algorithm's schedules of all ranks. `places` may be NULL. Returns TUTTI_OK, and then
 * the caller releases the team with team_fini. Otherwise returns an error code. */
int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_placement *places, uint32_t nranks, uint32_t root,
              struct team *ret_team);

static inline void team_fini(struct team *team)
{
    tutti_ensemble_fini(&team->ensemble);
}

#endif
