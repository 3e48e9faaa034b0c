/* SPDX-License-Identifier: Apache-2.0
 * Fits a fixed time and rates to measured times. The model is
 *
 *   time(bytes) = fixed + bytes / rate(class of the footprint)
 *
 * There is one rate for each class of footprints, because a footprint that exceeds a cache is
 * slower. The fit minimizes the squares of the logarithmic errors. So an error by the same factor
 * counts equally for short and for long times.
 */
#ifndef TUTTI_TOPO_FIT_H
#define TUTTI_TOPO_FIT_H

#include "topology/machine/machine.h"

#include <stdbool.h>

#define FIT_SAMPLES 32                          /* most samples of a fit */
#define FIT_CLASSES (TUTTI_MACHINE_FOOTPRINTS + 1) /* classes of footprints; see fit.c */

struct samples {
    double bytes[FIT_SAMPLES];     /* bytes that were moved */
    double footprint[FIT_SAMPLES]; /* bytes of memory that were used */
    double seconds[FIT_SAMPLES];
    int count;
};

struct fit {
    double fixed_s;
    double bytes_per_s;            /* rate for the smallest footprints */
    struct tutti_footprint_rate beyond[TUTTI_MACHINE_FOOTPRINTS]; /* rates for larger footprints */
    double residual;               /* root mean square of ln(fitted / measured) */
};

/* Adds one sample. There is room for FIT_SAMPLES. */
void samples_add(struct samples *samples, double bytes, double footprint, double seconds);

/* Fits the model to at least one sample. If has_fixed is false, fixed_s is 0. */
void fit(const struct samples *samples, bool has_fixed, struct fit *ret_fit);

/* Returns the time in seconds that the fit predicts for a sample. */
double fit_seconds(const struct fit *fit, double bytes, double footprint);

#endif
