/* SPDX-License-Identifier: Apache-2.0
 * One trial. A trial measures all candidates for one call, and alternates between them.
 *
 *   round 0   each candidate runs once, to make its schedule and connections and to touch memory.
 *             Then it is timed, to learn how many calls make a sample. If candidates have the same
 *             schedules, only the first of them stays
 *   round 1   A B C D     one sample of each in turn, so that a disturbance of the machine hits all
 *   round 2   A B C D     after each round rank 0 drops the candidates that are far behind
 *   round 3   A   C       the median of a candidate's rounds counts
 *   ...
 */
#include "tune/tune.h"

#include "base/clock.h"
#include "gpu/comm_gpu.h"
#include "tuner/candidates.h"
#include "tuner/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number of variants of an algorithm that are measured in addition to its usual options. The
 * cheapest variants are measured. */
enum { VARIANTS = 3 };

/* Choices whose price is more than this many times the lowest one are not measured. */
#define HOPELESS 6.0
/* A candidate is dropped if its median is more than this many times the best one. The first factor
 * applies after each of the first two rounds, the second one after each of the next three, and the
 * third one after all others. */
#define FAR_BEHIND 4.0
#define WELL_BEHIND 1.8
#define BEHIND 1.3
/* The time that is left is divided among the remaining candidates, and each share among this many
 * samples. The length of a sample has limits. A sample then has so many calls that the barriers
 * around it do not matter, and that disturbances average out. Fewer candidates have longer
 * samples. */
#define SAMPLES_HOPED_FOR 8
#define SAMPLE_LEAST_S 50e-6
#define SAMPLE_MOST_S 20e-3
/* The tuner's own choice stays unless the winner is faster by more than the factor INERTIA. The
 * factor is INERTIA_UNSURE if there were fewer than three rounds, or if the winner was faster in
 * fewer than three of four rounds. Rounds that differ more than the candidates do prove little. */
#define INERTIA 1.03
#define INERTIA_UNSURE 1.15
/* The most calls in a sample. */
#define REPEATS_MOST 4096

/* ---- candidates ---------------------------------------------------------------------------- */

/* Adds a candidate with resolved options, unless it is there already or the trial is full. */
static int add(struct tutti_trial *trial, const struct tutti_choice *choice)
{
    struct tutti_choice resolved = *choice;

    TUTTI_TRY(tutti_algorithm_options(choice->algorithm, &choice->options, &resolved.options));
    for (uint32_t i = 0; i < trial->nchoices; i++)
        if (trial->choices[i].algorithm == resolved.algorithm &&
            trial->choices[i].protocol == resolved.protocol &&
            memcmp(&trial->choices[i].options, &resolved.options, sizeof resolved.options) == 0)
            return TUTTI_OK;
    if (trial->nchoices < TUTTI_TRIAL_CHOICES)
        trial->choices[trial->nchoices++] = resolved;
    return TUTTI_OK;
}

/* Adds the usual options, and the cheapest others, up to a price of `most_seconds`. Without a price
 * (NAN), only the usual options are added. */
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

/* Adds the kernels that run the call as a whole. */
static int add_protocols(struct tutti_trial *trial, const struct tutti_tuner_view *view,
                         const struct tutti_tuner_query *query)
{
    for (int i = TUTTI_PROTOCOL_STEPS + 1; i < TUTTI_PROTOCOL_COUNT; i++) {
        struct tutti_choice choice = {
            .algorithm = tutti_protocol_form((enum tutti_protocol)i, query->collective),
            .protocol = (enum tutti_protocol)i};

        if (choice.algorithm != NULL && tutti_tuner_can_run(view, query, &choice))
            TUTTI_TRY(add(trial, &choice));
    }
    return TUTTI_OK;
}

/* Returns the tuner's query for a call on device memory. */
static struct tutti_tuner_query query_on_gpu(const struct tutti_comm *comm,
                                             enum tutti_collective collective, size_t count)
{
    struct tutti_call call;

