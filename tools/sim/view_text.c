/* SPDX-License-Identifier: Apache-2.0
 * Writes a sweep as a table and as JSON. */
#include "sim/views.h"

#include "common/table.h"
#include "common/units.h"
#include "tuner/explain.h"

#include <math.h>
#include <stdlib.h>

/* Adds the columns of a case that was simulated. */
static void add_played(struct table *table, const struct sim_case *one)
{
    const struct tutti_sim_report *report = &one->report;
    char text[UNITS_TEXT], played[UNITS_TEXT];

    table_add(table, "%s", units_seconds(sweep_seconds(one), text));
    table_add(table, "%.1f",
              report->seconds > 0 ? 100 * sweep_bound(one) / sweep_seconds(one) : 100);
    table_add(table, "%s", units_rate(one->bus_bytes_per_s, text));
    table_add(table, "%.0f %.0f %.0f %.0f", 100 * report->latency_share, 100 * report->wire_share,
              100 * report->work_share, 100 * report->wait_share);
    if (report->nlinks == 0 || report->seconds <= 0)
        table_add(table, "-");
    else if (one->period > 0)
        table_add(table, "%s, %.0f%%; by symmetry: %s of %s ranks", report->links[0].name,
                  100 * report->links[0].busy_s / report->seconds,
                  units_count(one->period, played), units_count(one->nranks, text));
    else
        table_add(table, "%s, %.0f%%", report->links[0].name,
                  100 * report->links[0].busy_s / report->seconds);
}

/* Adds the same columns for a case that was left out. */
static void add_left_out(struct table *table, const struct sim_case *one)
{
    char text[UNITS_TEXT];

    table_add(table, "-");
    table_add(table, "-");
    table_add(table, "-");
    table_add(table, "-");
    table_add(table, "left out: %s steps; see --steps", units_count(one->nsteps, text));
}

void view_table(const struct sweep *sweep, FILE *out)
{
    struct table table;
    char text[UNITS_TEXT], choice[96];

    table_init(&table, ">RANKS|>SIZE| |ALGORITHM|>PIECES|>BOUND|>TIME|>EFFICIENCY %|>BUSBW|"
               ">LATENCY WIRE WORK WAIT %|BUSIEST LINK");
    for (size_t i = 0; i < sweep->ncases; i++) {
        const struct sim_case *one = &sweep->cases[i];

        table_add(&table, "%s", units_count(one->nranks, text));
        table_add(&table, "%s", units_bytes(one->size_bytes, text));
        table_add(&table, one->is_best ? "*" : "");
        tutti_choice_format(&one->choice, choice, sizeof choice);
        table_add(&table, "%s", choice);
        table_add(&table, "%.0f", one->npieces);
        table_add(&table, "%s", units_seconds(sweep_bound(one), text));
        if (one->is_left_out)
            add_left_out(&table, one);
        else
            add_played(&table, one);
    }
    table_print(&table, out);
    table_fini(&table);
}

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

void view_json(const struct sweep *sweep, FILE *out)
{
    fprintf(out, "{\"collective\": \"%s\", \"cases\": [", tutti_collective_name(sweep->collective));
    for (size_t i = 0; i < sweep->ncases; i++) {
        const struct sim_case *one = &sweep->cases[i];

        fprintf(out, "%s\n  {\"ranks\": %u, \"size_bytes\": %.17g, \"algorithm\": \"%s\", ",
                i > 0 ? "," : "", one->nranks, one->size_bytes, one->choice.algorithm->name);
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
    fputs("\n]}\n", out);
}
