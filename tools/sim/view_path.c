/* SPDX-License-Identifier: Apache-2.0
 * Draws the critical path of one simulated case, to show why the case takes as long as it does.
 * Each row is a rank on the path, in the order in which the path reaches the ranks. Each bar is one
 * hop of the path. The color of a bar shows how that time was spent.
 */
#include "sim/views.h"

#include "common/memory.h"
#include "common/units.h"
#include "draw/axis.h"
#include "draw/colors.h"
#include "draw/svg.h"
#include "tuner/explain.h"

#include <math.h>
#include <string.h>

/* The frame of the rows, in pixels of the picture. */
#define LEFT 92.0
#define TOP 104.0
#define WIDTH 860.0
#define RIGHT_MARGIN 40.0

#define LABEL_GAP   13.0   /* least distance between the names of two rows */
#define LEAST_SHARE 0.0005 /* the legend leaves out kinds with a smaller share of the time */
#define KINDS 9

/* The kinds of hops. `why` is the reason in the simulator's report, and `name` is for the legend.
 * The last kind is for all other reasons. */
static const struct {
    const char *why, *name, *color;
} kinds[KINDS] = {
    {"overhead", "overhead", COLOR_ORANGE},
    {"latency", "latency", COLOR_SKY},
    {"bandwidth", "bandwidth", COLOR_BLUE},
    {"reduce", "reduce", COLOR_VERMILION},
    {"copy", "copy", COLOR_PURPLE},
    {"port", "wait for a port", COLOR_GRAY},
    {"link", "wait for a link", COLOR_GREEN},
    {"core", "wait for a core", COLOR_BROWN},
    {"", "other", COLOR_INK},
};

/* The picture of a path. */
struct path {
    struct svg svg;
    const struct tutti_sim_hop **hops; /* sorted by time; the array is owned */
    size_t nhops;
    uint32_t *ranks; /* rank of each row; owned */
    size_t nrows;
    double row;                        /* height of a row in pixels */
    struct axis time;
};

static size_t kind_of(const struct tutti_sim_hop *hop)
{
    for (size_t i = 0; i + 1 < KINDS; i++)
        if (strcmp(kinds[i].why, hop->why) == 0)
            return i;
    return KINDS - 1;
}

static int by_begin(const void *a, const void *b)
{
    const struct tutti_sim_hop *first = *(const struct tutti_sim_hop *const *)a;
    const struct tutti_sim_hop *second = *(const struct tutti_sim_hop *const *)b;

    if (first->begin_s != second->begin_s)
        return first->begin_s < second->begin_s ? -1 : 1;
    return (first->end_s > second->end_s) - (first->end_s < second->end_s);
}

/* Returns the row of a rank, or the number of rows if the rank has no row yet. */
static size_t row_of(const struct path *path, uint32_t rank)
{
    size_t row = 0;

    while (row < path->nrows && path->ranks[row] != rank)
        row++;
    return row;
}

/* Sorts the hops, gives each rank a row, and chooses the scales. */
static void find_path(const struct tutti_sim_report *report, struct path *path)
{
    path->hops = must_calloc(report->nhops, sizeof *path->hops);
    path->ranks = must_calloc(report->nhops, sizeof *path->ranks);
    path->nhops = report->nhops;
    for (size_t i = 0; i < report->nhops; i++)
        path->hops[i] = &report->hops[i];
    qsort(path->hops, path->nhops, sizeof *path->hops, by_begin);
    for (size_t i = 0; i < path->nhops; i++)
        if (row_of(path, path->hops[i]->rank) == path->nrows)
            path->ranks[path->nrows++] = path->hops[i]->rank;
    path->row = fmin(fmax(520.0 / (double)(path->nrows + 1), 3), 24);
    path->time = (struct axis){.unit = AXIS_SECONDS, .high = report->seconds, .low_px = LEFT,
                               .high_px = LEFT + WIDTH};
    axis_widen(&path->time);
}

static double y_of(const struct path *path, uint32_t rank)
{
    return TOP + ((double)row_of(path, rank) + 0.5) * path->row;
}