    tutti_call_of_bytes(collective, TUTTI_FOR_TUNE, NULL, NULL, count, &call);
    tutti_call_of_elements(&call, TUTTI_FLOAT32, TUTTI_SUM);
    return tutti_gpu_query(comm, &call);
}

int tutti_trial_prepare(const struct tutti_comm *comm, bool is_on_gpu,
                        enum tutti_collective collective, size_t bytes,
                        struct tutti_trial *ret_trial)
{
    const struct tutti_tuner_view *view = is_on_gpu ? &comm->gpu->view : &comm->view;
    uint32_t inputs = tutti_input_blocks(collective, view->nranks);
    uint32_t outputs = tutti_output_blocks(collective, view->nranks);
    size_t blocks = inputs > outputs ? inputs : outputs;
    struct tutti_trial trial = {.collective = collective, .is_on_gpu = is_on_gpu};
    struct tutti_tuner_query query = {.collective = collective};
    struct tutti_choice choice;
    double lowest;

    if (blocks > 0) {
        trial.count = bytes / sizeof(float) / blocks;
        trial.count += trial.count == 0;
        query.block_bytes = trial.count * sizeof(float);
        trial.bytes = query.block_bytes * blocks;
    }
    if (is_on_gpu)
        query = query_on_gpu(comm, collective, trial.count);
    TUTTI_TRY(tutti_tuner_choose(view, &query, &choice, NULL));
    TUTTI_TRY(add(&trial, &choice));
    TUTTI_TRY(add_protocols(&trial, view, &query));
    if (!tutti_candidate_cheapest(view, &query, &choice, &lowest))
        lowest = INFINITY;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        if (tutti_tuner_is_candidate(view, &query, tutti_algorithm(i)))
            TUTTI_TRY(add_variants(&trial, view, &query, tutti_algorithm(i), HOPELESS * lowest));
    trial.remaining = (UINT64_C(1) << trial.nchoices) - 1;
    *ret_trial = trial;
    return TUTTI_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Rank 0's decision after each round, for all ranks. */
struct verdict {
    uint64_t remaining; /* as in struct tutti_trial */
    uint32_t is_over, winner;
    uint32_t repeats[TUTTI_TRIAL_CHOICES]; /* number of calls in a sample of each candidate */
};

/* The state of a trial under way. */
struct trial_state {
    struct tutti_comm *comm;
    struct tutti_trial *trial;
    struct tutti_call call, barrier;
    struct verdict verdict;
    uint32_t rounds;        /* rounds measured */
    uint64_t deadline_ns;
    /* Seconds per call in this round, by this rank's clock. After gather_samples they are the
     * longest times of all ranks. */
    double latest[TUTTI_TRIAL_CHOICES];
    double samples[TUTTI_TRIAL_CHOICES][TUTTI_TRIAL_ROUNDS];
};

static void begin(struct trial_state *state, struct tutti_comm *comm, struct tutti_trial *trial,
                  const void *input, void *output, uint64_t deadline_ns)
{
    *state = (struct trial_state){.comm = comm,
                                  .trial = trial,
                                  .deadline_ns = deadline_ns,
                                  .verdict = {.is_over = tutti_now_ns() >= deadline_ns}};
    tutti_call_of_bytes(trial->collective, TUTTI_FOR_TUNE, input, output, trial->count,
                        &state->call);
    tutti_call_of_bytes(TUTTI_BARRIER, TUTTI_FOR_TUNE, NULL, NULL, 0, &state->barrier);
    tutti_call_of_elements(&state->call, TUTTI_FLOAT32, TUTTI_SUM);
}

static int run_choice(struct trial_state *state, uint32_t index, uint32_t repeats)
{
    int rc = TUTTI_OK;

    state->comm->trial = &state->trial->choices[index];
    for (uint32_t i = 0; i < repeats && rc == TUTTI_OK; i++)
        rc = state->trial->is_on_gpu ? tutti_gpu_call(state->comm, &state->call, NULL)
                                     : tutti_batch_run_now(state->comm, &state->call, NULL);
    state->comm->trial = NULL;
    return rc;
}

/* Measures the time of `repeats` calls by this rank's clock. The time begins when all ranks are
 * ready, and ends when all ranks are done. */
static int sample(struct trial_state *state, uint32_t index, uint32_t repeats)
{
    uint64_t since_ns;

    TUTTI_TRY(tutti_batch_run_now(state->comm, &state->barrier, NULL));
    since_ns = tutti_now_ns();
    TUTTI_TRY(run_choice(state, index, repeats));
    TUTTI_TRY(tutti_batch_run_now(state->comm, &state->barrier, NULL));
    state->latest[index] = (double)(tutti_now_ns() - since_ns) * 1e-9 / repeats;
    return TUTTI_OK;
}

/* Finds candidates with equal schedules. Kernels differ even if schedules are equal, so on GPUs all
 * candidates count as different. */
static int find_equal(struct trial_state *state, uint32_t *ret_firsts)
{
    struct tutti_trial *trial = state->trial;

    for (uint32_t i = 0; i < trial->nchoices; i++)
        ret_firsts[i] = i;
    return trial->is_on_gpu ? TUTTI_OK
                            : tutti_trial_find_equal(state->comm, trial->choices, trial->nchoices,
                                                     ret_firsts);
}

/* Makes the program of the candidate that comm->trial names. TUTTI_ERR_USAGE: it cannot run. */
static int make_program(struct trial_state *state)
{
    struct tutti_cuda_item item = {.call = &state->call};
    const struct tutti_program *ignored;

    return state->trial->is_on_gpu ? tutti_gpu_programs_find(state->comm, false, &item)
                                   : tutti_cache_program(state->comm, &state->call, &ignored);
}

/* Runs each candidate that has no equal among the earlier ones. Drops a candidate if no program can
 * be made for it, because a window may have no room for its slots. All ranks drop the same
 * candidates. */
static int warm_up(struct trial_state *state)
{
    struct tutti_trial *trial = state->trial;
    uint32_t firsts[TUTTI_TRIAL_CHOICES];

    TUTTI_TRY(find_equal(state, firsts));
    for (uint32_t i = 0; i < trial->nchoices; i++) {
        int rc = TUTTI_ERR_USAGE;

        state->comm->trial = &trial->choices[i];
        if (firsts[i] == i)
            rc = make_program(state);
        state->comm->trial = NULL;
        if (rc == TUTTI_ERR_USAGE) {
            trial->remaining &= ~(UINT64_C(1) << i);
            continue;
        }
        TUTTI_TRY(rc);
        TUTTI_TRY(run_choice(state, i, 1));
        TUTTI_TRY(sample(state, i, 2));
    }
    state->verdict.remaining = trial->remaining;
    return TUTTI_OK;
}

static int run_round(struct trial_state *state)
{
    for (uint32_t i = 0; i < state->trial->nchoices; i++)
        if (state->trial->remaining >> i & 1) {
            /* Another candidate's program may have replaced this one's in the cache. The extra call
             * makes it again, outside of the sample. If one call is a whole sample, it is so long
             * that making the program does not matter. */
            if (state->verdict.repeats[i] > 1)
                TUTTI_TRY(run_choice(state, i, 1));
            TUTTI_TRY(sample(state, i, state->verdict.repeats[i]));
        }
    return TUTTI_OK;
}

/* Takes the longest time of all ranks, because a rank that was woken late started its clock late
 * and measured too short a time. */
static int gather_samples(struct trial_state *state)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_ALLREDUCE, TUTTI_FOR_TUNE, state->latest, state->latest,
                        state->trial->nchoices, &call);
    tutti_call_of_elements(&call, TUTTI_FLOAT64, TUTTI_MAX);
    return tutti_batch_run_now(state->comm, &call, NULL);
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

