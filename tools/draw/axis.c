/* SPDX-License-Identifier: Apache-2.0
 * Scales axes and places their ticks. On a logarithmic axis, ticks of bytes and counts are powers
 * of two. Ticks of seconds are powers of ten and their multiples. */
#include "draw/axis.h"

#include "common/units.h"

#include <math.h>
#include <stdio.h>

/* The relative error that computing a value may cause. */
static const double slack = 1e-9;

/* Returns the base of the powers at which a logarithmic axis has ticks. */
static double base_of(enum axis_unit unit)
{
    return unit == AXIS_SECONDS ? 10 : 2;
}

/* Returns the largest number that does not exceed `value` and is 1, 2 or 5 times a power of ten. */
static double round_down(double value)
{
    double power = pow(10, floor(log10(value) + slack));
    double digit = value / power;

    return power * (digit >= 5 - slack ? 5 : digit >= 2 - slack ? 2 : 1);
}

/* Returns the smallest such number that is not below `value`. */
static double round_up(double value)
{
    double down = round_down(value);

    if (down >= value * (1 - slack))
        return down;
    return round_down(down * 2.6); /* turns 1 into 2, 2 into 5, and 5 into 10 */
}

void axis_widen(struct axis *axis)
{
    if (!axis->is_log) {
        axis->low = 0;
        if (axis->high <= 0)
            axis->high = 1;
    } else if (axis->unit == AXIS_SECONDS) {
        axis->low = round_down(axis->low);
        axis->high = round_up(axis->high);
        if (axis->high <= axis->low * 2)
            axis->high = axis->low * 10;
    } else if (axis->high <= axis->low) {
        axis->low /= 2;
        axis->high *= 2;
    }
}

double axis_at(const struct axis *axis, double value)
{
    double part = axis->is_log ? log(value / axis->low) / log(axis->high / axis->low)
                               : (value - axis->low) / (axis->high - axis->low);

    return axis->low_px + part * (axis->high_px - axis->low_px);
}

static void write_label(enum axis_unit unit, double value, char label[AXIS_LABEL])
{
    char text[UNITS_TEXT];

    switch (unit) {
    case AXIS_BYTES:
        snprintf(label, AXIS_LABEL, "%s", units_bytes(value, text));
        return;
    case AXIS_COUNT:
        snprintf(label, AXIS_LABEL, "%s", units_count((uint64_t)(value + 0.5), text));
        return;
    case AXIS_SECONDS:
        snprintf(label, AXIS_LABEL, "%s", value == 0 ? "0" : units_seconds_drawn(value, text));
        return;
    }
}

static size_t log_ticks(const struct axis *axis, size_t labels, struct axis_tick *ticks)
{
    double base = base_of(axis->unit);
    double first = ceil(log(axis->low) / log(base) - slack);
    double last = floor(log(axis->high) / log(base) + slack);
    double npowers = last - first + 1;
    /* Every stride-th power has a label. With few powers of ten, twice and five times a power have
     * labels too. */
    double stride = ceil(npowers / (double)labels);
    bool has_few = base == 10 && npowers * 3 <= (double)labels;
    size_t count = 0;

    /* Start one power earlier, because multiples of that power may be inside the axis. A power has
     * at most nine ticks. */
    for (double power = first - 1; power <= last && count + 9 < AXIS_TICKS; power++)
        for (int digit = 1; digit < (base == 10 ? 10 : 2); digit++) {
            double value = digit * pow(base, power);
            bool has_label = digit == 1 ? fmod(power - first, stride) == 0
                                        : has_few && (digit == 2 || digit == 5);

            if (value < axis->low * (1 - slack) || value > axis->high * (1 + slack))
                continue;
            ticks[count] = (struct axis_tick){.value = value};
            if (has_label)
                write_label(axis->unit, value, ticks[count].label);
            count++;
        }
    return count;
}

static size_t linear_ticks(const struct axis *axis, size_t labels, struct axis_tick *ticks)
{
    double step = round_up((axis->high - axis->low) / (double)labels);
    size_t count = 0;

    for (double i = ceil(axis->low / step - slack) + 0.0; /* turns -0 into 0 */
         i * step <= axis->high * (1 + slack) && count < AXIS_TICKS; i++) {
        ticks[count].value = i * step;
        write_label(axis->unit, i * step, ticks[count++].label);
    }
    return count;
}

size_t axis_ticks(const struct axis *axis, size_t labels, struct axis_tick ticks[AXIS_TICKS])
{
    return axis->is_log ? log_ticks(axis, labels, ticks) : linear_ticks(axis, labels, ticks);
}
