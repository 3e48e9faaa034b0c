/* SPDX-License-Identifier: Apache-2.0
 * Prints the cases of a sweep as a table, each as soon as it has been simulated. */
#include "sim/view_table.h"

#include "common/units.h"
#include "tuner/explain.h"

#include <stdlib.h>

#define CHOICE_BYTES 96 /* size of a buffer for an algorithm with its options */

static const char wide_heads[] =
    ">RANKS|>SIZE| |ALGORITHM|>PIECES|>BOUND|>TIME|>EFFICIENCY %|>BUSBW|"
    ">LATENCY WIRE WORK WAIT %|BUSIEST LINK";

/* The widest texts of columns whose values are not known before the simulation. */
static const char widest_time[] = "99.9 us", widest_rate[] = "99.9 GB/s";
static const char widest_shares[] = "100 0 0 0";

void view_table_init(bool is_wide, bool has_ranks, FILE *out, struct view_table *ret_view)
{
    *ret_view = (struct view_table){.is_wide = is_wide, .has_ranks = is_wide || has_ranks,
                                    .out = out};
    table_init(&ret_view->table, is_wide     ? wide_heads
                                 : has_ranks ? ">RANKS|>SIZE| |ALGORITHM|>TIME|>BUSBW|>EFF %"
                                             : ">SIZE| |ALGORITHM|>TIME|>BUSBW|>EFF %");
}

void view_table_fini(struct view_table *view)
{
    table_fini(&view->table);
}

void view_table_reserve(struct view_table *view, const struct sweep *sweep, uint32_t most_ranks)
{
    size_t column = view->has_ranks;
    char text[CHOICE_BYTES];

    if (view->has_ranks)
        table_reserve(&view->table, 0, units_count(most_ranks, text));
    for (size_t i = 0; i < sweep->ncases; i++) {
        table_reserve(&view->table, column, units_bytes(sweep->cases[i].size_bytes, text));
        tutti_choice_format(&sweep->cases[i].choice, text, sizeof text);
        table_reserve(&view->table, column + 2, text);
    }
    table_reserve(&view->table, column + 1, "*");
    if (view->is_wide) {
        table_reserve(&view->table, column + 4, widest_time);
        table_reserve(&view->table, column + 5, widest_time);
        table_reserve(&view->table, column + 7, widest_rate);
        table_reserve(&view->table, column + 8, widest_shares);
    } else {
        table_reserve(&view->table, column + 3, widest_time);
        table_reserve(&view->table, column + 4, widest_rate);
        table_reserve(&view->table, column + 5, "100.0");
    }
}

/* Adds the time, the bus bandwidth and the efficiency of a case, in the order of the table. */
static void add_results(struct view_table *view, const struct sim_case *one)
{
    double efficiency = one->report.seconds > 0 ? 100 * sweep_bound(one) / sweep_seconds(one) : 100;
    char text[UNITS_TEXT];

    table_add(&view->table, "%s", units_seconds(sweep_seconds(one), text));
    if (view->is_wide)
        table_add(&view->table, "%.1f", efficiency);
    table_add(&view->table, "%s", units_rate(one->bus_bytes_per_s, text));
    if (!view->is_wide)
        table_add(&view->table, "%.1f", efficiency);
}

/* Adds the last columns of a wide table: where the time goes. */
static void add_causes(struct view_table *view, const struct sim_case *one)
{
    const struct tutti_sim_report *report = &one->report;
    char link[SWEEP_LINK_TEXT];

    table_add(&view->table, "%.0f %.0f %.0f %.0f", 100 * report->latency_share,
              100 * report->wire_share, 100 * report->work_share, 100 * report->wait_share);
    table_add(&view->table, "%s", sweep_link(one, link));
}

/* Adds the columns that are the same for all algorithms: ranks, size, and the mark. */
static void add_call(struct view_table *view, const struct sim_case *one, bool is_marked)
{
    char text[UNITS_TEXT];

    if (view->has_ranks)
        table_add(&view->table, "%s", units_count(one->nranks, text));
    table_add(&view->table, "%s", units_bytes(one->size_bytes, text));
    table_add(&view->table, is_marked ? "*" : "");
}

void view_table_row(struct view_table *view, const struct sim_case *one)
{
    char text[UNITS_TEXT], choice[CHOICE_BYTES];

    add_call(view, one, one->is_best);
    tutti_choice_format(&one->choice, choice, sizeof choice);
    table_add(&view->table, "%s", choice);
    if (view->is_wide) {
        table_add(&view->table, "%.0f", one->npieces);
        table_add(&view->table, "%s", units_seconds(sweep_bound(one), text));
    }
    if (one->is_left_out) {
        table_add_rest(&view->table, "left out: %s steps; see --steps",
                       units_count(one->nsteps, text));
    } else {
        add_results(view, one);
        if (view->is_wide)
            add_causes(view, one);
    }
    table_flush(&view->table, view->out);
}

void view_table_no_row(struct view_table *view, const struct sim_case *one)
{
    add_call(view, one, false);
    table_add_rest(&view->table, "all left out for their steps; see --steps");
    table_flush(&view->table, view->out);
}