static bool is_remaining(const struct tutti_trial *trial, uint32_t index)
{
    return (trial->remaining >> index & 1) != 0;
}

/* Returns the wanted length of a sample in seconds. */
static double sample_time(const struct trial_state *state)
{
    uint64_t now_ns = tutti_now_ns();
    double left_s = state->deadline_ns > now_ns ? (double)(state->deadline_ns - now_ns) * 1e-9 : 0;
    int nremaining = __builtin_popcountll(state->trial->remaining);

    return fmin(fmax(left_s / nremaining / SAMPLES_HOPED_FOR, SAMPLE_LEAST_S), SAMPLE_MOST_S);
}

/* Sets how often each candidate is called in its next sample. */
static void set_repeats(struct trial_state *state)
{
    double sample_s = sample_time(state);

    for (uint32_t i = 0; i < state->trial->nchoices; i++) {
        double repeats = is_remaining(state->trial, i) ? sample_s / state->latest[i] : 1;

        state->verdict.repeats[i] = (uint32_t)fmin(fmax(repeats, 1), REPEATS_MOST);
    }
}

/* True if the tuner's own choice, candidate 0, is about as good as the winner. */
static bool keeps_own_choice(const struct trial_state *state, uint32_t winner)
{
    const struct tutti_trial *trial = state->trial;
    double behind = trial->seconds[0] / trial->seconds[winner];
    uint32_t lost = 0;
    bool is_sure;

    for (uint32_t round = 0; round < state->rounds; round++)
        lost += state->samples[winner][round] < state->samples[0][round];
    is_sure = state->rounds >= 3 && 4 * lost >= 3 * state->rounds;
    return is_remaining(trial, 0) && behind <= (is_sure ? INERTIA : INERTIA_UNSURE);
}

