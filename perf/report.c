/* SPDX-License-Identifier: Apache-2.0
 * nccl-tests' table, so that whoever reads one reads the other. */
#include "report.h"

#include "waiting.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One place of one row, over all ranks. */
struct cell {
    double time_us, algbw, busbw; /* GB/s */
    struct perf_stats blocks, samples;
    uint64_t wrong, overruns;
};

/* Where a rank runs. Plain bytes: ranks exchange it. */
struct where {
    int pid;
    char host[64];
    char device[PERF_GPU_NAME_BYTES + 16]; /* "": none */
    double formed_us;
};

static const char *const place_names[PERF_PLACES] = {"out_of_place", "in_place"};

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

void perf_report_progress(const struct perf_rank *rank, const struct perf_field *field, int block,
                          int nblocks)
{
    if (rank->rank != 0 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K# %zu bytes %s, %s: %d of %d", field->call->bytes,
            perf_type_name(field->call->type), field->is_in_place ? "in place" : "out of place",
            block + 1, nblocks);
}

static void print_version(const char *label, int code)
{
    printf(" %d.%d.%d (%s)", code / 10000, code / 100 % 100, code % 100, label);
}

static void print_columns(const struct perf_options *o)
{
    const char *more = "     min      max      p99     cov";
    int place_width = o->show_samples ? 67 : 33;
    const char *indent = o->show_times ? "         " : "";

    printf("#\n#%s %56s%*s%*s\n", indent, "", place_width, "out-of-place", place_width, "in-place");
    printf("#%s %12s %13s %9s %8s %7s", indent, "size", "count", "type", "redop", "root");
    for (int place = 0; place < PERF_PLACES; place++)
        printf(" %9s%s %7s %7s %6s", o->show_cpu_time ? "cputime" : "time",
               o->show_samples ? more : "", "algbw", "busbw", "#wrong");
    printf("\n#%s %12s %13s %9s %8s %7s", indent, "(B)", "(elements)", "", "", "");
    for (int place = 0; place < PERF_PLACES; place++)
        printf(" %9s%s %7s %7s %6s", "(us)",
               o->show_samples ? "    (us)     (us)     (us)     (%)" : "", "(GB/s)", "(GB/s)", "");
    printf("\n");
}

static const char *memory_name(const struct perf_options *o)
{
    return o->use_gpu ? "gpu" : o->use_library_memory ? "tuttiMemAlloc" : "malloc";
}

static void print_header(const struct perf_rank *rank, const struct where *where)
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
           o->iterations, o->aggregate, o->checks, (int)o->sync,
           memory_name(o), rank->stream == NULL ? "none" : o->use_gpu ? "cuda" : "host", o->graph);
    for (int i = 0; i < rank->nranks; i++) {
        printf("#  Rank %3d Pid %7d on %s%s\n", i, where[i].pid, where[i].host, where[i].device);
        formed_us = where[i].formed_us > formed_us ? where[i].formed_us : formed_us;
    }
    printf("# Formed in %.1f ms\n", formed_us * 1e-3);
    print_columns(o);
    fflush(stdout);
}

static void open_json(struct perf_report *report, const struct perf_rank *rank)
{
    const struct perf_options *o = rank->options;

    if (o->json_path == NULL)
        return;
    report->json = fopen(o->json_path, "w");
    if (report->json == NULL)
        perf_die(rank, "cannot write %s", o->json_path);
    fprintf(report->json,
            "{\"name\": \"%s\", \"version\": %d, \"ranks\": %d, \"threads\": %d,\n"
            " \"iterations\": %d, \"warmups\": %d, \"aggregate\": %d, \"checks\": %d,\n"
            " \"blocking\": %d, \"stream\": %s, \"registered\": %s, \"misaligned\": %s,\n"
            " \"average\": %d, \"cpu_time\": %s, \"memory\": \"%s\", \"graph\": %d,\n"
            " \"results\": [",
            perf_collective.name, TUTTI_VERSION_CODE, rank->nranks, o->threads, o->iterations,
            o->warmups, o->aggregate, o->checks, (int)o->sync,
            rank->stream != NULL ? "true" : "false",
            o->use_library_memory ? "true" : "false", o->misalign ? "true" : "false",
            (int)o->combine, o->show_cpu_time ? "true" : "false", memory_name(o), o->graph);
}

void perf_report_open(struct perf_report *report, struct perf_rank *rank)
{
    struct where mine = {.pid = (int)getpid(), .formed_us = rank->formed_us};
    struct where *where = calloc((size_t)rank->nranks, sizeof(*where));

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
        open_json(report, rank);
    }
    free(where);
}

/* One number of all ranks' `value`, at the same place in each result. */
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

/* The extremes are those of any rank; the rest is combined as the user wants. */
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

static struct cell make_cell(const struct perf_rank *rank, const struct perf_case *c,
                             const struct perf_result *all, size_t stride)
{
    struct cell cell = {.time_us = 0};

    cell.blocks = combine_stats(rank->options->combine, all, (size_t)rank->nranks, stride,
                                offsetof(struct perf_result, blocks));
    cell.samples = combine_stats(rank->options->combine, all, (size_t)rank->nranks, stride,
                                 offsetof(struct perf_result, samples));
    cell.time_us = cell.blocks.median;
    cell.algbw = cell.time_us > 0 ? (double)c->bytes / cell.time_us * 1e-3 : 0;
    cell.busbw = cell.algbw * perf_collective.bus_factor(rank->nranks);
    for (int i = 0; i < rank->nranks; i++) {
        cell.wrong += all[(size_t)i * stride].wrong;
        cell.overruns += all[(size_t)i * stride].overruns;
    }
    return cell;
}

