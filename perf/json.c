/* SPDX-License-Identifier: Apache-2.0
 * Writes the results as JSON, so that other programs can read them. */
#include "json.h"

#include "facts.h"
#include "types.h"

#include <string.h>

static const char *const place_names[PERF_PLACES] = {"out_of_place", "in_place"};

/* Writes a quoted string. Bytes beyond ASCII are written unchanged, so the file has the encoding of
 * the user's command line and environment. */
static void write_bytes(FILE *json, const char *text, size_t length)
{
    fputc('"', json);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            fprintf(json, "\\%c", c);
        else if (c < ' ')
            fprintf(json, "\\u%04x", c);
        else
            fputc(c, json);
    }
    fputc('"', json);
}

static void write_text(FILE *json, const char *text)
{
    write_bytes(json, text, strlen(text));
}

static void write_member(FILE *json, const char *name, const char *text)
{
    fprintf(json, "\"%s\": ", name);
    write_text(json, text);
}

/* ---- the head -------------------------------------------------------------------------------- */

static const char *truth(bool is_true)
{
    return is_true ? "true" : "false";
}

static void write_command(FILE *json, const struct perf_options *o)
{
    fprintf(json, " \"command\": [");
    for (int i = 0; i < o->argc; i++) {
        fprintf(json, "%s", i > 0 ? ", " : "");
        write_text(json, o->argv[i]);
    }
    fprintf(json, "],\n");
}

/* The member of environment variables that is being written, and how many it has so far. */
struct variables {
    FILE *json;
    size_t count;
};

static void write_variable(void *context, const char *name, size_t name_length, const char *value)
{
    struct variables *variables = context;

    fprintf(variables->json, "%s", variables->count++ > 0 ? ", " : "");
    write_bytes(variables->json, name, name_length);
    fprintf(variables->json, ": ");
    write_text(variables->json, value);
}

static void write_environment(FILE *json)
{
    struct variables variables = {.json = json};

    fprintf(json, " \"environment\": {");
    perf_facts_environment(write_variable, &variables);
    fprintf(json, "},\n");
}

static void write_places(FILE *json, const struct perf_rank *rank, const struct perf_where *where)
{
    fprintf(json, " \"places\": [");
    for (int i = 0; i < rank->nranks; i++) {
        fprintf(json, "%s{\"rank\": %d, \"pid\": %d, ", i > 0 ? ",\n  " : "", i, where[i].pid);
        write_member(json, "host", where[i].host);
        if (where[i].device[0] != '\0') {
            fprintf(json, ", ");
            /* The text begins with ", " for the table. */
            write_member(json, "device", where[i].device + strspn(where[i].device, ", "));
        }
        fprintf(json, "}");
    }
    fprintf(json, "],\n");
}

static void write_settings(FILE *json, const struct perf_rank *rank)
{
    const struct perf_options *o = rank->options;

    fprintf(json,
            " \"ranks\": %d, \"threads\": %d,\n"
            " \"iterations\": %d, \"warmups\": %d, \"aggregate\": %d, \"checks\": %d,\n"
            " \"blocking\": %d, \"stream\": %s, \"registered\": %s, \"misaligned\": %s,\n"
            " \"average\": %d, \"cpu_time\": %s, \"memory\": \"%s\", \"graph\": %d,\n",
            rank->nranks, o->threads, o->iterations, o->warmups, o->aggregate, o->checks,
            (int)o->sync, truth(rank->stream != NULL), truth(o->registration != PERF_UNREGISTERED),
            truth(o->misalign), (int)o->combine, truth(o->show_cpu_time), perf_report_memory(o),
            o->graph);
}

