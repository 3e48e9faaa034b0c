/* SPDX-License-Identifier: Apache-2.0
 * One trial: all candidates for one call, measured in turns.
 *
 *   round 0   every candidate twice: schedules, connections, first touches; then to learn how often
 *             it is to be called in a sample. Of those with the same schedules the first stays
 *   round 1   A B C D     in turns, so that what disturbs the machine for a while disturbs all
 *   round 2   A B C D     after each round rank 0 drops those that are far behind
 *   round 3   A   C       the median of a candidate's rounds counts
 *   ...
 */
#include "tune/tune.h"

#include "base/clock.h"
#include "tuner/candidates.h"
#include "tuner/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Variants of an algorithm's options beside the usual one, the cheapest ones. */
enum { VARIANTS = 3 };

/* Of what is known to cost so many times the lowest price nothing is expected. */
#define HOPELESS 6.0
/* A candidate whose median is so many times the best one's is dropped: after each of the first two
 * rounds, of the next three, and of the others. */
#define FAR_BEHIND 4.0
#define WELL_BEHIND 1.8
#define BEHIND 1.3
/* A sample takes such a share of the time that is left for each candidate of the race, within
 * limits: so many calls that the barriers around them do not count, and what disturbs them does on
 * average. Fewer candidates have longer samples. */
#define SAMPLES_HOPED_FOR 8
#define SAMPLE_LEAST_S 50e-6
#define SAMPLE_MOST_S 20e-3
/* What would be chosen anyway stays, unless another one is faster by more than this; and by more
 * than that, unless it was so in three of four rounds: where rounds differ more than candidates do,
 * little was learned. */
#define INERTIA 1.03
#define INERTIA_UNSURE 1.15

/* ---- candidates ---------------------------------------------------------------------------- */

static int add(struct tutti_trial *trial, const struct tutti_choice *choice)
{
    struct tutti_choice resolved = *choice;

    TUTTI_TRY(tutti_algorithm_options(choice->algorithm, &choice->options, &resolved.options));
    for (uint32_t i = 0; i < trial->nchoices; i++)
        if (trial->choices[i].algorithm == resolved.algorithm &&
            memcmp(&trial->choices[i].options, &resolved.options, sizeof resolved.options) == 0)
            return TUTTI_OK;
    if (trial->nchoices < TUTTI_TRIAL_CHOICES)
        trial->choices[trial->nchoices++] = resolved;
    return TUTTI_OK;
}

/* The usual options, and the cheapest others. */
static int add_variants(struct tutti_trial *trial, const struct tutti_tuner_view *view,
                        const struct tutti_tuner_query *query,
                        const struct tutti_algorithm *algorithm, double most_seconds)
{
    struct tutti_variants variants = {.algorithm = algorithm, .nranks = view->nranks};
    struct tutti_choice best[VARIANTS], choice;
    double seconds[VARIANTS];
    int nbest = 0;

    tutti_variants_next(&variants, &choice);
    if (!(tutti_price(view, query, &choice) > most_seconds))
        TUTTI_TRY(add(trial, &choice));
    while (tutti_variants_next(&variants, &choice)) {
        double price = tutti_price(view, query, &choice);
        int at = nbest;

        if (!(price <= most_seconds))
            continue;
        for (; at > 0 && seconds[at - 1] > price; at--)
            if (at < VARIANTS) {
                best[at] = best[at - 1];
                seconds[at] = seconds[at - 1];
            }
        if (at == VARIANTS)
            continue;
        best[at] = choice;
        seconds[at] = price;
        nbest += nbest < VARIANTS;
    }
    for (int i = 0; i < nbest; i++)
        TUTTI_TRY(add(trial, &best[i]));
    return TUTTI_OK;
}

