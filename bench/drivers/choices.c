/* SPDX-License-Identifier: Apache-2.0
 * Measures how good the library's choices are: choices STORE RANK NRANKS TUNE_MS CELL_MS
 * COLLECTIVES SIZES.
 *
 * This is one rank of one communicator. It records the library's choice for every cell
 * (collective, size), lets tuttiCommTune measure, and records the choice again. Then it measures
 * all candidates of each cell for CELL_MS:
 *
 *   round 1   A B C D     one after the other, each round begins with another candidate
 *   round 2   B C D A     a sample: some calls back to back between two barriers
 *   round 3   C   A       slow candidates are dropped, except the two that were chosen
 *
 * Rank 0 writes one line of JSON per cell. This driver uses internals of the library, because no
 * call of the API names an algorithm. Its clock and its judgment are not the tuner's. */
#include "tune/tune.h"
#include "driver.h"
#include "tuner/explain.h"

#include "base/clock.h"
#include "tutti.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The largest numbers of candidates of a cell, of rounds, and of cells. */
enum { CANDIDATES = 48, ROUNDS = 60, CELLS = 128 };

/* A race has at least LEAST_ROUNDS rounds. After PATIENCE times the time of a cell, FEW_ROUNDS are
 * enough. */
enum { FEW_ROUNDS = 3, LEAST_ROUNDS = 8, PATIENCE = 4 };

/* The length of a sample. It is longer if ranks share cores, so that a sample contains many turns
 * of the scheduler. */
#define SAMPLE_S 2e-3
#define SAMPLE_CROWDED_S 20e-3

struct cell {
    enum tutti_collective collective;
    size_t count, bytes; /* of a call: elements per block, and bytes of the larger buffer */
    struct tutti_choice candidates[CANDIDATES];
    uint32_t twin[CANDIDATES]; /* the first candidate with the same schedule; it alone is raced */
    uint32_t ncandidates;
    uint32_t usual, tuned; /* what is chosen by default, and after tuttiCommTune */
    enum tutti_authority usual_by, tuned_by;
};

/* The message of rank 0 to the others after each round. */
struct verdict {
    uint64_t live;                /* a bit for each candidate that is still measured */
    uint32_t repeats[CANDIDATES]; /* calls in a sample */
    uint32_t is_over;             /* 1: this was the last round */
};

/* The measurement of one cell. Times are those of one call, in seconds. */
struct race {
    const struct cell *cell;
    struct tutti_call call, barrier;
    struct verdict verdict;
    uint32_t nsamples[CANDIDATES];
    double latest[CANDIDATES]; /* the time in this round, by this rank's clock */
    double samples[CANDIDATES][ROUNDS];
};

static tuttiComm_t handle;
static struct tutti_comm *comm;
static int rank;

static void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "choices: rank %d: ", rank);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

static void must(const char *what, int rc)
{
    if (rc != TUTTI_OK)
        die("%s: %s", what, tutti_message_last());
}

static void must_api(const char *what, tuttiResult_t result)
{
    if (result != tuttiSuccess)
        die("%s: %s (%s)", what, tuttiGetErrorString(result), tuttiGetLastError(handle));
}

/* ---- candidates ---------------------------------------------------------------------------- */

static bool same_choice(const struct tutti_choice *a, const struct tutti_choice *b)
{
    return a->algorithm == b->algorithm && memcmp(&a->options, &b->options, sizeof a->options) == 0;
}

/* Returns the index of a candidate, which is added to the cell if it is new. */
static uint32_t enter(struct cell *cell, const struct tutti_choice *choice)
{
    struct tutti_choice resolved = *choice;
    uint32_t i = 0;

    must("options", tutti_algorithm_options(choice->algorithm, &choice->options,
                                            &resolved.options));
    while (i < cell->ncandidates && !same_choice(&cell->candidates[i], &resolved))
        i++;
    if (i == CANDIDATES)
        die("more than %d candidates for %s", CANDIDATES, tutti_collective_name(cell->collective));
    if (i == cell->ncandidates)
        cell->candidates[cell->ncandidates++] = resolved;
    return i;
}

