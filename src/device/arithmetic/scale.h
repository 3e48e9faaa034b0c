/* SPDX-License-Identifier: Apache-2.0
 * What happens to a value after the last source: the same for processors and GPUs. */
#ifndef TUTTI_DEVICE_SCALE_H
#define TUTTI_DEVICE_SCALE_H

#include <stdint.h>

/* Multiplied (floating types) or divided with truncation (integers), in the accumulator's type,
 * before rounding. */
struct tutti_scale {
    double multiply; /* floating types, rounded to the accumulator's type; 1.0 for none */
    int64_t divide;  /* integer types: 1 for none; always > 0 */
};

#endif
