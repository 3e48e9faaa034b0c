/* SPDX-License-Identifier: Apache-2.0
 * From times to rates. What is fitted is
 *
 *   time(bytes) = fixed + bytes / rate(class of the footprint)
 *
 * by least squares of the logarithm, so that a microsecond counts as much as a millisecond, if both
 * are missed by the same factor.
 */
#ifndef TUTTI_TOPO_FIT_H
#define TUTTI_TOPO_FIT_H

#include "topology/machine/machine.h"

#include <stdbool.h>

#define FIT_SAMPLES 32
#define FIT_CLASSES (TUTTI_MACHINE_BEYONDS + 1)

struct samples {
    double bytes[FIT_SAMPLES];     /* that are moved */
    double footprint[FIT_SAMPLES]; /* that are touched */
    double seconds[FIT_SAMPLES];
    int count;
};

struct fit {
    double fixed_s;
    double bytes_per_s;            /* of the smallest footprints */
    struct tutti_beyond beyond[TUTTI_MACHINE_BEYONDS];
    double residual;               /* root of the mean square of ln(fitted / measured) */
};

void samples_add(struct samples *samples, double bytes, double footprint, double seconds);

/* There is a sample at least. has_fixed false: fixed_s is 0. */
void fit(const struct samples *samples, bool has_fixed, struct fit *ret_fit);

/* What the fit says of a sample. */
double fit_seconds(const struct fit *fit, double bytes, double footprint);

#endif