/* Adds two kinds of candidates to a cell: all algorithms that can serve the call, with the options
 * of the lowest price, and all candidates that tuttiCommTune would measure. *ret_chosen is the
 * index of the candidate that the library chooses, and *ret_by says what chooses it. */
static void enter_all(struct cell *cell, size_t bytes, uint32_t *ret_chosen,
                      enum tutti_authority *ret_by)
{
    struct tutti_tuner_query query = {.collective = cell->collective};
    struct tutti_candidate *candidates;
    struct tutti_trial trial;
    size_t count;

    must("candidates", tutti_trial_prepare(comm, false, cell->collective, bytes, &trial));
    cell->count = trial.count;
    cell->bytes = trial.bytes;
    query.block_bytes = trial.count * sizeof(float);
    must("candidates", tutti_tuner_explain(&comm->view, &query, &candidates, &count));
    *ret_chosen = enter(cell, &candidates[0].choice);
    *ret_by = candidates[0].by;
    for (size_t i = 0; i < count; i++)
        if (candidates[i].can_serve)
            enter(cell, &candidates[i].choice);
    for (uint32_t i = 0; i < trial.nchoices; i++)
        enter(cell, &trial.choices[i]);
    free(candidates);
}

/* ---- racing -------------------------------------------------------------------------------- */

static bool is_live(const struct race *race, uint32_t index)
{
    return (race->verdict.live >> index & 1) != 0;
}

static void run(struct race *race, uint32_t index, uint32_t repeats)
{
    comm->trial = &race->cell->candidates[index];
    for (uint32_t i = 0; i < repeats; i++)
        must(comm->trial->algorithm->name, tutti_batch_run_now(comm, &race->call, NULL));
    comm->trial = NULL;
}

/* Returns the time of one call. */
static double sample(struct race *race, uint32_t index, uint32_t repeats)
{
    uint64_t since_ns;

    must("a barrier", tutti_batch_run_now(comm, &race->barrier, NULL));
    since_ns = tutti_now_ns();
    run(race, index, repeats);
    must("a barrier", tutti_batch_run_now(comm, &race->barrier, NULL));
    return (double)(tutti_now_ns() - since_ns) * 1e-9 / repeats;
}

/* Replaces the verdict on all ranks by that of rank 0. */
static void share(struct verdict *verdict)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_TUNE, verdict, verdict, sizeof *verdict, &call);
    must("sharing a verdict", tutti_batch_run_now(comm, &call, NULL));
}

/* A candidate that has no program, because a window has no room for its slots, takes no part. All
 * ranks decide this in the same way. The others run twice: first for connections and first touches,
 * then to determine how often they are repeated in a sample. */
