/* SPDX-License-Identifier: Apache-2.0
 * Prints the table of results in the format of nccl-tests, so that people and scripts can read
 * both. */
#include "report.h"

#include "environment.h"
#include "json.h"
#include "types.h"
#include "waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Returns true if a person sees the progress at once. Then stderr is a terminal, or a launcher
 * forwards the output to a terminal and says so in TUTTI_PROGRESS. */
static bool has_terminal(void)
{
    const char *told = perf_environment("TUTTI_PROGRESS");

    return (told != NULL && strcmp(told, "1") == 0) || isatty(STDERR_FILENO);
}

/* Erases to the end of the line and returns to its beginning. tutti-run recognizes these bytes. */
#define LINE_AGAIN "\033[K\r"

static void clear_progress(void)
{
    if (has_terminal())
        fputs(LINE_AGAIN, stderr);
}

void perf_report_progress(const struct perf_rank *rank, const struct perf_field *field, int block,
                          int nblocks)
{
    if (rank->rank != 0 || !has_terminal())
        return;
    fprintf(stderr, "# %zu bytes %s, %s: %d of %d" LINE_AGAIN, field->call->bytes,
            perf_type_name(field->call->type), field->is_in_place ? "in place" : "out of place",
            block + 1, nblocks);
}

static void print_version(const char *label, int code)
{
    printf(" %d.%d.%d (%s)", code / 10000, code / 100 % 100, code % 100, label);
}

/* Widths in characters: of the longest usual name of an algorithm; of the four columns of the
 * option -I; of all columns of a place without these. */
enum { ALGORITHM_WIDTH = 24, SAMPLES_WIDTH = 34, PLACE_WIDTH = 33 };

static void print_columns(const struct perf_options *o)
{
    const char *more = "     min      max      p99     cov"; /* the columns of the option -I */
    int place_width = PLACE_WIDTH + (o->show_samples ? SAMPLES_WIDTH : 0);
    const char *indent = o->show_times ? "         " : "";

    printf("#\n#%s %56s%*s%*s\n", indent, "", place_width, "out-of-place", place_width, "in-place");
    printf("#%s %12s %13s %9s %8s %7s", indent, "size", "count", "type", "redop", "root");
    for (int place = 0; place < PERF_PLACES; place++)
        printf(" %9s%s %7s %7s %6s", o->show_cpu_time ? "cputime" : "time",
               o->show_samples ? more : "", "algbw", "busbw", "#wrong");
    if (o->show_algorithms)
        printf("  %-*s transport", ALGORITHM_WIDTH, "algorithm");
    printf("\n#%s %12s %13s %9s %8s %7s", indent, "(B)", "(elements)", "", "", "");
    for (int place = 0; place < PERF_PLACES; place++)
        printf(" %9s%s %7s %7s %6s", "(us)",
               o->show_samples ? "    (us)     (us)     (us)     (%)" : "", "(GB/s)", "(GB/s)", "");
    printf("\n");
}

const char *perf_report_memory(const struct perf_options *o)
{
    if (!o->use_gpu)
        return o->registration == PERF_UNREGISTERED ? "malloc" : "tuttiMemAlloc";
    switch (o->registration) {
    case PERF_REGISTERED: return "gpu, registered";
    case PERF_WINDOWS: return "gpu, tuttiMemAlloc";
    default: return "gpu";
    }
}

/* Prints the settings, the places of the ranks and the heads of the columns. */
static void print_header(const struct perf_rank *rank, const struct perf_where *where)
{
    const struct perf_options *o = rank->options;
    double formed_us = 0;
    int library = 0;

    perf_must(rank, "tuttiGetVersion", tuttiGetVersion(&library));
    printf("# tutti %s_perf", perf_collective.name);
    print_version("header", TUTTI_VERSION_CODE);
    print_version("library", library);
    printf("\n# ranks: %d, per process: %d, minBytes: %zu, maxBytes: %zu, step: %zu (%s), "
           "warmup iters: %d, iters: %d, agg iters: %d, validation: %d, blocking: %d, memory: %s, "
           "stream: %s, graph: %d\n#\n# Using ranks\n",
           rank->nranks, o->threads, o->min_bytes, o->max_bytes,
           o->factor ? o->factor : o->step_bytes, o->factor ? "factor" : "bytes", o->warmups,
           o->iterations, o->aggregate, o->checks, (int)o->sync, perf_report_memory(o),
           rank->stream == NULL ? "none"
           : o->use_gpu         ? "cuda"
                                : "host",
           o->graph);
    for (int i = 0; i < rank->nranks; i++) {
        printf("#  Rank %3d Pid %7d on %s%s\n", i, where[i].pid, where[i].host, where[i].device);
        formed_us = where[i].formed_us > formed_us ? where[i].formed_us : formed_us;
    }
    printf("# Formed in %.1f ms\n", formed_us * 1e-3);
    if (rank->nranks == 1)
        printf("# One rank: nothing is communicated. Start several with --ranks N, -g N or a "
               "launcher.\n");
    print_columns(o);
    fflush(stdout);
}

