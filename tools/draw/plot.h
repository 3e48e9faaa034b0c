/* SPDX-License-Identifier: Apache-2.0
 * Draws curves over two axes. The name of each curve stands beside its end. */
#ifndef TUTTI_DRAW_PLOT_H
#define TUTTI_DRAW_PLOT_H

#include "draw/axis.h"

/* One curve. All pointers are borrowed. */
struct plot_series {
    const char *name;
    const double *x, *y; /* `count` points, all positive; y is NAN where there is no value */
    size_t count;
    bool is_bound;     /* true for a lower bound, which is drawn as a dashed line */
    const char *color; /* of a lower bound; NULL: dark. Other curves get colors by their order. */
};

struct plot {
    const char *title, *subtitle;
    const char *const *notes; /* texts below the title; a long text takes several lines */
    size_t nnotes;
    const char *x_name, *y_name;
    enum axis_unit x_unit, y_unit; /* both axes are logarithmic */
    const struct plot_series *series;
    size_t nseries;
};

/* Draws the plot as an SVG file. Returns 0, or an error number of errno.h. */
int plot_draw(const struct plot *plot, const char *file_name);

/* Moves `count` values, so that they are at least `gap` apart and, if they fit, in low .. high. The
 * values must be in rising order and keep this order. They move as little as possible. */
void plot_spread(double *y, size_t count, double gap, double low, double high);

#endif