static void warm_up(struct race *race)
{
    double wanted_s = comm->nranks > sysconf(_SC_NPROCESSORS_ONLN) ? SAMPLE_CROWDED_S : SAMPLE_S;

    for (uint32_t i = 0; i < race->cell->ncandidates; i++) {
        const struct tutti_program *ignored;
        double repeats;
        int rc;

        comm->trial = &race->cell->candidates[i];
        rc = tutti_cache_program(comm, &race->call, &ignored);
        comm->trial = NULL;
        if (rc == TUTTI_ERR_USAGE || race->cell->twin[i] != i)
            race->verdict.live &= ~(UINT64_C(1) << i);
        if (rc != TUTTI_ERR_USAGE)
            must("a program", rc);
        if (!is_live(race, i))
            continue;
        run(race, i, 1);
        repeats = wanted_s / sample(race, i, 2);
        race->verdict.repeats[i] = repeats < 1 ? 1 : repeats > 4096 ? 4096 : (uint32_t)repeats;
    }
    share(&race->verdict);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double median(const double *samples, uint32_t count)
{
    double sorted[ROUNDS];

    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Drops slow candidates, and decides whether the race is over. Rank 0 calls this after round number
 * `round`. */
static void judge(struct race *race, uint32_t round, uint64_t since_ns, uint64_t cell_ns)
{
    uint64_t spent_ns = tutti_now_ns() - since_ns;
    double limit = round < FEW_ROUNDS ? 4 : round < 2 * FEW_ROUNDS ? 1.7 : 1.4, best = 1e9;
    const struct cell *cell = race->cell;
    uint64_t keep = UINT64_C(1) << cell->twin[cell->usual] | UINT64_C(1) << cell->twin[cell->tuned];

    for (uint32_t i = 0; i < cell->ncandidates; i++)
        if (is_live(race, i) && median(race->samples[i], race->nsamples[i]) < best)
            best = median(race->samples[i], race->nsamples[i]);
    for (uint32_t i = 0; i < cell->ncandidates; i++)
        if (is_live(race, i) && (keep >> i & 1) == 0 &&
            median(race->samples[i], race->nsamples[i]) > limit * best)
            race->verdict.live &= ~(UINT64_C(1) << i);
    race->verdict.is_over = round == ROUNDS || (round >= LEAST_ROUNDS && spent_ns >= cell_ns) ||
                            (round >= FEW_ROUNDS && spent_ns >= PATIENCE * cell_ns);
}

/* Adds a sample of each candidate: the longest of the times that the ranks have measured. A rank
 * that was woken late has begun late, so its time is too short. */
static void keep_longest(struct race *race)
{
    must_api("sharing times", tuttiAllReduce(race->latest, race->latest, race->cell->ncandidates,
                                             tuttiFloat64, tuttiMax, handle, NULL));
    for (uint32_t i = 0; i < race->cell->ncandidates; i++)
        if (is_live(race, i))
            race->samples[i][race->nsamples[i]++] = race->latest[i];
}

static void run_race(struct race *race, uint64_t cell_ns)
{
    uint64_t since_ns = tutti_now_ns();
    uint32_t count = race->cell->ncandidates;

    race->verdict.live = (UINT64_C(1) << count) - 1;
    warm_up(race);
    for (uint32_t round = 1; !race->verdict.is_over; round++) {
        for (uint32_t k = 0; k < count; k++) {
            uint32_t i = (k + round) % count;

            if (!is_live(race, i))
                continue;
            /* Another candidate may have replaced its program in the cache, so one call makes the
             * program again. If a sample is one long call, this time does not matter. */
            if (race->verdict.repeats[i] > 1)
                run(race, i, 1);
            race->latest[i] = sample(race, i, race->verdict.repeats[i]);
        }
        keep_longest(race);
        if (rank == 0)
            judge(race, round, since_ns, cell_ns);
        share(&race->verdict);
    }
}

static void write_json(const struct race *race)
{
    static const char *const names[] = {"TUTTI_ALGORITHM", "TUTTI_TUNE", "a measured table",
                                        "the built-in table", "price", "the built-in table"};
    const struct cell *cell = race->cell;
    const char *comma = "";

    printf("{\"collective\": \"%s\", \"bytes\": %zu, \"default\": %u, \"default_by\": \"%s\", "
           "\"tuned\": %u, \"tuned_by\": \"%s\", \"candidates\": [",
           tutti_collective_name(cell->collective), cell->bytes, cell->usual,
           names[cell->usual_by], cell->tuned, names[cell->tuned_by]);
    for (uint32_t i = 0; i < cell->ncandidates; i++) {
        uint32_t twin = cell->twin[i];
        char text[96];

        tutti_choice_format(&cell->candidates[i], text, sizeof text);
        printf("%s{\"name\": \"%s\", \"schedule\": %u, \"rounds_us\": [", comma, text, twin);
        for (uint32_t k = 0; k < race->nsamples[twin]; k++)
            printf("%s%.4g", k > 0 ? ", " : "", 1e6 * race->samples[twin][k]);
        printf("]}");
        comma = ", ";
    }
    printf("]}\n");
    fflush(stdout);
}

static void race_cell(struct cell *cell, void *input, void *output, uint64_t cell_ns)
{
    struct race *race = calloc(1, sizeof *race);

    if (race == NULL)
        die("no memory for a race");
    must("comparing schedules",
         tutti_trial_find_equal(comm, cell->candidates, cell->ncandidates, cell->twin));
    race->cell = cell;
    tutti_call_of_bytes(cell->collective, TUTTI_FOR_TUNE, input, output, cell->count, &race->call);
    tutti_call_of_bytes(TUTTI_BARRIER, TUTTI_FOR_TUNE, NULL, NULL, 0, &race->barrier);
    tutti_call_of_elements(&race->call, TUTTI_FLOAT32, TUTTI_SUM);
    run_race(race, cell_ns);
    if (rank == 0)
        write_json(race);
    /* The programs refer to this cell's candidates. */
    tutti_cache_forget(comm->cache);
    free(race);
}

/* ---- the agenda ---------------------------------------------------------------------------- */

/* Makes the cells of all collectives and sizes, which are separated by commas. bytes[i] is the size
 * of cell i. Returns their number. */
static size_t read_agenda(const char *collectives, const char *sizes, struct cell *cells,
                          size_t *bytes)
{
    size_t count = 0;

    while (*collectives != '\0') {
        size_t length = strcspn(collectives, ",");
        enum tutti_collective collective = tutti_collective_find(collectives, length);

        if (collective == TUTTI_COLLECTIVE_COUNT)
            die("\"%.*s\" is no collective", (int)length, collectives);
        for (const char *at = sizes; *at != '\0' && count < CELLS; count++) {
            char *end;

            cells[count].collective = collective;
            bytes[count] = strtoull(at, &end, 10);
            if (bytes[count] < sizeof(float) || (*end != ',' && *end != '\0'))
                die("\"%s\" are no sizes in bytes, of 4 at least", at);
            at = end + (*end == ',');
        }
        collectives += length + (collectives[length] == ',');
    }
    return count;
}

static void tune(int budget_ms, const char *collectives, size_t least, size_t most)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;

    config.collectives = collectives;
    config.minBytes = least;
    config.maxBytes = most;
    config.budgetMs = budget_ms;
    must_api("tuttiCommTune", tuttiCommTune(handle, NULL, &config));
}

static void *touched(size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size) != 0)
        die("no memory for a buffer of %zu bytes", size);
    return memset(memory, BENCH_FILL, size);
}