/* Draws the time axis and the names of the rows. Low rows have names only at some of them. */
static void draw_grid(struct path *path)
{
    double bottom = TOP + (double)path->nrows * path->row + 6;
    struct svg_font small = {.size = 12, .color = COLOR_SOFT, .anchor = SVG_MIDDLE};
    struct svg_font rank = {.size = 11, .color = COLOR_INK, .anchor = SVG_RIGHT};
    struct svg_stroke grid = {.color = COLOR_FAINT, .width = 1};
    struct axis_tick ticks[AXIS_TICKS];
    size_t stride = (size_t)ceil(LABEL_GAP / path->row);
    char text[UNITS_TEXT];

    for (size_t i = 0, count = axis_ticks(&path->time, 9, ticks); i < count; i++) {
        double x = axis_at(&path->time, ticks[i].value);

        svg_line(&path->svg, x, TOP - 6, x, bottom, grid);
        svg_text(&path->svg, x, bottom + 18, small, "%s", ticks[i].label);
    }
    for (size_t i = 0; i < path->nrows; i += stride)
        svg_text(&path->svg, LEFT - 12, TOP + ((double)i + 0.5) * path->row + 4, rank, "rank %s",
                 units_count(path->ranks[i], text));
}

/* Draws the bars, and thin lines where the path goes from one rank to another. */
static void draw_hops(struct path *path)
{
    double height = fmin(path->row * 0.62, 13);
    struct svg_stroke none = {.color = NULL}, thin = {.color = COLOR_GRAY, .width = 0.8};

    for (size_t i = 1; i < path->nhops; i++)
        if (path->hops[i]->rank != path->hops[i - 1]->rank)
            svg_line(&path->svg, axis_at(&path->time, path->hops[i - 1]->end_s),
                     y_of(path, path->hops[i - 1]->rank),
                     axis_at(&path->time, path->hops[i]->begin_s),
                     y_of(path, path->hops[i]->rank), thin);
    for (size_t i = 0; i < path->nhops; i++) {
        const struct tutti_sim_hop *hop = path->hops[i];
        double x = axis_at(&path->time, hop->begin_s);

        svg_rect(&path->svg, x, y_of(path, hop->rank) - height / 2,
                 fmax(axis_at(&path->time, hop->end_s) - x, 0.5), height, kinds[kind_of(hop)].color,
                 none);
    }
}

/* Draws one entry for each kind of hop, with its share of the time. */
static void draw_legend(struct path *path, double seconds)
{
    double sums[KINDS] = {0}, x = 24;
    struct svg_font font = {.size = 12, .color = COLOR_INK};
    char text[96], time[UNITS_TEXT];

    for (size_t i = 0; i < path->nhops; i++)
        sums[kind_of(path->hops[i])] += path->hops[i]->end_s - path->hops[i]->begin_s;
    for (size_t i = 0; i < KINDS; i++) {
        if (sums[i] < LEAST_SHARE * seconds)
            continue;
        snprintf(text, sizeof text, "%s %s, %.0f %%", kinds[i].name,
                 units_seconds_drawn(sums[i], time), 100 * sums[i] / seconds);
        svg_rect(&path->svg, x, 62, 12, 12, kinds[i].color, (struct svg_stroke){.color = NULL});
        svg_text(&path->svg, x + 18, 72, font, "%s", text);
        x += 18 + svg_text_width(text, 12) + 22;
    }
}

int view_path(const struct sweep *sweep, const struct sim_case *one, const char *file_name)
{
    const struct tutti_sim_report *report = &one->report;
    struct path path = {.hops = NULL};
    char title[160], choice[96], text[4][UNITS_TEXT];

    find_path(report, &path);
    tutti_choice_format(&one->choice, choice, sizeof choice);
    snprintf(title, sizeof title, "%s %s, %s ranks, %s: the longest path%s",
             tutti_collective_name(sweep->collective), choice, units_count(one->nranks, text[0]),
             units_bytes(one->size_bytes, text[1]), one->npieces > 1 ? " of one piece" : "");
    svg_begin(&path.svg, LEFT + WIDTH + RIGHT_MARGIN, TOP + (double)path.nrows * path.row + 44,
              title);
    svg_text(&path.svg, 24, 28, (struct svg_font){.size = 16, .color = COLOR_INK, .is_bold = true},
             "%s", title);
    svg_text(&path.svg, 24, 47, (struct svg_font){.size = 12, .color = COLOR_SOFT},
             "%s, the least possible is %s%s%s", units_seconds_drawn(report->seconds, text[2]),
             units_seconds_drawn(sweep_bound(one) / one->npieces, text[3]),
             report->nlinks > 0 ? "; the busiest link is " : "",
             report->nlinks > 0 ? report->links[0].name : "");
    draw_legend(&path, report->seconds);
    draw_grid(&path);
    draw_hops(&path);
    free(path.hops);
    free(path.ranks);
    return svg_end(&path.svg, file_name);
}
