/* SPDX-License-Identifier: Apache-2.0
 * The schedules of all ranks. */
#include "sched/team.h"

#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tutti_ensemble_fini(struct tutti_ensemble *ensemble)
{
    for (uint32_t rank = 0; ensemble->schedules != NULL && rank < ensemble->nranks; rank++)
        if (ensemble->schedules[rank] != NULL)
            tutti_schedule_destroy(ensemble->schedules[rank]);
    free(ensemble->schedules);
    *ensemble = (struct tutti_ensemble){.nranks = 0};
}

static void name_team(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
                      uint32_t nranks, uint32_t root, struct tutti_ensemble *team)
{
    size_t size = sizeof team->name, at;

    at = (size_t)snprintf(team->name, size, "%s %s", tutti_collective_name(algorithm->collective),
                          algorithm->name);
    for (int i = 0; i < TUTTI_OPTION_COUNT && at < size; i++)
        if (options->value[i] != 0)
            at += (size_t)snprintf(team->name + at, size - at, " %s=%u",
                                   tutti_option_name((enum tutti_option)i), options->value[i]);
    if (at < size)
        at += (size_t)snprintf(team->name + at, size - at, ", %u rank%s", nranks,
                               nranks == 1 ? "" : "s");
    if (at < size && tutti_collective_has_root(algorithm->collective))
        snprintf(team->name + at, size - at, ", root %u", root);
}

int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_places *places, uint32_t nranks, uint32_t root,
              struct tutti_ensemble *ret_team)
{
    struct tutti_ensemble team = {.nranks = nranks};

    name_team(algorithm, options, nranks, root, &team);
    team.schedules = calloc(nranks, sizeof(struct tutti_schedule *));
    if (team.schedules == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the schedules of %u ranks", nranks);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape shape = {
            .nranks = nranks, .rank = rank, .root = root, .options = *options, .places = places};
        int rc = tutti_algorithm_schedule(algorithm, &shape, &team.schedules[rank]);

        if (rc != TUTTI_OK) {
            tutti_ensemble_fini(&team);
            return rc;
        }
    }
    *ret_team = team;
    return TUTTI_OK;
}

int team_create(const struct request *request, struct tutti_ensemble *ret_team)
{
    const struct tutti_algorithm *algorithm;
    enum tutti_collective collective;
    struct tutti_machine *machine;
    uint32_t nranks;
    int status, rc;

    status = request_collective(request, request->words[0], &collective);
    if (status != REQUEST_GO)
        return status;
    status = request_algorithm(request, collective, request->words[1], &algorithm);
    if (status != REQUEST_GO)
        return status;
    if (request->nwords > 2)
        return mistake(request, "\"%s\" is one word too many; see %s --help", request->words[2],
                       request->command);
    status = request_one_machine(request, &nranks, &machine);
    if (status != REQUEST_GO)
        return status;
    status = request_root(request, collective, nranks);
    if (status == REQUEST_GO) {
        rc = team_emit(algorithm, &request->options, machine == NULL ? NULL : &machine->places,
                       nranks, request->root, ret_team);
        status = rc == TUTTI_OK ? REQUEST_GO : failure(request, rc);
    }
    tutti_machine_destroy(machine);
    return status;
}
