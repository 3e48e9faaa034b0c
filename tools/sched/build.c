/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched build: measures the time, the steps and the memory of building a rank's schedule. */
#include "base/result.h"
#include "common/table.h"
#include "common/units.h"
#include "sched/commands.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "usage: tutti-sched build COLLECTIVE --ranks N [options]\n"
    "\n"
    "Builds the schedules of some ranks and reports the cost for one rank: the mean and the worst\n"
    "CPU time, the most steps, and the most memory of a schedule (steps and dependencies). A\n"
    "program pays this once per algorithm, options and root. A schedule that takes a rank seconds\n"
    "ends the sample early. RANKS is the number of schedules that were built.\n"
    "\n"
    "  -n, --ranks N            ranks (default: those of the machine)\n"
    "  -a, --algorithm NAME     one algorithm, or all (default)\n"
    "      --option NAME=VALUE  an option of that algorithm; may be repeated\n"
    "      --root R             the root of a rooted collective (default 0)\n"
    "  -t, --topo MACHINE       a machine's file, description or name: the places of ranks\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n";

#define SAMPLES   9          /* ranks, besides the root, whose schedules are built */
#define ENOUGH_NS 2000000000 /* CPU time after which the sample of one algorithm ends */

/* The cost of one algorithm, over the ranks for which schedules were built. */
struct cost {
    uint64_t total_ns, worst_ns; /* CPU time of all these ranks, and of the slowest */
    uint32_t nranks;             /* number of these ranks */
    uint32_t most_steps;         /* the most steps of a schedule */
    size_t most_bytes;           /* the most memory of a schedule */
};

/* Returns the CPU time of this thread. Other load on the machine does not count in this time. */
static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Builds the schedule of one rank and adds its cost. Builds it twice and counts the shorter time,
 * because the first build also includes the time to get memory from the system. */
static int build_once(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                      struct cost *cost)
{
    uint64_t least_ns = UINT64_MAX;

    for (int turn = 0; turn < 2; turn++) {
        struct tutti_schedule *schedule;
        uint64_t begin_ns = now_ns(), spent_ns;
        size_t size_bytes;

        TUTTI_TRY(tutti_algorithm_schedule(algorithm, shape, &schedule));
        spent_ns = now_ns() - begin_ns;
        least_ns = spent_ns < least_ns ? spent_ns : least_ns;
        size_bytes = sizeof *schedule + schedule->nsteps * sizeof *schedule->steps +
                     (schedule->ndeps + schedule->namong) * sizeof *schedule->deps;
        cost->most_steps =
            schedule->nsteps > cost->most_steps ? schedule->nsteps : cost->most_steps;
        cost->most_bytes = size_bytes > cost->most_bytes ? size_bytes : cost->most_bytes;
        tutti_schedule_destroy(schedule);
    }
    cost->total_ns += least_ns;
    cost->worst_ns = least_ns > cost->worst_ns ? least_ns : cost->worst_ns;
    cost->nranks++;
    return TUTTI_OK;
}

/* Builds the schedules of the root and of SAMPLES ranks from the first to the last, each rank at
 * most once. */
static int build_sample(const struct tutti_algorithm *algorithm, struct tutti_shape shape,
                        struct cost *ret_cost)
{
    uint32_t n = shape.nranks, next = 0;

    *ret_cost = (struct cost){.nranks = 0};
    shape.rank = shape.root;
    TUTTI_TRY(build_once(algorithm, &shape, ret_cost));
    for (uint32_t i = 0; i < SAMPLES && ret_cost->total_ns < ENOUGH_NS; i++) {
        shape.rank = (uint32_t)((uint64_t)i * (n - 1) / (SAMPLES - 1));
        if (shape.rank < next || shape.rank == shape.root)
            continue;
        next = shape.rank + 1;
        TUTTI_TRY(build_once(algorithm, &shape, ret_cost));
    }
    return TUTTI_OK;
}

static void add_row(struct table *table, const struct tutti_algorithm *algorithm,
                    const struct cost *cost)
{
    char text[UNITS_TEXT];

    table_add(table, "%s", algorithm->name);
    table_add(table, "%s", units_count(cost->nranks, text));
    table_add(table, "%s", units_seconds((double)cost->total_ns / cost->nranks * 1e-9, text));
    table_add(table, "%s", units_seconds((double)cost->worst_ns * 1e-9, text));
    table_add(table, "%s", units_count(cost->most_steps, text));
    table_add(table, "%s", units_bytes((double)cost->most_bytes, text));
}

/* Prints the cost of the algorithm `only`, or of all algorithms of the collective if it is NULL. */
static int measure_all(const struct request *request, const struct tutti_algorithm *only,
                       enum tutti_collective collective, const struct tutti_shape *shape)
{
    struct table table;
    int rc = TUTTI_OK;

    table_init(&table, "ALGORITHM|>RANKS|>MEAN TIME|>WORST TIME|>STEPS|>MEMORY");
    for (size_t i = 0; i < tutti_algorithm_count() && rc == TUTTI_OK; i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        struct cost cost;

        if (algorithm->collective != collective || (only != NULL && algorithm != only))
            continue;
        rc = build_sample(algorithm, *shape, &cost);
        if (rc == TUTTI_OK)
            add_row(&table, algorithm, &cost);
    }
    if (rc == TUTTI_OK)
        table_print(&table, stdout);
    table_fini(&table);
    return rc == TUTTI_OK ? EXIT_SUCCESS : failure(request, rc);
}

static int run(const struct request *request)
{
    const struct tutti_algorithm *only = NULL;
    struct tutti_machine *machine = NULL;
    struct tutti_shape shape = {.root = request->root, .options = request->options};
    enum tutti_collective collective;
    int status = request_collective(request, request->words[0], &collective);

    if (status == REQUEST_GO && request->nwords > 1)
        return mistake(request, "\"%s\" is one word too many; name one algorithm by --algorithm",
                       request->words[1]);
    if (status == REQUEST_GO && request->algorithm != NULL &&
        strcmp(request->algorithm, "all") != 0)
        status = request_algorithm(request, collective, request->algorithm, &only);
    if (status == REQUEST_GO && only == NULL && request->has_options)
        return mistake(request, "--option belongs to one algorithm; give --algorithm NAME too");
    if (status == REQUEST_GO)
        status = request_one_machine(request, &shape.nranks, &machine);
    if (status == REQUEST_GO)
        status = request_root(request, collective, shape.nranks);
    if (status == REQUEST_GO) {
        shape.places = machine == NULL ? NULL : &machine->places;
        status = measure_all(request, only, collective, &shape);
    }
    tutti_machine_destroy(machine);
    return status;
}

const struct command sched_build = {
    .name = "tutti-sched build",
    .options = "ranks root option algorithm topo gpu nic cpu",
    .help = help,
    .run = run,
};
