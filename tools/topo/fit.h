/* SPDX-License-Identifier: Apache-2.0
 * Fits rates to times. The model is
 *
 *   time(bytes) = fixed + bytes / rate(class of the footprint)
 *
 * fitted by least squares of the logarithm, so that a microsecond counts as much as a millisecond
 * if both are off by the same factor.
 */
#ifndef TUTTI_TOPO_FIT_H
#define TUTTI_TOPO_FIT_H

#include "topology/machine/machine.h"

#include <stdbool.h>

#define FIT_SAMPLES 32
#define FIT_CLASSES (TUTTI_MACHINE_BEYONDS + 1)

struct samples {
    double bytes[FIT_SAMPLES];     /* moved */
    double footprint[FIT_SAMPLES]; /* touched */
    double seconds[FIT_SAMPLES];
    int count;
};

struct fit {
    double fixed_s;
    double bytes_per_s;            /* for the smallest footprints */
    struct tutti_beyond beyond[TUTTI_MACHINE_BEYONDS];
    double residual;               /* root mean square of ln(fitted / measured) */
};

void samples_add(struct samples *samples, double bytes, double footprint, double seconds);

/* Fits the model; needs at least one sample. has_fixed false: fixed_s is 0. */
void fit(const struct samples *samples, bool has_fixed, struct fit *ret_fit);

/* The time that the fit predicts for a sample. */
double fit_seconds(const struct fit *fit, double bytes, double footprint);

#endif
