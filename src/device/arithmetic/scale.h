/* SPDX-License-Identifier: Apache-2.0
 * The scaling that is applied to a result after all sources have been combined. CPUs and GPUs share
 * this definition. */
#ifndef TUTTI_DEVICE_SCALE_H
#define TUTTI_DEVICE_SCALE_H

#include <stdint.h>

/* Floating types are multiplied by `multiply` in the accumulator's type, before the result is
 * rounded. Integers are divided by `divide`, and the quotient is truncated toward zero. */
struct tutti_scale {
    double multiply; /* rounded to the accumulator's type before use; 1.0: not scaled */
    int64_t divide;  /* > 0; 1: not scaled */
};

#endif
