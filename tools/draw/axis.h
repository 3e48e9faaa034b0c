/* SPDX-License-Identifier: Apache-2.0
 * An axis: from values to pixels, and the ticks that stand at it. */
#ifndef TUTTI_DRAW_AXIS_H
#define TUTTI_DRAW_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum axis_unit { AXIS_BYTES, AXIS_SECONDS, AXIS_COUNT };

struct axis {
    enum axis_unit unit;
    bool is_log;
    double low, high;        /* of the values, both inside */
    double low_px, high_px;  /* where they are */
};

#define AXIS_TICKS 128
#define AXIS_LABEL 32

struct axis_tick {
    double value;
    char label[AXIS_LABEL]; /* "": a tick without */
};

/* Widen the range to where a tick or a fair part between ticks is, so that curves do not end at
 * the frame by chance. */
void axis_widen(struct axis *axis);
double axis_at(const struct axis *axis, double value);
/* Fills `ticks`, gives how many: at most `labels` have a label. */
size_t axis_ticks(const struct axis *axis, size_t labels, struct axis_tick ticks[AXIS_TICKS]);

#endif
