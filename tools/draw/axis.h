/* SPDX-License-Identifier: Apache-2.0
 * An axis: maps values to pixels and gives the ticks. */
#ifndef TUTTI_DRAW_AXIS_H
#define TUTTI_DRAW_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum axis_unit { AXIS_BYTES, AXIS_SECONDS, AXIS_COUNT };

struct axis {
    enum axis_unit unit;
    bool is_log;
    double low, high;        /* range of the values, both ends included */
    double low_px, high_px;  /* the pixels of both ends */
};

#define AXIS_TICKS 128
#define AXIS_LABEL 32

struct axis_tick {
    double value;
    char label[AXIS_LABEL]; /* "": a tick without a label */
};

/* Widens the range to a tick or to a fair fraction between ticks, so that curves do not end
 * arbitrarily near the frame. */
void axis_widen(struct axis *axis);
/* The pixel of a value. */
double axis_at(const struct axis *axis, double value);
/* Fills `ticks` and returns their number; at most `labels` of them have a label. */
size_t axis_ticks(const struct axis *axis, size_t labels, struct axis_tick ticks[AXIS_TICKS]);

#endif
