/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched check: proves that schedules are correct, or reports where they are wrong. */
#include "schedule/check/check.h"

#include "base/result.h"
#include "common/progress.h"
#include "common/units.h"
#include "sched/commands.h"
#include "sched/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sched check COLLECTIVE ALGORITHM|all --ranks N[,N|N-N..] [options]\n"
    "       tutti-sched check SCHEDULE-FILE\n"
    "\n"
    "Plays the schedules of all ranks together and proves these facts for every timing: each\n"
    "output is exactly the promised result, sends match receives, nothing is read before it is\n"
    "written, no accesses race, all ranks get the same bits, and there is no deadlock even\n"
    "without buffering. If the proof fails, it names the rank, the step and the error. From 1024\n"
    "ranks on, the ranks in a sum are compared by hashes of 128 bits.\n"
    "\n"
    "The depth is the number of messages or signals in the longest chain of which each waits for\n"
    "the one before. Messages may need more rounds than that, as list and draw count them, because\n"
    "in a round a rank sends one message and receives one.\n"
    "\n"
    "  -n, --ranks N            ranks: 8, 2,4,8 or 2-9 (default: those of the machine)\n"
    "      --root R|all         the root of a rooted collective (default 0)\n"
    "      --option NAME=VALUE  an option of the algorithm; may be repeated\n"
    "  -t, --topo MACHINE       a machine's file, description or name: the places of ranks\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n"
    "\n"
    "Exit status: 0 all proved, 1 a schedule is wrong, 2 the command line is wrong.\n";

/* The number of teams that were proved, and of those that are wrong. */
struct tally {
    uint32_t proved, wrong;
};

/* From this number of ranks on, the checker compares sets of ranks by their hashes; see check.h. */
#define HASHED_RANKS 1024

/* Checks a team under the assumption that each lane buffers `credits` messages, or finds the least
 * number if `credits` is UINT32_MAX. is_vector asks for blocks of different sizes. Returns what
 * tutti_check_prove returns. */
static int prove(const struct team *team, uint32_t credits, bool is_vector,
                 struct tutti_check_report *ret_report)
{
    struct tutti_check_options options = {
        .credits = credits,
        .is_vector = is_vector,
        .is_hashed = team->ensemble.nranks >= HASHED_RANKS,
    };

    return tutti_check_prove((const struct tutti_schedule *const *)team->ensemble.schedules,
                             team->ensemble.nranks, &options, ret_report);
}

static void print_proof(const struct team *team, const struct tutti_check_report *report)
{
    char text[UNITS_TEXT];

    printf("%s: proved%s%s; depth %u, %s messages", team->title,
           team->ensemble.nranks >= HASHED_RANKS ? " by hashes" : "",
           team->is_vector ? ", blocks of any sizes" : "", report->depth,
           units_count(report->messages, text));
    if (report->orders > 0)
        printf(", sums in %u order%s", report->orders, report->orders == 1 ? "" : "s");
    putchar('\n');
}

/* Prints the error that a proof with `is_vector` has found. If the schedules are right with
 * buffered messages, also prints how many messages each lane must hold. */
static void print_fault(const struct team *team, bool is_vector,
                        const struct tutti_check_report *report)
{
    struct tutti_check_report buffered;

    printf("%s: wrong: rank %u", team->title, report->rank);
    if (report->step != UINT32_MAX)
        printf(", step %u", report->step);
    printf(": %s", report->what);
    if (prove(team, UINT32_MAX, is_vector, &buffered) == TUTTI_OK)
        printf("; right only where each lane holds %u message%s", buffered.credits,
               buffered.credits == 1 ? "" : "s");
    putchar('\n');
}

/* Proves the schedules of one team. Proves them for blocks of different sizes too, if the team
 * supports these. */