void perf_report_open(struct perf_report *report, struct perf_rank *rank)
{
    struct perf_where mine = {.pid = (int)getpid(), .formed_us = rank->formed_us};
    struct perf_where *where = calloc((size_t)rank->nranks, sizeof(*where));

    *report = (struct perf_report){.json = NULL};
    if (where == NULL)
        perf_die(rank, "no memory for the places of %d ranks", rank->nranks);
    if (gethostname(mine.host, sizeof(mine.host) - 1) != 0)
        strcpy(mine.host, "?");
    if (rank->options->use_gpu)
        snprintf(mine.device, sizeof(mine.device), ", GPU %d %s", rank->gpu.device, rank->gpu.name);
    perf_exchange(rank, &mine, sizeof(mine), where);
    if (rank->rank == 0) {
        print_header(rank, where);
        perf_json_open(report, rank, where);
    }
    free(where);
}

/* Combines one value of all ranks into one number. The value of rank i is a double, `offset` bytes
 * into all[i * stride]. */
static double combine(enum perf_combine how, const struct perf_result *all, size_t nranks,
                      size_t stride, size_t offset)
{
    double first = 0, sum = 0, low = 0, high = 0;

    for (size_t i = 0; i < nranks; i++) {
        double value;

        memcpy(&value, (const char *)&all[i * stride] + offset, sizeof(value));
        first = i == 0 ? value : first;
        low = i == 0 || value < low ? value : low;
        high = i == 0 || value > high ? value : high;
        sum += value;
    }
    switch (how) {
    case PERF_RANK0: return first;
    case PERF_LOWEST: return low;
    case PERF_HIGHEST: return high;
    default: return sum / (double)nranks;
    }
}

/* Combines min, max and p99 as extremes over all ranks, and the variation as the mean. The other
 * values are combined as the user asks. */
static struct perf_stats combine_stats(enum perf_combine how, const struct perf_result *all,
                                       size_t nranks, size_t stride, size_t offset)
{
    struct perf_stats stats;

    stats.median = combine(how, all, nranks, stride, offset + offsetof(struct perf_stats, median));
    stats.mean = combine(how, all, nranks, stride, offset + offsetof(struct perf_stats, mean));
    stats.min =
        combine(PERF_LOWEST, all, nranks, stride, offset + offsetof(struct perf_stats, min));
    stats.max = combine(PERF_HIGHEST, all, nranks, stride,
                        offset + offsetof(struct perf_stats, max));
    stats.p99 = combine(PERF_HIGHEST, all, nranks, stride,
                        offset + offsetof(struct perf_stats, p99));
    stats.variation = combine(PERF_MEAN, all, nranks, stride,
                              offset + offsetof(struct perf_stats, variation));
    return stats;
}

/* Combines the results of all ranks for one place. The result of rank i is all[i * stride]. */
static struct perf_cell make_cell(const struct perf_rank *rank, const struct perf_case *c,
                             const struct perf_result *all, size_t stride)
{
    struct perf_cell cell = {.time_us = 0};

    cell.blocks = combine_stats(rank->options->combine, all, (size_t)rank->nranks, stride,
                                offsetof(struct perf_result, blocks));
    cell.samples = combine_stats(rank->options->combine, all, (size_t)rank->nranks, stride,
                                 offsetof(struct perf_result, samples));
    cell.time_us = cell.blocks.median;
    /* Bytes per microsecond are MB/s. */
    cell.algbw = cell.time_us > 0 ? (double)c->bytes / cell.time_us * 1e-3 : 0;
    cell.busbw = cell.algbw * perf_collective.bus_factor(rank->nranks);
    for (int i = 0; i < rank->nranks; i++) {
        cell.wrong += all[(size_t)i * stride].wrong;
        cell.overruns += all[(size_t)i * stride].overruns;
    }
    return cell;
}