void perf_json_open(struct perf_report *report, const struct perf_rank *rank,
                    const struct perf_where *where)
{
    const struct perf_options *o = rank->options;
    char fact[PERF_FACT_BYTES];
    int library = 0;
    FILE *json;

    if (o->json_path == NULL)
        return;
    json = fopen(o->json_path, "w");
    if (json == NULL)
        perf_die(rank, "cannot write %s", o->json_path);
    perf_must(rank, "tuttiGetVersion", tuttiGetVersion(&library));
    fprintf(json, "{\"name\": \"%s\", \"version\": %d, \"library_version\": %d,\n ",
            perf_collective.name, TUTTI_VERSION_CODE, library);
    perf_facts_date(fact);
    write_member(json, "date", fact);
    fprintf(json, ", ");
    write_member(json, "host", where[0].host);
    perf_facts_cpu(fact);
    fprintf(json, ",\n ");
    write_member(json, "cpu", fact);
    fprintf(json, ",\n");
    write_command(json, o);
    write_environment(json);
    write_places(json, rank, where);
    write_settings(json, rank);
    fprintf(json, " \"results\": [");
    report->json = json;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_stats(FILE *json, const struct perf_stats *stats)
{
    fprintf(json,
            "{\"median\": %.3f, \"mean\": %.3f, \"min\": %.3f, \"max\": %.3f, \"p99\": %.3f, "
            "\"cov\": %.4f}",
            stats->median, stats->mean, stats->min, stats->max, stats->p99, stats->variation);
}

static void write_overlap(FILE *json, const struct perf_overlap *overlap)
{
    fprintf(json, ",\n   \"overlap\": {\"compute_us\": %.3f, \"call_us\": %.3f, \"both_us\": %.3f, "
            "\"percent\": %.2f, \"beside_us\": %.3f, \"enqueue_us\": %.3f}", overlap->compute_us,
            overlap->call_us, overlap->both_us, overlap->percent, overlap->beside_us,
            overlap->enqueue_us);
}

static void write_cell(FILE *json, const struct perf_options *o, const struct perf_cell *cell)
{
    fprintf(json, "{\"time_us\": %.3f, \"algbw\": %.4f, \"busbw\": %.4f, \"wrong\": ",
            cell->time_us, cell->algbw, cell->busbw);
    if (o->checks > 0)
        fprintf(json, "%llu", (unsigned long long)cell->wrong);
    else
        fprintf(json, "null");
    fprintf(json, ",\n    \"blocks_us\": ");
    write_stats(json, &cell->blocks);
    if (o->show_samples) {
        fprintf(json, ",\n    \"samples_us\": ");
        write_stats(json, &cell->samples);
    }
    fprintf(json, "}");
}

void perf_json_row(const struct perf_report *report, const struct perf_options *options,
                   const struct perf_case *c, const struct perf_cell *cells, int nplaces,
                   const struct perf_overlap *overlap, const tuttiExplanation_t *explanation)
{
    FILE *json = report->json;

    fprintf(json,
            "%s\n  {\"size\": %zu, \"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", "
            "\"root\": %d,\n   ",
            report->rows > 0 ? "," : "", c->bytes, c->count,
            perf_collective.has_data ? perf_type_name(c->type) : "none", perf_op_name(c->op),
            c->root);
    write_member(json, "algorithm", explanation->algorithm);
    fprintf(json, ", ");
    write_member(json, "transport", explanation->transport);
    fprintf(json, ", ");
    write_member(json, "reason", explanation->reason);
    for (int place = 0; place < nplaces; place++) {
        fprintf(json, ",\n   \"%s\": ", place_names[place]);
        write_cell(json, options, &cells[place]);
    }
    if (overlap != NULL)
        write_overlap(json, overlap);
    fprintf(json, "}");
}

void perf_json_close(struct perf_report *report, const struct perf_rank *rank, double average,
                     bool is_good)
{
    fprintf(report->json, "],\n \"wrong\": %llu, \"out_of_bounds\": %llu, \"average_busbw\": %.4f, "
            "\"ok\": %s}\n", (unsigned long long)report->wrong,
            (unsigned long long)report->overruns, average, truth(is_good));
    if (fclose(report->json) != 0)
        perf_die(rank, "cannot finish %s", rank->options->json_path);
    report->json = NULL;
}
