/* SPDX-License-Identifier: Apache-2.0
 * Draws a sweep as curves of time against size or number of ranks, with the lower bound. */
#include "sim/views.h"

#include "common/memory.h"
#include "common/units.h"
#include "draw/plot.h"

#include <math.h>
#include <string.h>

#define BESIDE_TITLE 70 /* longer descriptions of machines stand below the title */
#define VISIBLE 0.005 /* relative difference from which on two curves look different */

/* The different values of the horizontal axis: numbers of ranks or sizes. */
struct x_axis {
    bool is_by_ranks; /* true for numbers of ranks */
    double *x;        /* in rising order; owned */
    size_t count;
};

static double value_of(const struct x_axis *axis, const struct sim_case *one)
{
    return axis->is_by_ranks ? one->nranks : one->size_bytes;
}

static void find_values(const struct sweep *sweep, struct x_axis *axis)
{
    axis->x = must_calloc(sweep->ncases, sizeof *axis->x);
    axis->count = 0;
    for (size_t i = 0; i < sweep->ncases; i++) {
        double value = value_of(axis, &sweep->cases[i]);
        size_t at = axis->count;

        while (at > 0 && axis->x[at - 1] > value)
            at--;
        if (at > 0 && axis->x[at - 1] == value)
            continue;
        memmove(axis->x + at + 1, axis->x + at, (axis->count - at) * sizeof *axis->x);
        axis->x[at] = value;
        axis->count++;
    }
}

static size_t index_of(const struct x_axis *axis, double value)
{
    size_t at = 0;

    while (axis->x[at] != value)
        at++;
    return at;
}

/* There is one curve per algorithm, in the order of the sweep. Along a curve, the algorithm's
 * options may change. The first curve is the lower bound. */
struct curve {
    char *name; /* owned */
    double *y;  /* seconds at each value of the axis; NAN: there is no value; owned */
};

/* Returns the curve of this name, and adds it if there is none. */
static struct curve *find_curve(const struct x_axis *axis, struct curve *curves, size_t *count,
                                const char *name)
{
    size_t at = 0;

    while (at < *count && strcmp(curves[at].name, name) != 0)
        at++;
    if (at == *count) {
        curves[at].name = must_have(strdup(name));
        curves[at].y = must_calloc(axis->count, sizeof *curves[at].y);
        for (size_t i = 0; i < axis->count; i++)
            curves[at].y[i] = NAN;
        ++*count;
    }
    return &curves[at];
}

/* Makes the curves of a sweep, or one curve of the fastest cases. Returns the number of curves. */
static size_t make_curves(const struct sweep *sweep, const struct x_axis *axis, bool only_best,
                          struct curve *curves)
{
    size_t count = 0;

    for (size_t i = 0; i < sweep->ncases; i++) {
        const struct sim_case *one = &sweep->cases[i];
        size_t at = index_of(axis, value_of(axis, one));
        const char *name = only_best ? "fastest algorithm" : one->choice.algorithm->name;

        find_curve(axis, curves, &count, "lower bound")->y[at] = sweep_bound(one);
        if (only_best ? one->is_best : !one->is_left_out)
            find_curve(axis, curves, &count, name)->y[at] = sweep_seconds(one);
    }
    return count;
}

/* Returns true if the two curves look the same in the picture: they differ by at most 0.5 %
 * everywhere. */
static bool look_same(const struct curve *a, const struct curve *b, size_t npoints)
{
    for (size_t i = 0; i < npoints; i++)
        if (isnan(a->y[i]) != isnan(b->y[i]) || fabs(a->y[i] - b->y[i]) > VISIBLE * b->y[i])
            return false;
    return true;
}

static void curve_fini(struct curve *curve)
{
    free(curve->name);
    free(curve->y);
}

/* Joins curves that look the same into one curve, which gets all their names. Returns the number of
 * curves that are left. The lower bound stays as it is. */
static size_t join_curves(struct curve *curves, size_t count, size_t npoints)
{
    size_t kept = 1;

    for (size_t i = 1; i < count; i++) {
        size_t at = 1;
        char *names;

        while (at < kept && !look_same(&curves[i], &curves[at], npoints))
            at++;
        if (at == kept) {
            curves[kept++] = curves[i];
            continue;
        }
        if (asprintf(&names, "%s, %s", curves[at].name, curves[i].name) < 0)
            names = must_have(NULL);
        free(curves[at].name);
        curves[at].name = names;
        curve_fini(&curves[i]);
    }
    return kept;
}

/* Draws the curves into the file of -o. Returns 0, or an error number of errno.h. */
static int draw_curves(const struct request *request, const struct sweep *sweep, bool is_by_ranks)
{
    struct x_axis axis = {.is_by_ranks = is_by_ranks};
    struct curve *curves = must_calloc(sweep->ncases + 1, sizeof *curves);
    struct plot_series *series = must_calloc(sweep->ncases + 1, sizeof *series);
    const char *machine = request->topo == NULL ? "this machine" : request->topo;
    bool is_long = strlen(machine) > BESIDE_TITLE;
    char title[96], text[UNITS_TEXT];
    struct plot plot = {
        .title = title,
        .subtitle = is_long ? "" : machine,
        .notes = &machine,
        .nnotes = is_long,
        .x_name = is_by_ranks ? "ranks" : "size of the whole vector",
        .y_name = "time",
        .x_unit = is_by_ranks ? AXIS_COUNT : AXIS_BYTES,
        .y_unit = AXIS_SECONDS,
        .series = series,
    };
    int error;

    if (is_by_ranks)
        snprintf(title, sizeof title, "%s of %s", tutti_collective_name(sweep->collective),
                 units_bytes(sweep->cases[0].size_bytes, text));
    else
        snprintf(title, sizeof title, "%s, %s ranks", tutti_collective_name(sweep->collective),
                 units_count(sweep->cases[0].nranks, text));
    find_values(sweep, &axis);
    plot.nseries = join_curves(curves, make_curves(sweep, &axis, request->wants_best, curves), axis.count);
    for (size_t i = 0; i < plot.nseries; i++)
        series[i] = (struct plot_series){
            curves[i].name, axis.x, curves[i].y, axis.count, .is_bound = i == 0};
    error = plot_draw(&plot, request->output);
    for (size_t i = 0; i < plot.nseries; i++)
        curve_fini(&curves[i]);
    free(curves);
    free(series);
    free(axis.x);
    return error;
}

int view_picture(const struct request *request, const struct sweep *sweep)
{
    const struct sim_case *first = &sweep->cases[0], *best = NULL;
    bool has_sizes = false, has_ranks = false;
    int error;

    for (size_t i = 0; i < sweep->ncases; i++) {
        has_sizes = has_sizes || sweep->cases[i].size_bytes != first->size_bytes;
        has_ranks = has_ranks || sweep->cases[i].nranks != first->nranks;
        if (best == NULL && sweep->cases[i].is_best)
            best = &sweep->cases[i];
    }
    if (has_sizes && has_ranks)
        return mistake(request, "-o: a picture shows sizes or numbers of ranks, not both; give one "
                                "size, or one number of ranks");
    if (best == NULL)
        return mistake(request, "-o: no case was simulated; raise --steps");
    if (has_sizes || has_ranks)
        error = draw_curves(request, sweep, has_ranks);
    else
        error = view_path(sweep, best, request->output);
    if (error != 0)
        return write_failure(request, request->output, error);
    return REQUEST_GO;
}