static void print_cell(const struct perf_options *o, const struct perf_cell *cell)
{
    printf(cell->time_us < 1e4 ? " %9.2f" : " %9.0f", cell->time_us);
    if (o->show_samples)
        printf(" %8.2f %8.2f %8.2f %6.1f", cell->samples.min, cell->samples.max, cell->samples.p99,
               cell->samples.variation * 100);
    printf(" %7.3f %7.3f", cell->algbw, cell->busbw);
    if (o->checks > 0)
        printf(" %6llu", (unsigned long long)cell->wrong);
    else
        printf(" %6s", "N/A");
}

/* Finds the algorithm and the transport of a row's calls, which are the same on all ranks. Sends
 * and receives have no algorithm. They use the same transports as collectives, so an all-to-all
 * gives their transport. */
static void explain(const struct perf_rank *rank, const struct perf_case *c,
                    tuttiExplanation_t *ret_explanation)
{
    const char *name = perf_collective.explains ? perf_collective.explains : perf_collective.tunes;
    /* tuttiCommExplain wants the mean of a v-form's counts. The count columns of all v-forms but
     * alltoallv show the sum of the counts. */
    size_t count = perf_collective.explains ? c->count / (size_t)c->nranks : c->count;

    *ret_explanation = (tuttiExplanation_t){.size = sizeof(*ret_explanation)};
    perf_must(rank, "tuttiCommExplain",
              tuttiCommExplain(rank->comm, name ? name : "alltoall", rank->output.target, count,
                               c->type, c->op_handle, c->root, ret_explanation));
    if (name == NULL && c->nranks > 1)
        strcpy(ret_explanation->algorithm, "send/recv");
}

static void print_row(const struct perf_options *o, const struct perf_case *c,
                      const struct perf_cell *cells, int nplaces,
                      const tuttiExplanation_t *explanation)
{
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm local;

    clear_progress();
    if (o->show_times && localtime_r(&now, &local) != NULL &&
        strftime(clock, sizeof(clock), " %H:%M:%S", &local) > 0)
        printf("%s", clock);
    printf("  %12zu %13zu %9s %8s %7d", c->bytes, c->count,
           perf_collective.has_data ? perf_type_name(c->type) : "none", perf_op_name(c->op),
           c->root);
    for (int place = 0; place < nplaces; place++)
        print_cell(o, &cells[place]);
    for (int place = nplaces; place < PERF_PLACES; place++)
        printf(" %9s%*s %7s %7s %6s", "N/A", o->show_samples ? SAMPLES_WIDTH : 0, "", "N/A", "N/A",
               "N/A");
    if (o->show_algorithms)
        printf("  %-*s %s", ALGORITHM_WIDTH, explanation->algorithm, explanation->transport);
    printf("\n");
    fflush(stdout);
}

/* Prints the overlap on a separate line below the row. */
static void print_overlap(const struct perf_rank *rank, const struct perf_overlap *overlap)
{
    char where[PERF_CPUS_TEXT_BYTES];

    perf_cpus_describe(&rank->options->cpus, rank->nranks, where);
    printf("#   Overlap, %s: computing %.1f us, the call %.1f us, both %.1f us: %.1f %%. Computing "
           "takes %.3f times as long beside the call, and to enqueue that %.2f us\n",
           where, overlap->compute_us, overlap->call_us, overlap->both_us, overlap->percent,
           overlap->beside_us / overlap->compute_us, overlap->enqueue_us);
    fflush(stdout);
}

