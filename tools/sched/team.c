/* SPDX-License-Identifier: Apache-2.0
 * Builds the schedules of all ranks, or reads them from a file. */
#include "sched/team.h"

#include "base/result.h"
#include "common/file.h"
#include "import/load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends text to the title. Cuts off a title that is too long. */
static void add_title(struct team *team, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_title(struct team *team, const char *format, ...)
{
    size_t at = strlen(team->title);
    va_list args;

    va_start(args, format);
    vsnprintf(team->title + at, sizeof team->title - at, format, args);
    va_end(args);
}

/* Appends the number of ranks and the root. */
static void end_title(struct team *team)
{
    const struct tutti_schedule *first = team->ensemble.schedules[0];

    add_title(team, ", %u rank%s", first->nranks, first->nranks == 1 ? "" : "s");
    if (tutti_collective_has_root((enum tutti_collective)first->collective))
        add_title(team, ", root %u", first->root);
}

/* ---- from an algorithm ----------------------------------------------------------------------- */

int team_emit(const struct tutti_algorithm *algorithm, const struct tutti_options *options,
              const struct tutti_placement *places, uint32_t nranks, uint32_t root,
              struct team *ret_team)
{
    struct team team = {.is_vector = algorithm->serves_vector};

    TUTTI_TRY(tutti_ensemble_init(&team.ensemble, nranks));
    snprintf(team.ensemble.name, sizeof team.ensemble.name, "%s", algorithm->name);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape shape = {
            .nranks = nranks, .rank = rank, .root = root, .options = *options, .places = places};
        int rc = tutti_algorithm_schedule(algorithm, &shape, &team.ensemble.schedules[rank]);

        if (rc != TUTTI_OK) {
            team_fini(&team);
            return rc;
        }
    }
    add_title(&team, "%s %s", tutti_collective_name(algorithm->collective), algorithm->name);
    for (int i = 0; i < TUTTI_OPTION_COUNT; i++)
        if (options->value[i] != 0)
            add_title(&team, " %s=%u", tutti_option_name((enum tutti_option)i), options->value[i]);
    end_title(&team);
    *ret_team = team;
    return TUTTI_OK;
}

/* Builds the team for the collective, the algorithm and the options of the command line. */
static int emit_requested(const struct request *request, struct team *ret_team)
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

/* ---- from a file ----------------------------------------------------------------------------- */

bool team_is_file(const struct request *request)
{
    if (request->nwords != 1)
        return false;
    for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++)
        if (strcmp(request->words[0], tutti_collective_name((enum tutti_collective)i)) == 0)
            return false;
    return true;
}

int team_read(const struct request *request, struct team *ret_team)
{
    const char *name = request->words[0];
    struct team team = {.is_vector = false};
    char *text;
    int rc;

    if (request->nranks > 0 || request->has_root || request->has_options || request->topo != NULL)
        return mistake(request, "%s has its own ranks, root and sizes; leave out --ranks, --root, "
                       "--option and --topo", name);
    text = file_read(name);
    if (text == NULL)
        return mistake(request, "%s: %s; give a collective or a schedule's file", name,
                       strerror(errno));
    rc = tutti_import_read(name, text, strlen(text), &team.ensemble);
    free(text);
    if (rc != TUTTI_OK)
        return failure(request, rc);
    add_title(&team, "%s %s",
              tutti_collective_name((enum tutti_collective)team.ensemble.schedules[0]->collective),
              team.ensemble.name);
    end_title(&team);
    *ret_team = team;
    return REQUEST_GO;
}

int team_create(const struct request *request, struct team *ret_team)
{
    return team_is_file(request) ? team_read(request, ret_team)
                                 : emit_requested(request, ret_team);
}
