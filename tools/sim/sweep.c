/* SPDX-License-Identifier: Apache-2.0
 * Finds the cases that the command line asks for, and simulates them. */
#include "sim/sweep.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/topo_machine.h"
#include "common/tuner_view.h"
#include "common/units.h"
#include "schedule/bind.h"
#include "tuner/candidates.h"
#include "tuner/price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES   64 /* most sizes of a sweep */
#define SAMPLES 4  /* ranks from which the number of steps is estimated */
#define LARGE_STEPS 100000    /* steps of all ranks that take some seconds */
/* Chunks of at least ALIGN_FROM_BYTES are whole cache lines (schedule/bind.h). Half a line more or
 * less is at most a thousandth of a chunk of LEAST_EVEN_BYTES. */
#define LINE_BYTES 64
#define ALIGN_FROM_BYTES 512
#define LEAST_EVEN_BYTES 32768
/* The same for plays that would be left out otherwise: at most a hundredth. */
#define LEAST_EVEN_LARGE_BYTES 3200

/* Makes the schedules of one call. It is the context of a tutti_sim_source, through which the
 * simulator asks for the schedule of each rank. */
struct schedule_maker {
    const struct tutti_algorithm *algorithm;
    struct tutti_shape shape;
};

/* ---- one case -------------------------------------------------------------------------------- */

static int make_schedule(void *context, uint32_t rank, const struct tutti_schedule **ret_schedule)
{
    struct schedule_maker *maker = context;
    struct tutti_schedule *schedule;

    maker->shape.rank = rank;
    TUTTI_TRY(tutti_algorithm_schedule(maker->algorithm, &maker->shape, &schedule));
    *ret_schedule = schedule;
    return TUTTI_OK;
}

static void destroy_schedule(void *context, const struct tutti_schedule *schedule)
{
    (void)context;
    tutti_schedule_destroy((struct tutti_schedule *)(uintptr_t)schedule);
}

/* Estimates the number of steps of all ranks from the mean of SAMPLES ranks. The first ranks of a
 * rooted collective are not typical, so the sampled ranks lie far apart. */
static int count_steps(struct schedule_maker *maker, uint64_t *ret_nsteps)
{
    uint32_t n = maker->shape.nranks;
    const uint32_t samples[SAMPLES] = {0, n / 3, n / 2, n - 1};
    uint64_t steps = 0;

    for (size_t i = 0; i < SAMPLES; i++) {
        const struct tutti_schedule *schedule;

        TUTTI_TRY(make_schedule(maker, samples[i], &schedule));
        steps += schedule->nsteps;
        destroy_schedule(maker, schedule);
    }
    *ret_nsteps = (steps + SAMPLES - 1) / SAMPLES * n;
    return TUTTI_OK;
}

/* Raises *npieces to the number of pieces in which a one-sided schedule of blocks of `block` bytes
 * runs. Each piece must fit in half of a window. */
static int count_pieces(struct schedule_maker *maker, size_t block,
                        const struct tutti_tuner_view *view, double *npieces)
{
    const struct tutti_schedule *schedule;
    size_t piece = block;

    TUTTI_TRY(make_schedule(maker, 0, &schedule));
    if (schedule->is_one_sided)
        piece = tutti_bind_piece(schedule, 1, block, view->half_bytes);
    destroy_schedule(maker, schedule);
    if (piece > 0)
        *npieces = fmax(*npieces, ceil((double)block / (double)piece));
    return TUTTI_OK;
}

/* Lets the blocks of large calls have as many bytes in each chunk. Chunks whose sizes differ by a
 * cache line end at times of their own, and each end is an event: such a play takes far longer, and
 * says the same. Calls of very many steps are played only with even chunks. */
static int even_chunks(struct schedule_maker *maker, bool has_many_steps,
                       struct tutti_sim_source *source)
{
    const struct tutti_schedule *schedule;
    size_t nchunks, chunk, unit;

    TUTTI_TRY(make_schedule(maker, 0, &schedule));
    nchunks = schedule->chunks_per_block;
    destroy_schedule(maker, schedule);
    chunk = source->block_count / nchunks;
    unit = chunk >= ALIGN_FROM_BYTES ? nchunks * LINE_BYTES : nchunks;
    if (chunk >= (has_many_steps ? LEAST_EVEN_LARGE_BYTES : LEAST_EVEN_BYTES))
        source->block_count = (source->block_count + unit / 2) / unit * unit;
    return TUTTI_OK;
}