int main(int argc, char **argv)
{
    struct cell *cells = calloc(CELLS, sizeof *cells);
    size_t bytes[CELLS], count, least = SIZE_MAX, most = 0;
    void *input, *output;
    int nranks;

    if (argc != 8 || cells == NULL)
        die("usage: choices STORE RANK NRANKS TUNE_MS CELL_MS COLLECTIVES SIZES");
    rank = atoi(argv[2]);
    nranks = atoi(argv[3]);
    must_api("tuttiCommInitStore", tuttiCommInitStore(&handle, nranks, rank, argv[1], NULL, NULL));
    must("the communicator", tutti_handle_enter_ready(handle, "choices", &comm));
    tutti_comm_leave(comm); /* there is one thread, which may use it from outside, too */
    count = read_agenda(argv[6], argv[7], cells, bytes);
    for (size_t i = 0; i < count; i++) {
        enter_all(&cells[i], bytes[i], &cells[i].usual, &cells[i].usual_by);
        least = bytes[i] < least ? bytes[i] : least;
        most = cells[i].bytes > most ? cells[i].bytes : most;
    }
    tune(atoi(argv[4]), argv[6], least, most);
    input = touched(most);
    output = touched(most);
    for (size_t i = 0; i < count; i++) {
        enter_all(&cells[i], bytes[i], &cells[i].tuned, &cells[i].tuned_by);
        race_cell(&cells[i], input, output, (uint64_t)atoi(argv[5]) * 1000000);
    }
    free(input);
    free(output);
    free(cells);
    must_api("tuttiCommFinalize", tuttiCommFinalize(handle));
    must_api("tuttiCommDestroy", tuttiCommDestroy(handle));
    return EXIT_SUCCESS;
}
