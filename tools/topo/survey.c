/* SPDX-License-Identifier: Apache-2.0
 * Measures a machine and writes its description. These are the measurements and their ranks:
 *
 *   level node    rank 0 and the next rank of its node
 *   level top     rank 0 and the first rank of another node; level group is assumed to be the same
 *   memory        rank 0 alone, then all ranks at once
 *   signal        a barrier of all ranks, if they are all on one node
 */
#include "topo/survey.h"

#include "base/file.h"
#include "base/param.h"
#include "base/result.h"
#include "common/file.h"
#include "common/memory.h"
#include "common/tuner_view.h"
#include "common/units.h"
#include "topo/meter.h"
#include "topo/store.h"
#include "topo/timing.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What each rank tells the others about its place. */
struct rank_place {
    char host[192]; /* the same text on all ranks of a host, and on no others */
    int cores;      /* number of cores that the rank may use */
};

/* The ranks that take part, as all of them know it. */
struct survey {
    uint32_t *node; /* the node of each rank; owned */
    uint32_t nnodes;
    int node_ranks; /* number of ranks on rank 0's node, including rank 0 */
    int cores;      /* number of cores that rank 0 may use */
    int neighbor;   /* another rank on rank 0's node; -1: none */
    int stranger;   /* a rank on another node; -1: none */
};

/* ---- hosts and ranks ------------------------------------------------------------------------- */

/* Writes a text that identifies this host. */
static void describe_host(char *text, size_t size)
{
    const char *given = tutti_param_text(TUTTI_PARAM_HOST_ID);
    char name[64] = "", boot[64];

    gethostname(name, sizeof name - 1);
    tutti_file_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    snprintf(text, size, "%s", given);
    if (*text == '\0')
        snprintf(text, size, "%s %s", name, boot);
}

/* Gathers the places of all ranks, and chooses the ranks to measure. */
static void find_ranks(struct crew *crew, struct survey *survey)
{
    struct rank_place mine = {.cores = (int)usable_cores()};
    struct rank_place *all = must_calloc((size_t)crew->nranks, sizeof *all);

    describe_host(mine.host, sizeof mine.host);
    crew_gather(crew, &mine, sizeof mine, all);
    *survey = (struct survey){.node = must_calloc((size_t)crew->nranks, sizeof *survey->node),
                              .cores = all[0].cores,
                              .neighbor = -1,
                              .stranger = -1};
    for (int rank = 0; rank < crew->nranks; rank++) {
        int first = 0;

        while (strcmp(all[first].host, all[rank].host) != 0)
            first++;
        survey->node[rank] = first == rank ? survey->nnodes++ : survey->node[first];
        survey->node_ranks += first == 0;
        if (rank > 0 && first == 0 && survey->neighbor < 0)
            survey->neighbor = rank;
        if (first > 0 && survey->stranger < 0)
            survey->stranger = rank;
    }
    free(all);
}

/* ---- the description ------------------------------------------------------------------------- */

/* Writes a comment line about the quality of a fit. */
static void note_fit(FILE *out, const char *what, const struct samples *samples,
                     const struct fit *fit)
{
    double worst = 0;

    for (int i = 0; i < samples->count; i++)
        worst = fmax(worst, fabs(log(fit_seconds(fit, samples->bytes[i], samples->footprint[i]) /
                                     samples->seconds[i])));
    fprintf(out, "# %-22s %2d sizes, fitted within %.1f %%, at most %.1f %%\n", what,
            samples->count, 100 * expm1(fit->residual), 100 * expm1(worst));
}

/* The measurements for ranks that take turns on cores, because there are more ranks than cores. */
struct crowd {
    struct samples rounds; /* empty if each rank has a core of its own */
    double turns;          /* ranks per core */
};

/* All measurements. A link that was not measured has no samples. */
struct measurements {
    struct link_times inside, outside; /* messages to the neighbor and to the stranger */
    struct memory_times memory;
    struct crowd crowd;
    double signal_s;
};

/* Sets the rates of a core from the fit of both directions, but at least to `least`. */
static void set_core(struct tutti_rate *rate, const struct fit *both, double least)
{
    rate->core_bytes_per_s = fmax(both->bytes_per_s, least);
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS; i++)
        rate->core_beyond[i] = both->beyond[i];
}

/* Sets the latency and the rates of a core from rounds of all ranks. In a round, a core spends the
 * overhead twice for each of its ranks: once for sending and once for receiving. */
static void set_crowd(FILE *out, const char *name, const struct crowd *crowd,
                      struct tutti_rate *rate)
{
    struct fit round;
    char what[32];

