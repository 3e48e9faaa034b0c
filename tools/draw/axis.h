/* SPDX-License-Identifier: Apache-2.0
 * Represents one axis of a plot. Maps values to pixels and finds the ticks. */
#ifndef TUTTI_DRAW_AXIS_H
#define TUTTI_DRAW_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum axis_unit { AXIS_BYTES, AXIS_SECONDS, AXIS_COUNT };

struct axis {
    enum axis_unit unit;
    bool is_log;             /* logarithmic; the values must be positive */
    double low, high;        /* range of the values, including both ends */
    double low_px, high_px;  /* the pixels of these two ends */
};

#define AXIS_TICKS 128 /* most ticks of an axis */
#define AXIS_LABEL 32  /* size of a label's buffer */

struct axis_tick {
    double value;
    char label[AXIS_LABEL]; /* "": a tick without a label */
};

/* Widens the range of the values. A linear axis starts at 0. A logarithmic axis of seconds starts
 * and ends at 1, 2 or 5 times a power of ten. In every case low < high afterwards. */
void axis_widen(struct axis *axis);
/* Returns the pixel of a value. */
double axis_at(const struct axis *axis, double value);
/* Fills `ticks` and returns their number. `labels` is the wanted number of labels; at most
 * labels + 2 of the ticks have one. */
size_t axis_ticks(const struct axis *axis, size_t labels, struct axis_tick ticks[AXIS_TICKS]);

#endif