/* Leaves out a case with too many steps, unless a few ranks can stand for all. On a machine with
 * paths no message waits for a port, so that a few ranks have the same times as all, and stand for
 * them in any large case. */
static int limit_steps(const struct request *request, const struct tutti_machine *machine,
                       struct tutti_sim_source *source, struct sim_case *one)
{
    uint32_t period;

    one->is_left_out = one->nsteps > request->most_steps;
    if (!one->is_left_out && (machine->links.npaths == 0 || one->nsteps < LARGE_STEPS))
        return TUTTI_OK;
    TUTTI_TRY(tutti_sim_find_period(source, machine, &period));
    if (period == 0 || one->nsteps / one->nranks * period > request->most_steps)
        return TUTTI_OK;
    one->is_left_out = false;
    one->period = source->period = period;
    return TUTTI_OK;
}

/* Simulates a case whose ranks, size, choice, price and pieces are known. Sets its results. */
static int play(const struct request *request, const struct tutti_machine *machine,
                enum tutti_collective collective, struct sim_case *one)
{
    size_t block = vector_block_bytes(collective, one->nranks, one->size_bytes);
    struct schedule_maker maker = {
        .algorithm = one->choice.algorithm,
        .shape = {.nranks = one->nranks,
                  .root = request->root,
                  .options = one->choice.options,
                  .places = &machine->places},
    };
    struct tutti_sim_source source = {
        .nranks = one->nranks,
        .schedule = make_schedule,
        .drop = destroy_schedule,
        .context = &maker,
        .element_bytes = 1,
        .footprint_bytes = tutti_machine_footprint(collective, one->nranks, (double)block),
    };
    struct tutti_tuner_view view;

    TUTTI_TRY(tutti_sim_bound(machine, collective, request->root, (double)block, &one->bound));
    TUTTI_TRY(count_steps(&maker, &one->nsteps));
    tuner_view_init(machine, &view);
    if (request->wants_pieces && block > 0)
        TUTTI_TRY(count_pieces(&maker, block, &view, &one->npieces));
    source.block_count = (size_t)ceil((double)block / one->npieces);
    TUTTI_TRY(even_chunks(&maker, one->nsteps > request->most_steps, &source));
    TUTTI_TRY(limit_steps(request, machine, &source, one));
    if (one->is_left_out)
        return TUTTI_OK;
    TUTTI_TRY(tutti_simulate(&source, machine, &one->report));
    if (one->report.seconds > 0)
        one->bus_bytes_per_s =
            vector_bus_factor(collective, one->nranks) * one->size_bytes / sweep_seconds(one);
    return TUTTI_OK;
}

double sweep_bound(const struct sim_case *one)
{
    return fmax(one->bound.latency_s, one->bound.bandwidth_s);
}

double sweep_seconds(const struct sim_case *one)
{
    return one->npieces * one->report.seconds;
}

const char *sweep_link(const struct sim_case *one, char text[SWEEP_LINK_TEXT])
{
    const struct tutti_sim_report *report = one == NULL ? NULL : &one->report;
    char played[UNITS_TEXT], all[UNITS_TEXT];

    if (report == NULL || report->nlinks == 0 || report->seconds <= 0)
        snprintf(text, SWEEP_LINK_TEXT, "-");
    else if (one->period > 0)
        snprintf(text, SWEEP_LINK_TEXT, "%s, %.0f%%; by symmetry: %s of %s ranks",
                 report->links[0].name, 100 * report->links[0].busy_s / report->seconds,
                 units_count(one->period, played), units_count(one->nranks, all));
    else
        snprintf(text, SWEEP_LINK_TEXT, "%s, %.0f%%", report->links[0].name,
                 100 * report->links[0].busy_s / report->seconds);
    return text;
}

void sweep_print_symmetric(const struct sweep *sweep, const char *where)
{
    size_t count = 0;
    char text[UNITS_TEXT];

    for (size_t i = 0; i < sweep->ncases; i++)
        count += sweep->cases[i].period > 0;
    if (count > 0)
        printf("%s case%s simulated by symmetry%s: a few ranks stand for all\n",
               units_count(count, text), count == 1 ? "" : "s", where);
}

