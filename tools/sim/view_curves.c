/* SPDX-License-Identifier: Apache-2.0
 * A sweep as curves: time against size, or against ranks, with what nothing can be below. */
#include "sim/views.h"

#include "common/memory.h"
#include "common/units.h"
#include "draw/plot.h"

#include <math.h>
#include <string.h>

/* Values of the axis along which the sweep goes. */
struct track {
    bool is_by_ranks;
    double *x;
    size_t count;
};

static double value_of(const struct track *track, const struct sim_case *one)
{
    return track->is_by_ranks ? one->nranks : one->size_bytes;
}

static void find_track(const struct sweep *sweep, struct track *track)
{
    track->x = must_take(sweep->ncases, sizeof *track->x);
    track->count = 0;
    for (size_t i = 0; i < sweep->ncases; i++) {
        double value = value_of(track, &sweep->cases[i]);
        size_t at = track->count;

        while (at > 0 && track->x[at - 1] > value)
            at--;
        if (at > 0 && track->x[at - 1] == value)
            continue;
        memmove(track->x + at + 1, track->x + at, (track->count - at) * sizeof *track->x);
        track->x[at] = value;
        track->count++;
    }
}

static size_t index_of(const struct track *track, double value)
{
    size_t at = 0;

    while (track->x[at] != value)
        at++;
    return at;
}

/* One curve per algorithm, in the order of the sweep; its options may change along it. */
static size_t make_series(const struct sweep *sweep, const struct track *track,
                          struct plot_series *series)
{
    size_t count = 1;
    double *bound = must_take(track->count, sizeof *bound);

    series[0] = (struct plot_series){"lower bound", track->x, bound, track->count, true};
    for (size_t i = 0; i < sweep->ncases; i++) {
        const struct sim_case *one = &sweep->cases[i];
        size_t at = index_of(track, value_of(track, one)), which = 1;
        double *y;

        bound[at] = sweep_bound(one);
        while (which < count && strcmp(series[which].name, one->choice.algorithm->name) != 0)
            which++;
        if (which == count) {
            y = must_take(track->count, sizeof *y);
            for (size_t j = 0; j < track->count; j++)
                y[j] = NAN;
            series[count++] = (struct plot_series){one->choice.algorithm->name, track->x, y,
                                                   track->count, false};
        }
        if (!one->is_left_out)
            ((double *)(uintptr_t)series[which].y)[at] = one->report.seconds;
    }
    return count;
}

static int draw_curves(const struct request *request, const struct sweep *sweep, bool is_by_ranks)
{
    struct track track = {.is_by_ranks = is_by_ranks};
    struct plot_series *series = must_take(sweep->ncases + 1, sizeof *series);
    char title[96], subtitle[160], text[UNITS_TEXT];
    struct plot plot = {
        .title = title,
        .subtitle = subtitle,
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
    snprintf(subtitle, sizeof subtitle, "%.110s", request->topo);
    find_track(sweep, &track);
    plot.nseries = make_series(sweep, &track, series);
    error = plot_draw(&plot, request->output);
    for (size_t i = 0; i < plot.nseries; i++)
        free((void *)(uintptr_t)series[i].y);
    free(series);
    free(track.x);
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
        return mistake(request, "-o: a picture goes along one axis; give one size, or one number "
                       "of ranks");
    if (best == NULL)
        return mistake(request, "-o: nothing was played; raise --steps");
    if (has_sizes || has_ranks)
        error = draw_curves(request, sweep, has_ranks);
    else
        error = view_path(sweep, best, request->output);
    if (error != 0)
        return mistake(request, "-o: write %s: %s", request->output, strerror(error));
    return REQUEST_GO;
}
