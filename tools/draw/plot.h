/* SPDX-License-Identifier: Apache-2.0
 * Curves over two axes, each with its name beside its end. */
#ifndef TUTTI_DRAW_PLOT_H
#define TUTTI_DRAW_PLOT_H

#include "draw/axis.h"

struct plot_series {
    const char *name;
    const double *x, *y; /* y: NAN where there is none */
    size_t count;
    bool is_bound; /* a line that nothing can be below: drawn dark */
};

struct plot {
    const char *title, *subtitle;
    const char *x_name, *y_name;
    enum axis_unit x_unit, y_unit; /* both logarithmic */
    const struct plot_series *series;
    size_t nseries;
};

/* Draw into a file; 0, or errno. Something must be finite and positive. */
int plot_draw(const struct plot *plot, const char *file_name);

/* Move `y`, in rising order, apart to at least `gap`, as little as possible, and into low .. high
 * where they fit. */
void plot_spread(double *y, size_t count, double gap, double low, double high);

#endif
