/* SPDX-License-Identifier: Apache-2.0
 * Rounds sizes. The caller makes sure that value + unit is at most SIZE_MAX. */
#ifndef TUTTI_BASE_ROUND_H
#define TUTTI_BASE_ROUND_H

#include <stddef.h>

/* Returns value / unit, rounded up. `unit` must not be 0. */
static inline size_t tutti_divide_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit;
}

/* Returns the least multiple of `unit` that is at least `value`. `unit` must not be 0. */
static inline size_t tutti_round_up(size_t value, size_t unit)
{
    return tutti_divide_up(value, unit) * unit;
}

/* Returns the least power of two that is at least `value`; 1 for 0. */
static inline size_t tutti_power_of_two_from(size_t value)
{
    size_t power = 1;

    while (power < value)
        power *= 2;
    return power;
}

#endif