static int check_team(const struct request *request, const struct team *team, struct tally *tally)
{
    struct tutti_check_report report;
    bool is_vector = false;
    int rc;

    progress_show("%s ...", team->title);
    rc = prove(team, 0, is_vector, &report);
    if (rc == TUTTI_OK && team->is_vector) {
        is_vector = true;
        rc = prove(team, 0, is_vector, &report);
    }
    progress_clear();
    if (rc != TUTTI_OK && rc != TUTTI_ERR_ARGUMENT)
        return failure(request, rc);
    if (rc == TUTTI_OK)
        print_proof(team, &report);
    else
        print_fault(team, is_vector, &report);
    tally->proved += rc == TUTTI_OK;
    tally->wrong += rc != TUTTI_OK;
    return REQUEST_GO;
}

static int check_file(const struct request *request, struct tally *tally)
{
    struct team team;
    int status = team_read(request, &team);

    if (status != REQUEST_GO)
        return status;
    status = check_team(request, &team, tally);
    team_fini(&team);
    return status;
}

static int check_algorithm(const struct request *request, const struct tutti_algorithm *algorithm,
                           const struct tutti_placement *places, uint32_t nranks,
                           struct tally *tally)
{
    bool has_roots = tutti_collective_has_root(algorithm->collective);
    uint32_t first = request->has_every_root ? 0 : request->root;
    uint32_t last = request->has_every_root && has_roots ? nranks - 1 : first;
    int status = request_root(request, algorithm->collective, nranks);

    for (uint32_t root = first; root <= last && status == REQUEST_GO; root++) {
        struct team team;
        int rc = team_emit(algorithm, &request->options, places, nranks, root, &team);

        if (rc != TUTTI_OK)
            return failure(request, rc);
        status = check_team(request, &team, tally);
        team_fini(&team);
    }
    return status;
}

/* Checks the named algorithm, or all algorithms of the collective, for `nranks` ranks. 0 stands for
 * the ranks of the machine. */
static int check_ranks(const struct request *request, enum tutti_collective collective,
                       uint32_t nranks, struct tally *tally)
{
    bool is_all = request->words[1] != NULL && strcmp(request->words[1], "all") == 0;
    const struct tutti_algorithm *only = NULL;
    struct tutti_machine *machine;
    const struct tutti_placement *places;
    int status = REQUEST_GO;

    if (!is_all)
        status = request_algorithm(request, collective, request->words[1], &only);
    if (status == REQUEST_GO)
        status = request_machine(request, nranks, &machine);
    if (status != REQUEST_GO)
        return status;
    places = machine == NULL ? NULL : &machine->places;
    nranks = machine == NULL ? nranks : machine->places.nranks;
    for (size_t i = 0; i < tutti_algorithm_count() && status == REQUEST_GO; i++)
        if (tutti_algorithm(i)->collective == collective &&
            (is_all || tutti_algorithm(i) == only))
            status = check_algorithm(request, tutti_algorithm(i), places, nranks, tally);
    tutti_machine_destroy(machine);
    return status;
}

/* Checks everything that the command line asks for. */
static int check_all(const struct request *request, struct tally *tally)
{
    enum tutti_collective collective;
    int status = request_collective(request, request->words[0], &collective);

    if (status != REQUEST_GO)
        return status;
    if (request->nwords > 2)
        return mistake(request, "\"%s\" is one word too many; see %s --help", request->words[2],
                       request->command);
    if (request->nranks == 0 && request->topo == NULL)
        return mistake(request, "how many ranks? Give --ranks N");
    if (request->nranks == 0)
        return check_ranks(request, collective, 0, tally);
    for (size_t i = 0; i < request->nranks && status == REQUEST_GO; i++)
        status = check_ranks(request, collective, request->ranks[i], tally);
    return status;
}

static int run(const struct request *request)
{
    struct tally tally = {.proved = 0};
    int status = team_is_file(request) ? check_file(request, &tally) : check_all(request, &tally);

    if (status != REQUEST_GO)
        return status;
    if (tally.proved + tally.wrong > 1)
        printf("%u proved, %u wrong\n", tally.proved, tally.wrong);
    return tally.wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct command sched_check = {
    .name = "tutti-sched check",
    .options = "ranks root option topo gpu nic cpu",
    .help = help,
    .run = run,
};