    fit(&crowd->rounds, true, &round);
    snprintf(what, sizeof what, "%s, all at once:", name);
    note_fit(out, what, &crowd->rounds, &round);
    rate->latency_s = fmax(rate->latency_s, round.fixed_s - 2 * crowd->turns * rate->overhead_s);
    set_core(rate, &round, 0);
}

/* Sets the costs of messages of one level of the machine. */
static void set_level(FILE *out, const char *name, const struct link_times *times,
                      struct tutti_rate *rate)
{
    struct fit alone, both;
    char what[32];

    fit(&times->one_way, true, &alone);
    fit(&times->both_ways, true, &both);
    snprintf(what, sizeof what, "%s, one way:", name);
    note_fit(out, what, &times->one_way, &alone);
    snprintf(what, sizeof what, "%s, both ways:", name);
    note_fit(out, what, &times->both_ways, &both);
    *rate = (struct tutti_rate){.bytes_per_s = alone.bytes_per_s};
    memcpy(rate->beyond, alone.beyond, sizeof rate->beyond);
    rate->overhead_s = fmin(times->overhead_s, alone.fixed_s);
    rate->latency_s = alone.fixed_s - rate->overhead_s;
    /* The rate of both directions together is never less than the rate of one direction. */
    set_core(rate, &both, rate->bytes_per_s);
}

/* Sets a rate, and those for larger footprints, by a fit without a fixed time. */
static void set_speed(FILE *out, const char *what, const struct samples *samples,
                      double *ret_bytes_per_s, struct tutti_footprint_rate *ret_beyond)
{
    struct fit found;

    fit(samples, false, &found);
    note_fit(out, what, samples, &found);
    *ret_bytes_per_s = found.bytes_per_s;
    memcpy(ret_beyond, found.beyond, sizeof found.beyond);
}

static void set_memory(FILE *out, const struct memory_times *times, struct tutti_machine *machine)
{
    set_speed(out, "copy:", &times->copy, &machine->copy_bytes_per_s, machine->copy_beyond);
    set_speed(out, "reduce:", &times->reduce, &machine->reduce_bytes_per_s,
              machine->reduce_beyond);
    set_speed(out, "load:", &times->load, &machine->load_bytes_per_s, machine->load_beyond);
    set_speed(out, "memory, all at once:", &times->together, &machine->memory_bytes_per_s,
              machine->memory_beyond);
}

/* Rounds a value to four digits, because no measurement is more precise. The value must be in the
 * unit in which it will be printed. Otherwise it could print as 1.1999999. */
static double round_digits(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static double round_time(double seconds)
{
    return seconds < 1e-6 ? round_digits(seconds * 1e9) / 1e9 : round_digits(seconds * 1e6) / 1e6;
}

static double round_rate(double bytes_per_s)
{
    return bytes_per_s < 1e9 ? round_digits(bytes_per_s / 1e6) * 1e6
                             : round_digits(bytes_per_s / 1e9) * 1e9;
}

static void round_beyond(struct tutti_footprint_rate *beyond)
{
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS; i++)
        beyond[i].bytes_per_s = round_rate(beyond[i].bytes_per_s);
}

static void round_all(struct tutti_machine *machine)
{
    for (int i = 0; i < TUTTI_MACHINE_LEVELS; i++) {
        struct tutti_rate *rate = &machine->level[i];

        rate->latency_s = round_time(rate->latency_s);
        rate->overhead_s = round_time(rate->overhead_s);
        rate->bytes_per_s = round_rate(rate->bytes_per_s);
        rate->core_bytes_per_s = round_rate(rate->core_bytes_per_s);
        round_beyond(rate->beyond);
        round_beyond(rate->core_beyond);
    }
    machine->signal_s = round_time(machine->signal_s);
    machine->memory_bytes_per_s = round_rate(machine->memory_bytes_per_s);
    machine->copy_bytes_per_s = round_rate(machine->copy_bytes_per_s);
    machine->reduce_bytes_per_s = round_rate(machine->reduce_bytes_per_s);
    machine->load_bytes_per_s = round_rate(machine->load_bytes_per_s);
    round_beyond(machine->memory_beyond);
    round_beyond(machine->copy_beyond);
    round_beyond(machine->reduce_beyond);
    round_beyond(machine->load_beyond);
}

/* ---- the survey ------------------------------------------------------------------------------ */

