/* SPDX-License-Identifier: Apache-2.0
 * Writes the cases of a sweep as JSON. */
#include "sim/views.h"

#include <math.h>

/* Writes the options that have a value. In JSON, the names need no escapes, because all of them are
 * the library's own names. */
static void write_options(const struct tutti_choice *choice, FILE *out)
{
    const char *comma = "";

    fputs("\"options\": {", out);
    for (int i = 0; i < TUTTI_OPTION_COUNT; i++)
        if (choice->options.value[i] != 0) {
            fprintf(out, "%s\"%s\": %u", comma, tutti_option_name((enum tutti_option)i),
                    choice->options.value[i]);
            comma = ", ";
        }
    fputs("}", out);
}

/* Writes the results of a case that was simulated. */
static void write_played(const struct sim_case *one, FILE *out)
{
    const struct tutti_sim_report *report = &one->report;

    fprintf(out, ", \"seconds\": %.9g, \"bus_bytes_per_s\": %.9g, \"best\": %s,\n   ",
            sweep_seconds(one), one->bus_bytes_per_s, one->is_best ? "true" : "false");
    fprintf(out, "\"pieces\": %.0f, \"messages\": %.0f, \"bytes\": %.17g, ", one->npieces,
            one->npieces * (double)report->nmessages, one->npieces * report->bytes);
    fprintf(out, "\"latency_share\": %.6g, \"wire_share\": %.6g, \"work_share\": %.6g, "
            "\"wait_share\": %.6g", report->latency_share, report->wire_share,
            report->work_share, report->wait_share);
    if (one->period > 0)
        fprintf(out, ", \"played_ranks\": %u", one->period);
    if (report->nlinks > 0)
        fprintf(out, ",\n   \"busiest_link\": \"%s\", \"busiest_link_seconds\": %.9g",
                report->links[0].name, one->npieces * report->links[0].busy_s);
}

static void write_case(const struct sim_case *one, FILE *out)
{
    fprintf(out, "  {\"ranks\": %u, \"size_bytes\": %.17g, \"algorithm\": \"%s\", ", one->nranks,
            one->size_bytes, one->choice.algorithm->name);
    write_options(&one->choice, out);
    fprintf(out, ",\n   \"bound_latency_s\": %.9g, \"bound_bandwidth_s\": %.9g, "
            "\"bound_sum_s\": %.9g", one->bound.latency_s, one->bound.bandwidth_s,
            one->bound.sum_s);
    if (!isnan(one->priced_s))
        fprintf(out, ", \"priced_s\": %.9g", one->priced_s);
    if (one->is_left_out)
        fprintf(out, ", \"left_out_steps\": %llu", (unsigned long long)one->nsteps);
    else
        write_played(one, out);
    fputs("}", out);
}

void view_json_cases(const struct sweep *sweep, bool only_best, FILE *out)
{
    const char *comma = "";

    fputs("\"cases\": [", out);
    for (size_t i = 0; i < sweep->ncases; i++) {
        if (only_best && !sweep->cases[i].is_best)
            continue;
        fprintf(out, "%s\n", comma);
        write_case(&sweep->cases[i], out);
        comma = ",";
    }
    fputs("\n]", out);
}

void view_json(const struct sweep *sweep, bool only_best, FILE *out)
{
    fprintf(out, "{\"collective\": \"%s\", ", tutti_collective_name(sweep->collective));
    view_json_cases(sweep, only_best, out);
    fputs("}\n", out);
}