int tutti_trial_prepare(const struct tutti_comm *comm, enum tutti_collective collective,
                        size_t bytes, struct tutti_trial *ret_trial)
{
    const struct tutti_tuner_view *view = &comm->view;
    uint32_t inputs = tutti_input_blocks(collective, view->nranks);
    uint32_t outputs = tutti_output_blocks(collective, view->nranks);
    size_t blocks = inputs > outputs ? inputs : outputs;
    struct tutti_trial trial = {.collective = collective};
    struct tutti_tuner_query query = {.collective = collective};
    struct tutti_choice choice;
    double lowest;

    if (blocks > 0) {
        trial.count = bytes / sizeof(float) / blocks;
        trial.count += trial.count == 0;
        query.block_bytes = trial.count * sizeof(float);
        trial.bytes = query.block_bytes * blocks;
    }
    TUTTI_TRY(tutti_tuner_choose(view, &query, &choice, NULL));
    TUTTI_TRY(add(&trial, &choice));
    if (!tutti_cheapest(view, &query, &choice, &lowest))
        lowest = INFINITY;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        if (tutti_tuner_is_candidate(view, &query, tutti_algorithm(i)))
            TUTTI_TRY(add_variants(&trial, view, &query, tutti_algorithm(i), HOPELESS * lowest));
    trial.live = (UINT64_C(1) << trial.nchoices) - 1;
    *ret_trial = trial;
    return TUTTI_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* What rank 0 tells the others after each round. */
struct verdict {
    uint64_t live;
    uint32_t is_over, winner;
    uint32_t repeats[TUTTI_TRIAL_CHOICES]; /* calls per sample */
};

/* A race on its way. */
struct race {
    struct tutti_comm *comm;
    struct tutti_trial *trial;
    struct tutti_call call, barrier;
    struct verdict verdict;
    uint32_t rounds;        /* measured */
    uint64_t deadline_ns;
    double latest[TUTTI_TRIAL_CHOICES]; /* of this round, by this rank's clock */
    double samples[TUTTI_TRIAL_CHOICES][TUTTI_TRIAL_ROUNDS];
};

static void begin(struct race *race, struct tutti_comm *comm, struct tutti_trial *trial,
                  const void *input, void *output, uint64_t deadline_ns)
{
    *race = (struct race){.comm = comm, .trial = trial, .deadline_ns = deadline_ns,
                          .verdict = {.is_over = tutti_now_ns() >= deadline_ns}};
    tutti_call_of_bytes(trial->collective, TUTTI_FOR_TUNE, input, output, trial->count,
                        &race->call);
    tutti_call_of_bytes(TUTTI_BARRIER, TUTTI_FOR_TUNE, NULL, NULL, 0, &race->barrier);
    race->call.type = TUTTI_FLOAT32;
    race->call.signature.type = TUTTI_FLOAT32;
    if (tutti_collective_reduces(trial->collective))
        race->call.signature.op = TUTTI_SUM;
}

static int run_choice(struct race *race, uint32_t index, uint32_t repeats)
{
    int rc = TUTTI_OK;

    race->comm->trial = &race->trial->choices[index];
    for (uint32_t i = 0; i < repeats && rc == TUTTI_OK; i++)
        rc = tutti_batch_run_now(race->comm, &race->call, NULL);
    race->comm->trial = NULL;
    return rc;
}

/* From the moment when all are here until all are done, by this rank's clock. */
static int sample(struct race *race, uint32_t index, uint32_t repeats)
{
    uint64_t since_ns;

    TUTTI_TRY(tutti_batch_run_now(race->comm, &race->barrier, NULL));
    since_ns = tutti_now_ns();
    TUTTI_TRY(run_choice(race, index, repeats));
    TUTTI_TRY(tutti_batch_run_now(race->comm, &race->barrier, NULL));
    race->latest[index] = (double)(tutti_now_ns() - since_ns) * 1e-9 / repeats;
    return TUTTI_OK;
}

/* Each, if there is a program for it at all: a window may have no room for its slots, which all
 * ranks find alike. */
static int warm_up(struct race *race)
{
    struct tutti_trial *trial = race->trial;
    uint32_t twins[TUTTI_TRIAL_CHOICES];

    TUTTI_TRY(tutti_trial_find_twins(race->comm, trial->choices, trial->nchoices, twins));
    for (uint32_t i = 0; i < trial->nchoices; i++) {
        const struct tutti_program *ignored;
        int rc = TUTTI_ERR_USAGE;

        race->comm->trial = &trial->choices[i];
        if (twins[i] == i)
            rc = tutti_cache_program(race->comm, &race->call, &ignored);
        race->comm->trial = NULL;
        if (rc == TUTTI_ERR_USAGE) {
            trial->live &= ~(UINT64_C(1) << i);
            continue;
        }
        TUTTI_TRY(rc);
        TUTTI_TRY(run_choice(race, i, 1));
        TUTTI_TRY(sample(race, i, 2));
    }
    race->verdict.live = trial->live;
    return TUTTI_OK;
}

/* One of each. */
static int run_round(struct race *race)
{
    for (uint32_t i = 0; i < race->trial->nchoices; i++)
        if (race->trial->live >> i & 1) {
            /* Its program may have had to make room for another one's, which does not count
             * beside one long call. */
            if (race->verdict.repeats[i] > 1)
                TUTTI_TRY(run_choice(race, i, 1));
            TUTTI_TRY(sample(race, i, race->verdict.repeats[i]));
        }
    return TUTTI_OK;
}

/* Of what the ranks' clocks say, the longest: who was woken late has begun late. */
static int gather_samples(struct race *race)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_ALLREDUCE, TUTTI_FOR_TUNE, race->latest, race->latest,
                        race->trial->nchoices, &call);
    call.type = TUTTI_FLOAT64;
    call.signature.type = TUTTI_FLOAT64;
    call.signature.op = TUTTI_MAX;
    return tutti_batch_run_now(race->comm, &call, NULL);
}