static void print_cell(const struct perf_options *o, const struct cell *cell)
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

static void print_row(const struct perf_options *o, const struct perf_case *c,
                      const struct cell *cells, int nplaces)
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
        printf(" %9s%*s %7s %7s %6s", "N/A", o->show_samples ? 34 : 0, "", "N/A", "N/A", "N/A");
    printf("\n");
    fflush(stdout);
}

static void write_stats(FILE *json, const struct perf_stats *stats)
{
    fprintf(json,
            "{\"median\": %.3f, \"mean\": %.3f, \"min\": %.3f, \"max\": %.3f, \"p99\": %.3f, "
            "\"cov\": %.4f}",
            stats->median, stats->mean, stats->min, stats->max, stats->p99, stats->variation);
}

/* A line of its own under the row. */
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

static void write_overlap(FILE *json, const struct perf_overlap *overlap)
{
    fprintf(json, ",\n   \"overlap\": {\"compute_us\": %.3f, \"call_us\": %.3f, \"both_us\": %.3f, "
            "\"percent\": %.2f, \"beside_us\": %.3f, \"enqueue_us\": %.3f}", overlap->compute_us,
            overlap->call_us, overlap->both_us, overlap->percent, overlap->beside_us,
            overlap->enqueue_us);
}

static void write_row(const struct perf_report *report, const struct perf_options *o,
                      const struct perf_case *c, const struct cell *cells, int nplaces,
                      const struct perf_overlap *overlap)
{
    fprintf(report->json,
            "%s\n  {\"size\": %zu, \"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", "
            "\"root\": %d",
            report->rows > 0 ? "," : "", c->bytes, c->count,
            perf_collective.has_data ? perf_type_name(c->type) : "none", perf_op_name(c->op),
            c->root);
    for (int place = 0; place < nplaces; place++) {
        const struct cell *cell = &cells[place];

        fprintf(report->json, ",\n   \"%s\": {\"time_us\": %.3f, \"algbw\": %.4f, \"busbw\": %.4f, "
                "\"wrong\": ", place_names[place], cell->time_us, cell->algbw, cell->busbw);
        if (o->checks > 0)
            fprintf(report->json, "%llu", (unsigned long long)cell->wrong);
        else
            fprintf(report->json, "null");
        fprintf(report->json, ",\n    \"blocks_us\": ");
        write_stats(report->json, &cell->blocks);
        if (o->show_samples) {
            fprintf(report->json, ",\n    \"samples_us\": ");
            write_stats(report->json, &cell->samples);
        }
        fprintf(report->json, "}");
    }
    if (overlap != NULL)
        write_overlap(report->json, overlap);
    fprintf(report->json, "}");
}

void perf_report_row(struct perf_report *report, struct perf_rank *rank, const struct perf_case *c,
                     const struct perf_result *mine, int nplaces,
                     const struct perf_overlap *overlap)
{
    struct perf_result *all = calloc((size_t)rank->nranks, PERF_PLACES * sizeof(*all));
    struct cell cells[PERF_PLACES] = {{.time_us = 0}};

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
    if (rank->rank == 0)
        print_row(rank->options, c, cells, nplaces);
    if (rank->rank == 0 && overlap != NULL)
        print_overlap(rank, overlap);
    if (report->json != NULL)
        write_row(report, rank->options, c, cells, nplaces, overlap);
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

/* TUTTI_TESTS_MIN_BW in GB/s, as nccl-tests' NCCL_TESTS_MIN_BW; negative: none. */
static double wanted_bandwidth(void)
{
    const char *text = getenv("TUTTI_TESTS_MIN_BW");

    return text == NULL || *text == '\0' ? -1 : strtod(text, NULL);
}

static void close_json(struct perf_report *report, const struct perf_rank *rank, double average,
                       bool is_good)
{
    if (report->json == NULL)
        return;
    fprintf(report->json, "],\n \"wrong\": %llu, \"out_of_bounds\": %llu, \"average_busbw\": %.4f, "
            "\"ok\": %s}\n", (unsigned long long)report->wrong,
            (unsigned long long)report->overruns, average, is_good ? "true" : "false");
    if (fclose(report->json) != 0)
        perf_die(rank, "cannot finish %s", rank->options->json_path);
    report->json = NULL;
}

int perf_report_close(struct perf_report *report, struct perf_rank *rank)
{
    double average = report->bus_count > 0 ? report->bus_sum / (double)report->bus_count : 0;
    double wanted = wanted_bandwidth();
    bool is_fast = wanted < 0 || average >= 0.9 * wanted;
    bool is_good = report->wrong == 0 && report->overruns == 0 && is_fast;

    if (rank->options->waiting_ms > 0)
        print_waiting(rank);
    if (rank->options->show_memory)
        print_memory(rank);
    close_json(report, rank, average, is_good);
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