void perf_report_row(struct perf_report *report, struct perf_rank *rank, const struct perf_case *c,
                     const struct perf_result *mine, int nplaces,
                     const struct perf_overlap *overlap)
{
    struct perf_result *all = calloc((size_t)rank->nranks, PERF_PLACES * sizeof(*all));
    struct perf_cell cells[PERF_PLACES] = {{.time_us = 0}};
    tuttiExplanation_t explanation;

    if (all == NULL)
        perf_die(rank, "no memory for the results of %d ranks", rank->nranks);
    perf_exchange(rank, mine, PERF_PLACES * sizeof(*mine), all);
    for (int place = 0; place < nplaces; place++) {
        cells[place] = make_cell(rank, c, all + place, PERF_PLACES);
        report->bus_sum += cells[place].busbw;
        report->bus_count++;
        report->wrong += cells[place].wrong;
        report->overruns += cells[place].overruns;
    }
    free(all);
    if (rank->rank == 0) {
        explain(rank, c, &explanation);
        print_row(rank->options, c, cells, nplaces, &explanation);
    }
    if (rank->rank == 0 && overlap != NULL)
        print_overlap(rank, overlap);
    if (report->json != NULL)
        perf_json_row(report, rank->options, c, cells, nplaces, overlap, &explanation);
    report->rows++;
}

static void print_memory(struct perf_rank *rank)
{
    tuttiMemStats_t mine = {.size = sizeof(mine)};
    tuttiMemStats_t *all = calloc((size_t)rank->nranks, sizeof(*all));

    if (all == NULL)
        perf_die(rank, "no memory for the memory report of %d ranks", rank->nranks);
    perf_must(rank, "tuttiCommMemStats", tuttiCommMemStats(rank->comm, &mine));
    perf_exchange(rank, &mine, sizeof(mine), all);
    for (int i = 0; rank->rank == 0 && i < rank->nranks; i++) {
        size_t bytes = all[i].privateBytes + all[i].sharedBytes;

        printf("# Memory of rank %3d: private %zu B, shared %zu B, reserved %zu B, %d connections, "
               "%d sockets", i, all[i].privateBytes, all[i].sharedBytes,
               all[i].sharedReservedBytes, all[i].connections, all[i].sockets);
        if (all[i].connections > 0)
            printf(", %zu B per connection", bytes / (size_t)all[i].connections);
        printf("\n");
    }
    free(all);
}

static void print_waiting(struct perf_rank *rank)
{
    struct perf_waiting waiting;

    perf_waiting_measure(rank, &waiting);
    if (rank->rank == 0)
        printf("# Waiting for %d ms, of a core at most: idle %.3f %%, blocked in a call %.3f %%, "
               "blocked on a stream %.3f %%\n", rank->options->waiting_ms, waiting.idle,
               waiting.blocked, waiting.on_stream);
}

/* Returns the value of TUTTI_TESTS_MIN_BW in GB/s, or -1 if it is not set. The variable works like
 * NCCL_TESTS_MIN_BW of nccl-tests. */
static double wanted_bandwidth(void)
{
    const char *text = perf_environment("TUTTI_TESTS_MIN_BW");

    return text == NULL ? -1 : strtod(text, NULL);
}

/* The share of TUTTI_TESTS_MIN_BW below which the program fails. It allows for noise. */
static const double tolerated_share = 0.9;

int perf_report_close(struct perf_report *report, struct perf_rank *rank)
{
    double average = report->bus_count > 0 ? report->bus_sum / (double)report->bus_count : 0;
    double wanted = wanted_bandwidth();
    bool is_fast = wanted < 0 || average >= tolerated_share * wanted;
    bool is_good = report->wrong == 0 && report->overruns == 0 && is_fast;

    if (rank->options->waiting_ms > 0)
        print_waiting(rank);
    if (rank->options->show_memory)
        print_memory(rank);
    if (report->json != NULL)
        perf_json_close(report, rank, average, is_good);
    if (rank->rank == 0) {
        clear_progress();
        printf("# Out of bounds values : %llu %s\n", (unsigned long long)report->overruns,
               rank->options->checks == 0 ? "(not checked)" :
               report->overruns == 0 ? "OK" : "FAILED");
        if (report->wrong > 0)
            printf("# Wrong values : %llu FAILED\n", (unsigned long long)report->wrong);
        printf("# Avg bus bandwidth    : %g %s\n#\n", average,
               wanted < 0 ? "" : is_fast ? "OK" : "FAILED (TUTTI_TESTS_MIN_BW)");
        fflush(stdout);
    }
    return is_good ? 0 : 1;
}
