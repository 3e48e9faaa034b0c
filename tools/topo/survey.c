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

struct resident {
    char host[192];
    int cores;
};

struct survey {
    uint32_t *node; /* the node of each rank */
    uint32_t nnodes;
    int mates;      /* number of ranks on rank 0's node, including rank 0 */
    int cores;      /* number of cores that rank 0 may use */
    int neighbor;   /* another rank on rank 0's node; -1: none */
    int stranger;   /* a rank on another node; -1: none */
};

/* ---- hosts and ranks ------------------------------------------------------------------------- */

int survey_cores(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

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

static void look_around(struct crew *crew, struct survey *survey)
{
    struct resident mine = {.cores = survey_cores()};
    struct resident *all = must_take((size_t)crew->nranks, sizeof *all);

    describe_host(mine.host, sizeof mine.host);
    crew_gather(crew, &mine, sizeof mine, all);
    *survey = (struct survey){.node = must_take((size_t)crew->nranks, sizeof *survey->node),
                              .cores = all[0].cores, .neighbor = -1, .stranger = -1};
    for (int rank = 0; rank < crew->nranks; rank++) {
        int first = 0;

        while (strcmp(all[first].host, all[rank].host) != 0)
            first++;
        survey->node[rank] = first == rank ? survey->nnodes++ : survey->node[first];
        survey->mates += first == 0;
        if (rank > 0 && first == 0 && survey->neighbor < 0)
            survey->neighbor = rank;
        if (first > 0 && survey->stranger < 0)
            survey->stranger = rank;
    }
    free(all);
}

/* ---- the description ------------------------------------------------------------------------- */

static void note(FILE *out, const char *what, const struct samples *samples, const struct fit *fit)
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

static void set_core(struct tutti_rate *rate, const struct fit *both, double least)
{
    rate->core_bytes_per_s = fmax(both->bytes_per_s, least);
    for (int i = 0; i < TUTTI_MACHINE_BEYONDS; i++)
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
    note(out, what, &crowd->rounds, &round);
    rate->latency_s = fmax(rate->latency_s, round.fixed_s - 2 * crowd->turns * rate->overhead_s);
    set_core(rate, &round, 0);
}

static void set_level(FILE *out, const char *name, const struct link_times *times,
                      struct tutti_rate *rate)
{
    struct fit alone, both;
    char what[32];

    fit(&times->one_way, true, &alone);
    fit(&times->both_ways, true, &both);
    snprintf(what, sizeof what, "%s, one way:", name);
    note(out, what, &times->one_way, &alone);
    snprintf(what, sizeof what, "%s, both ways:", name);
    note(out, what, &times->both_ways, &both);
    *rate = (struct tutti_rate){.bytes_per_s = alone.bytes_per_s};
    memcpy(rate->beyond, alone.beyond, sizeof rate->beyond);
    rate->overhead_s = fmin(times->overhead_s, alone.fixed_s);
    rate->latency_s = alone.fixed_s - rate->overhead_s;
    /* The rate of both directions together is never less than the rate of one direction. */
    set_core(rate, &both, rate->bytes_per_s);
}

static void set_speed(FILE *out, const char *what, const struct samples *samples,
                      double *ret_bytes_per_s, struct tutti_beyond *ret_beyond)
{
    struct fit found;

    fit(samples, false, &found);
    note(out, what, samples, &found);
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
static double digits(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static double round_time(double seconds)
{
    return seconds < 1e-6 ? digits(seconds * 1e9) / 1e9 : digits(seconds * 1e6) / 1e6;
}

static double rounded(double bytes_per_s)
{
    return bytes_per_s < 1e9 ? digits(bytes_per_s / 1e6) * 1e6 : digits(bytes_per_s / 1e9) * 1e9;
}

static void round_beyond(struct tutti_beyond *beyond)
{
    for (int i = 0; i < TUTTI_MACHINE_BEYONDS; i++)
        beyond[i].bytes_per_s = rounded(beyond[i].bytes_per_s);
}

static void round_all(struct tutti_machine *machine)
{
    for (int i = 0; i < TUTTI_MACHINE_LEVELS; i++) {
        struct tutti_rate *rate = &machine->level[i];

        rate->latency_s = round_time(rate->latency_s);
        rate->overhead_s = round_time(rate->overhead_s);
        rate->bytes_per_s = rounded(rate->bytes_per_s);
        rate->core_bytes_per_s = rounded(rate->core_bytes_per_s);
        round_beyond(rate->beyond);
        round_beyond(rate->core_beyond);
    }
    machine->signal_s = round_time(machine->signal_s);
    machine->memory_bytes_per_s = rounded(machine->memory_bytes_per_s);
    machine->copy_bytes_per_s = rounded(machine->copy_bytes_per_s);
    machine->reduce_bytes_per_s = rounded(machine->reduce_bytes_per_s);
    machine->load_bytes_per_s = rounded(machine->load_bytes_per_s);
    round_beyond(machine->memory_beyond);
    round_beyond(machine->copy_beyond);
    round_beyond(machine->reduce_beyond);
    round_beyond(machine->load_beyond);
}

/* ---- all of it ------------------------------------------------------------------------------- */

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
    fprintf(stderr, "tutti-topo: write %s: %s\n", file, strerror(error));
    return EXIT_FAILURE;
}

static int tell(const struct crew *crew, FILE *notes, char **comments,
                const struct tutti_machine *machine)
{
    char *text = NULL, *whole;
    int status;

    if (tutti_machine_write(machine, &text) != TUTTI_OK) {
        fprintf(stderr, "tutti-topo: %s\n", tutti_message_last());
        fclose(notes);
        return EXIT_FAILURE;
    }
    fclose(notes);
    whole = must_have(malloc(strlen(text) + strlen(*comments) + 1));
    strcpy(whole, *comments);
    strcat(whole, text);
    status = survey_write(crew->output, whole);
    free(whole);
    free(text);
    return status;
}

static bool uses_memory(const char *transports)
{
    return *transports == '\0' || strstr(transports, "shm") != NULL;
}

int survey_run(struct crew *crew)
{
    struct tutti_machine machine = {.nics = 0};
    const char *transports = tutti_param_text(TUTTI_PARAM_TRANSPORTS);
    struct link_times inside = {.overhead_s = 0}, outside = inside;
    struct memory_times memory;
    struct survey survey;
    struct crowd crowd = {.turns = 0};
    double signal_s;
    char *comments = NULL;
    size_t size = 0;
    FILE *notes;
    int status = EXIT_SUCCESS;

    look_around(crew, &survey);
    if (survey.neighbor > 0)
        meter_link(crew, 0, survey.neighbor, &inside);
    if (survey.stranger > 0)
        meter_link(crew, 0, survey.stranger, &outside);
    crowd.turns = (double)survey.mates / survey.cores;
    if (survey.mates > survey.cores)
        meter_crowd(crew, crowd.turns, &crowd.rounds);
    signal_s = meter_signal(crew);
    meter_memory(crew, survey.mates, &memory);
    timing_show_end(crew);
    if (crew->rank == 0) {
        notes = must_have(open_memstream(&comments, &size));
        fprintf(notes,
                "# Measured by tutti-topo with %d ranks over %s%s; \"within\" is the root "
                "mean square.\n",
                crew->nranks, *transports != '\0' ? transports : "the usual transports",
                crew->is_quick ? ", quickly" : "");
        if (survey.neighbor > 0)
            set_level(notes, "node", &inside, &machine.level[0]);
        if (survey.stranger > 0)
            set_level(notes, "top", &outside, &machine.level[2]);
        if (crowd.rounds.count > 0 && survey.neighbor > 0)
            set_crowd(notes, "node", &crowd, &machine.level[0]);
        if (survey.neighbor < 0)
            machine.level[0] = machine.level[2];
        if (survey.stranger < 0)
            machine.level[2] = machine.level[0];
        machine.level[1] = machine.level[2];
        set_memory(notes, &memory, &machine);
        /* Over sockets, a barrier consists of rounds of messages, so it gives no signal time. */
        if (survey.neighbor > 0 && survey.stranger < 0 && uses_memory(transports))
            machine.signal_s = signal_s;
        machine.cores = (uint32_t)survey.cores;
        machine.places = (struct tutti_placement){.nranks = (uint32_t)crew->nranks,
                                                  .node = survey.node, .nnodes = survey.nnodes};
        round_all(&machine);
        status = tell(crew, notes, &comments, &machine);
        if (status == EXIT_SUCCESS && crew->xml != NULL)
            status = store_measured(crew->xml, &(struct store_facts){
                .machine = &machine, .cpu = sched_getcpu(),
                .has_memory = survey.neighbor > 0 && uses_memory(transports),
                .has_network = survey.stranger > 0});
        free(comments);
    }
    free(survey.node);
    return status;
}