/* Updates the medians and the verdict after a round. */
static void judge(struct trial_state *state)
{
    struct tutti_trial *trial = state->trial;
    struct verdict *verdict = &state->verdict;
    double limit = state->rounds < 3 ? FAR_BEHIND : state->rounds < 6 ? WELL_BEHIND : BEHIND;

    for (uint32_t i = 0; i < trial->nchoices; i++)
        trial->seconds[i] =
            is_remaining(trial, i) ? median(state->samples[i], state->rounds) : trial->seconds[i];
    for (uint32_t i = 0, best = UINT32_MAX; i < trial->nchoices; i++)
        if (is_remaining(trial, i) &&
            (best == UINT32_MAX || trial->seconds[i] < trial->seconds[best]))
            verdict->winner = best = i;
    for (uint32_t i = 0; i < trial->nchoices; i++)
        if (is_remaining(trial, i) && trial->seconds[i] > limit * trial->seconds[verdict->winner])
            verdict->remaining &= ~(UINT64_C(1) << i);
    if (keeps_own_choice(state, verdict->winner))
        verdict->winner = 0;
    verdict->is_over = state->rounds == TUTTI_TRIAL_ROUNDS ||
                       tutti_now_ns() >= state->deadline_ns ||
                       (state->rounds >= 3 && __builtin_popcountll(verdict->remaining) <= 1);
}

/* Broadcasts rank 0's verdict. */
static int agree(struct trial_state *state)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_TUNE, &state->verdict, &state->verdict,
                        sizeof state->verdict, &call);
    return tutti_batch_run_now(state->comm, &call, NULL);
}

int tutti_trial_run(struct tutti_comm *comm, struct tutti_trial *trial, void *input, void *output,
                    uint64_t deadline_ns)
{
    struct trial_state state;

    begin(&state, comm, trial, input, output, deadline_ns);
    TUTTI_TRY(agree(&state));
    trial->is_skipped = state.verdict.is_over != 0;
    if (!trial->is_skipped)
        TUTTI_TRY(warm_up(&state));
    while (state.verdict.is_over == 0) {
        if (comm->rank == 0)
            set_repeats(&state);
        TUTTI_TRY(agree(&state));
        TUTTI_TRY(run_round(&state));
        TUTTI_TRY(gather_samples(&state));
        for (uint32_t i = 0; i < trial->nchoices; i++)
            state.samples[i][state.rounds] = state.latest[i];
        state.rounds++;
        if (comm->rank == 0)
            judge(&state);
        TUTTI_TRY(agree(&state));
        trial->remaining = state.verdict.remaining;
        trial->winner = state.verdict.winner;
    }
    return TUTTI_OK;
}