/* ---- judging, on rank 0 -------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double median(const double *samples, uint32_t count)
{
    double sorted[TUTTI_TRIAL_ROUNDS];

    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static bool is_live(const struct tutti_trial *trial, uint32_t index)
{
    return (trial->live >> index & 1) != 0;
}

/* So long a sample should be. */
static double sample_time(const struct race *race)
{
    uint64_t now_ns = tutti_now_ns();
    double left_s = race->deadline_ns > now_ns ? (double)(race->deadline_ns - now_ns) * 1e-9 : 0;
    int nlive = __builtin_popcountll(race->trial->live);

    return fmin(fmax(left_s / nlive / SAMPLES_HOPED_FOR, SAMPLE_LEAST_S), SAMPLE_MOST_S);
}

/* How often each is to be called next. */
static void set_repeats(struct race *race)
{
    double sample_s = sample_time(race);

    for (uint32_t i = 0; i < race->trial->nchoices; i++) {
        double repeats = is_live(race->trial, i) ? sample_s / race->latest[i] : 1;

        race->verdict.repeats[i] = repeats < 1 ? 1 : repeats > 4096 ? 4096 : (uint32_t)repeats;
    }
}

/* Is what would be chosen anyway as good as the winner, as far as anybody can tell? */
static bool stays(const struct race *race, uint32_t winner)
{
    const struct tutti_trial *trial = race->trial;
    double behind = trial->seconds[0] / trial->seconds[winner];
    uint32_t lost = 0;
    bool is_sure;

    for (uint32_t round = 0; round < race->rounds; round++)
        lost += race->samples[winner][round] < race->samples[0][round];
    is_sure = race->rounds >= 3 && 4 * lost >= 3 * race->rounds;
    return is_live(trial, 0) && behind <= (is_sure ? INERTIA : INERTIA_UNSURE);
}

static void judge(struct race *race)
{
    struct tutti_trial *trial = race->trial;
    struct verdict *verdict = &race->verdict;
    double limit = race->rounds < 3 ? FAR_BEHIND : race->rounds < 6 ? WELL_BEHIND : BEHIND;

    for (uint32_t i = 0; i < trial->nchoices; i++)
        trial->seconds[i] = is_live(trial, i) ? median(race->samples[i], race->rounds)
                                              : trial->seconds[i];
    for (uint32_t i = 0, best = UINT32_MAX; i < trial->nchoices; i++)
        if (is_live(trial, i) && (best == UINT32_MAX || trial->seconds[i] < trial->seconds[best]))
            verdict->winner = best = i;
    for (uint32_t i = 0; i < trial->nchoices; i++)
        if (is_live(trial, i) && trial->seconds[i] > limit * trial->seconds[verdict->winner])
            verdict->live &= ~(UINT64_C(1) << i);
    if (stays(race, verdict->winner))
        verdict->winner = 0;
    verdict->is_over = race->rounds == TUTTI_TRIAL_ROUNDS ||
                       tutti_now_ns() >= race->deadline_ns ||
                       (race->rounds >= 3 && (verdict->live & (verdict->live - 1)) == 0);
}

/* Rank 0's verdict, for all. */
static int agree(struct race *race)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_TUNE, &race->verdict, &race->verdict,
                        sizeof race->verdict, &call);
    return tutti_batch_run_now(race->comm, &call, NULL);
}

int tutti_trial_run(struct tutti_comm *comm, struct tutti_trial *trial, void *input, void *output,
                    uint64_t deadline_ns)
{
    struct race race;

    begin(&race, comm, trial, input, output, deadline_ns);
    TUTTI_TRY(agree(&race));
    trial->is_over = race.verdict.is_over != 0;
    if (!trial->is_over)
        TUTTI_TRY(warm_up(&race));
    while (race.verdict.is_over == 0) {
        if (comm->rank == 0)
            set_repeats(&race);
        TUTTI_TRY(agree(&race));
        TUTTI_TRY(run_round(&race));
        TUTTI_TRY(gather_samples(&race));
        for (uint32_t i = 0; i < trial->nchoices; i++)
            race.samples[i][race.rounds] = race.latest[i];
        race.rounds++;
        if (comm->rank == 0)
            judge(&race);
        TUTTI_TRY(agree(&race));
        trial->live = race.verdict.live;
        trial->winner = race.verdict.winner;
    }
    return TUTTI_OK;
}
