/* SPDX-License-Identifier: Apache-2.0
 * Curves over two axes, each labeled beside its end. */
#ifndef TUTTI_DRAW_PLOT_H
#define TUTTI_DRAW_PLOT_H

#include "draw/axis.h"

struct plot_series {
    const char *name;
    const double *x, *y; /* y is NAN where there is no value */
    size_t count;
    bool is_bound; /* a lower bound: drawn dark */
};

struct plot {
    const char *title, *subtitle;
    const char *x_name, *y_name;
    enum axis_unit x_unit, y_unit; /* both axes are logarithmic */
    const struct plot_series *series;
    size_t nseries;
};

/* Draws the plot into a file. At least one value must be finite and positive. Returns 0, or
 * errno. */
int plot_draw(const struct plot *plot, const char *file_name);

/* Moves the values of `y`, which are in rising order, at least `gap` apart and into low .. high
 * where they fit. Moves them as little as possible. */
void plot_spread(double *y, size_t count, double gap, double low, double high);

#endif