int survey_write(const char *file, const char *text)
{
    int error;

    if (file == NULL) {
        fputs(text, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    error = file_write(file, text);
    if (error == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "tutti-topo: cannot write %s: %s\n", file, strerror(error));
    return EXIT_FAILURE;
}

/* Writes the description with the comments before it. Returns the exit status. */
static int write_description(const struct crew *crew, const char *comments,
                             const struct tutti_machine *machine)
{
    char *text = NULL, *whole;
    int status;

    if (tutti_machine_write(machine, &text) != TUTTI_OK) {
        fprintf(stderr, "tutti-topo: %s\n", tutti_message_last());
        return EXIT_FAILURE;
    }
    if (asprintf(&whole, "%s%s", comments, text) < 0)
        whole = must_have(NULL);
    status = survey_write(crew->output, whole);
    free(whole);
    free(text);
    return status;
}

/* Returns true if messages within the host go through its memory. */
static bool uses_memory(const char *transports)
{
    return *transports == '\0' || strstr(transports, "shm") != NULL;
}

/* Runs all measurements. All ranks must call this together. */
static void take_measurements(struct crew *crew, const struct survey *survey,
                              struct measurements *ret_found)
{
    *ret_found = (struct measurements){.crowd = {.turns = 0}};
    if (survey->neighbor > 0)
        meter_link(crew, 0, survey->neighbor, &ret_found->inside);
    if (survey->stranger > 0)
        meter_link(crew, 0, survey->stranger, &ret_found->outside);
    ret_found->crowd.turns = (double)survey->node_ranks / survey->cores;
    if (survey->node_ranks > survey->cores)
        meter_crowd(crew, ret_found->crowd.turns, &ret_found->crowd.rounds);
    ret_found->signal_s = meter_signal(crew);
    meter_memory(crew, survey->node_ranks, &ret_found->memory);
    timing_show_end(crew);
}

/* Fits the costs of the machine to the measurements, and writes comments about the fits. A level
 * that was not measured gets the costs of the other. The machine borrows from `survey`. */
static void fit_machine(FILE *comments, const struct crew *crew, const struct survey *survey,
                        const struct measurements *found, struct tutti_machine *machine)
{
    const char *transports = tutti_param_text(TUTTI_PARAM_TRANSPORTS);
    struct tutti_rate *node = &machine->level[0], *group = &machine->level[1];
    struct tutti_rate *top = &machine->level[2];

    fprintf(comments,
            "# Measured by tutti-topo with %d ranks over %s%s; "
            "\"within\" is the root mean square.\n",
            crew->nranks, *transports != '\0' ? transports : "the usual transports",
            crew->is_quick ? ", quickly" : "");
    if (survey->neighbor > 0)
        set_level(comments, "node", &found->inside, node);
    if (survey->stranger > 0)
        set_level(comments, "top", &found->outside, top);
    if (found->crowd.rounds.count > 0 && survey->neighbor > 0)
        set_crowd(comments, "node", &found->crowd, node);
    if (survey->neighbor < 0)
        *node = *top;
    if (survey->stranger < 0)
        *top = *node;
    *group = *top;
    set_memory(comments, &found->memory, machine);
    /* Over sockets, a barrier consists of rounds of messages, so it gives no signal time. */
    if (survey->neighbor > 0 && survey->stranger < 0 && uses_memory(transports))
        machine->signal_s = found->signal_s;
    machine->cores = (uint32_t)survey->cores;
    machine->places = (struct tutti_placement){
        .nranks = (uint32_t)crew->nranks, .node = survey->node, .nnodes = survey->nnodes};
    round_all(machine);
}

/* Writes the results of the survey to the files of the crew. Returns the exit status. */
static int write_results(const struct crew *crew, const struct survey *survey,
                         const struct measurements *found)
{
    struct tutti_machine machine = {.nics = 0};
    struct store_facts facts = {
        .machine = &machine,
        .cpu = sched_getcpu(),
        .has_memory = survey->neighbor > 0 && uses_memory(tutti_param_text(TUTTI_PARAM_TRANSPORTS)),
        .has_network = survey->stranger > 0,
    };
    char *text = NULL;
    size_t size = 0;
    FILE *comments = must_have(open_memstream(&text, &size));
    int status;

    fit_machine(comments, crew, survey, found, &machine);
    if (fclose(comments) != 0)
        must_have(NULL);
    status = write_description(crew, text, &machine);
    if (status == EXIT_SUCCESS && crew->xml != NULL)
        status = store_measured(crew->xml, &facts);
    free(text);
    return status;
}

int survey_run(struct crew *crew)
{
    struct survey survey;
    struct measurements found;
    int status = EXIT_SUCCESS;

    find_ranks(crew, &survey);
    take_measurements(crew, &survey, &found);
    if (crew->rank == 0)
        status = write_results(crew, &survey, &found);
    free(survey.node);
    return status;
}