void sweep_print_left_out(const struct sweep *sweep, const char *where)
{
    size_t count = 0;
    char text[UNITS_TEXT];

    for (size_t i = 0; i < sweep->ncases; i++)
        count += sweep->cases[i].is_left_out;
    if (count > 0)
        printf("%s case%s left out%s for the number of steps; see --steps\n",
               units_count(count, text), count == 1 ? "" : "s", where);
}

/* ---- which cases ----------------------------------------------------------------------------- */

static bool wants_chosen(const struct request *request)
{
    return request->algorithm != NULL && strcmp(request->algorithm, "chosen") == 0;
}

/* Lists the sizes of the sweep. A barrier moves no data, so its only size is 0. */
static size_t list_sizes(const struct request *request, enum tutti_collective collective,
                         double sizes[SIZES])
{
    size_t count = 0;

    if (!tutti_collective_has_data(collective)) {
        sizes[0] = 0;
        return 1;
    }
    for (double size = request->first_bytes; size <= request->last_bytes && count < SIZES;
         size *= request->factor)
        sizes[count++] = size;
    return count;
}

/* Adds a case of zeros and returns it. The pointer is valid until the next call. */
static struct sim_case *add_case(struct sweep *sweep)
{
    if (sweep->ncases == sweep->capacity) {
        sweep->capacity = sweep->capacity == 0 ? 64 : 2 * sweep->capacity;
        sweep->cases = must_have(realloc(sweep->cases, sweep->capacity * sizeof *sweep->cases));
    }
    sweep->cases[sweep->ncases] = (struct sim_case){.nranks = 0};
    return &sweep->cases[sweep->ncases++];
}

/* Takes the options that the user gives, or the options that the tuner finds best for this call. */
static int choose_options(const struct request *request, const struct tutti_tuner_view *view,
                          const struct tutti_tuner_query *query,
                          const struct tutti_algorithm *algorithm, struct tutti_choice *ret_choice)
{
    double seconds;

    if (request->has_options) {
        *ret_choice = (struct tutti_choice){.algorithm = algorithm};
        return tutti_algorithm_options(algorithm, &request->options, &ret_choice->options);
    }
    tutti_candidate_cheapest_variant(view, query, algorithm, ret_choice, &seconds);
    return TUTTI_OK;
}

static void add_choice(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       const struct tutti_choice *choice, double size, struct sweep *sweep)
{
    struct sim_case *one = add_case(sweep);

    one->nranks = view->nranks;
    one->size_bytes = size;
    one->choice = *choice;
    one->priced_s = tutti_price(view, query, choice);
    one->npieces = tutti_price_pieces(view, query, choice->algorithm);
}

/* Returns true if --within is given and the price of the choice exceeds the lowest price by more
 * than this factor. */
static bool is_too_slow(const struct request *request, const struct tutti_tuner_view *view,
                        const struct tutti_tuner_query *query, const struct tutti_choice *choice)
{
    struct tutti_choice cheapest;
    double lowest;

    return request->within > 0 && tutti_candidate_cheapest(view, query, &cheapest, &lowest) &&
           tutti_price(view, query, choice) > request->within * lowest;
}

/* Adds the cases of one size on one machine. There is one case for each algorithm that can serve
 * the call. With `--algorithm chosen`, there is only the case that the tuner chooses. */
static int add_cases(const struct request *request, const struct tutti_machine *machine,
                     double size, struct sweep *sweep)
{
    const struct tutti_algorithm *only = sweep->only;
    struct tutti_tuner_query query = {.collective = sweep->collective, .root = request->root};
    struct tutti_tuner_view view;
    struct tutti_choice choice;

    tuner_view_init(machine, &view);
    query.block_bytes = vector_block_bytes(sweep->collective, view.nranks, size);
    if (wants_chosen(request)) {
        TUTTI_TRY(tutti_tuner_choose(&view, &query, &choice, NULL));
        add_choice(&view, &query, &choice, size, sweep);
        return TUTTI_OK;
    }
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);

        if (algorithm->collective != sweep->collective || (only != NULL && algorithm != only))
            continue;
        if (!tutti_tuner_can_serve(&view, &query, algorithm)) {
            if (only == NULL)
                continue;
            return tutti_fail(TUTTI_ERR_ARGUMENT, "--algorithm %s needs ranks that share memory; "
                              "give a machine of one node, such as \"node %u; level node ...\"",
                              algorithm->name, view.nranks);
        }
        TUTTI_TRY(choose_options(request, &view, &query, algorithm, &choice));
        if (!is_too_slow(request, &view, &query, &choice))
            add_choice(&view, &query, &choice, size, sweep);
    }
    return TUTTI_OK;
}

/* ---- all cases ------------------------------------------------------------------------------- */

int sweep_begin(const struct request *request, const char *collective, struct sweep *ret_sweep)
{
    const char *name = request->algorithm;
    int status;

    *ret_sweep = (struct sweep){.cases = NULL};
    status = request_collective(request, collective, &ret_sweep->collective);
    if (status == REQUEST_GO && name != NULL && !wants_chosen(request) && strcmp(name, "all") != 0)
        status = request_algorithm(request, ret_sweep->collective, name, &ret_sweep->only);
    if (status == REQUEST_GO && ret_sweep->only == NULL && request->has_options)
        return mistake(request, "--option belongs to one algorithm; give --algorithm NAME too");
    return status;
}

int sweep_load(const struct request *request, const struct sweep *sweep, const char *topo,
               uint32_t nranks, struct tutti_machine **ret_machine, char *ret_about)
{
    const char *name = topo == NULL ? TOPO_MACHINE_HERE : topo;
    struct tutti_machine *machine = NULL;
    int rc, status;

    *ret_machine = NULL;
    *ret_about = '\0';
    progress_show("the links, paths and rings of %.60s", name);
    if (strcmp(name, TOPO_MACHINE_HERE) == 0 && !tutti_hints_are_given(&request->hints))
        rc = topo_machine_here(nranks, &machine, ret_about);
    else
        rc = topo_machine_load(request->command, name, &request->hints, nranks, &machine);
    progress_clear();
    if (rc != TUTTI_OK)
        return failure(request, rc);
    nranks = machine->places.nranks;
    status = request_root(request, sweep->collective, nranks);
    if (status == REQUEST_GO && nranks < 2)
        status = mistake(request, "--ranks 1: a simulation needs two ranks; give 2 or more");
    if (status != REQUEST_GO) {
        tutti_machine_destroy(machine);
        return status;
    }
    *ret_machine = machine;
    return REQUEST_GO;
}

int sweep_add(const struct request *request, const struct tutti_machine *machine,
              struct sweep *sweep)
{
    double sizes[SIZES];
    size_t nsizes = list_sizes(request, sweep->collective, sizes);

    for (size_t i = 0; i < nsizes; i++) {
        int rc = add_cases(request, machine, sizes[i], sweep);

        if (rc != TUTTI_OK)
            return failure(request, rc);
    }
    return REQUEST_GO;
}

int sweep_play(const struct request *request, const struct tutti_machine *machine,
               struct sweep *sweep, size_t index)
{
    struct sim_case *one = &sweep->cases[index];
    char ranks[UNITS_TEXT], size[UNITS_TEXT];
    int rc;

    progress_show("%zu of %zu: %s, %s ranks, %s", index + 1, sweep->ncases,
                  one->choice.algorithm->name, units_count(one->nranks, ranks),
                  units_bytes(one->size_bytes, size));
    rc = play(request, machine, sweep->collective, one);
    progress_clear();
    return rc == TUTTI_OK ? REQUEST_GO : failure(request, rc);
}

size_t sweep_size_end(const struct sweep *sweep, size_t first)
{
    const struct sim_case *one = &sweep->cases[first];
    size_t end = first + 1;

    while (end < sweep->ncases && sweep->cases[end].size_bytes == one->size_bytes &&
           sweep->cases[end].nranks == one->nranks)
        end++;
    return end;
}

struct sim_case *sweep_mark_best(struct sweep *sweep, size_t first, size_t end)
{
    struct sim_case *best = NULL;

    for (size_t i = first; i < end; i++) {
        struct sim_case *one = &sweep->cases[i];

        /* A case is faster only if the difference exceeds a rounding error. */
        if (!one->is_left_out &&
            (best == NULL || sweep_seconds(one) < sweep_seconds(best) * (1 - 1e-9)))
            best = one;
    }
    if (best != NULL)
        best->is_best = true;
    return best;
}

void sweep_fini(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->ncases; i++)
        tutti_sim_report_fini(&sweep->cases[i].report);
    free(sweep->cases);
    *sweep = (struct sweep){.cases = NULL};
}
