/* SPDX-License-Identifier: Apache-2.0
 * Fits the model by changing one parameter at a time, for a fixed number of rounds. */
#include "topo/fit.h"

#include <assert.h>
#include <math.h>

/* The upper class_ends of the classes, in bytes. They are near the sizes of caches of common
 * processors. */
static const double class_ends[FIT_CLASSES - 1] = {128.0 * 1024, 768.0 * 1024, 3.0 * 1024 * 1024,
                                                   12.0 * 1024 * 1024};

/* Neighboring classes whose rates differ by less than this factor are merged. */
static const double merged_below = 1.07;

/* The search of a parameter halves its range about every 1.4 iterations. The parameters depend on
 * each other, so they are searched in turn for several rounds. */
#define SEARCH_ITERATIONS 80
#define ROUNDS            40

/* The ranges of the parameters: bytes per second, and seconds. */
#define LEAST_RATE    1e3
#define MOST_RATE     1e13
#define LEAST_FIXED_S 1e-9
#define MOST_FIXED_S  1e3

/* The model while it is being fitted. */
struct model {
    const struct samples *samples;
    double fixed_s;
    double rate[FIT_CLASSES]; /* bytes per second for each class of footprints */
};

void samples_add(struct samples *samples, double bytes, double footprint, double seconds)
{
    assert(samples->count < FIT_SAMPLES);
    samples->bytes[samples->count] = bytes;
    samples->footprint[samples->count] = footprint;
    samples->seconds[samples->count++] = seconds;
}

/* Returns the class of a footprint: the first one whose end it does not exceed. */
static int class_of(double footprint)
{
    int class = 0;

    while (class < FIT_CLASSES - 1 && footprint > class_ends[class])
        class++;
    return class;
}

/* Returns the sum of squared errors over the samples of one class, or over all samples if `class`
 * is -1. */
static double squares(const struct model *model, int class)
{
    const struct samples *samples = model->samples;
    double sum = 0;

    for (int i = 0; i < samples->count; i++) {
        int of = class_of(samples->footprint[i]);
        double error;

        if (class >= 0 && of != class)
            continue;
        error = log((model->fixed_s + samples->bytes[i] / model->rate[of]) / samples->seconds[i]);
        sum += error * error;
    }
    return sum;
}

/* Finds the best value of one parameter between `low` and `high`, by a golden-section search on its
 * logarithm. */
static void improve_parameter(struct model *model, double *parameter, int class, double low,
                              double high)
{
    const double golden = 0.6180339887498949;
    double a = log(low), b = log(high);

    for (int i = 0; i < SEARCH_ITERATIONS; i++) {
        double x = b - golden * (b - a), y = a + golden * (b - a), at_x;

        *parameter = exp(x);
        at_x = squares(model, class);
        *parameter = exp(y);
        if (at_x < squares(model, class))
            b = y;
        else
            a = x;
    }
    *parameter = exp((a + b) / 2);
}

static bool has_samples(const struct samples *samples, int class)
{
    for (int i = 0; i < samples->count; i++)
        if (class_of(samples->footprint[i]) == class)
            return true;
    return false;
}

/* Stores the rates of the classes that have samples. Leaves out a rate that is close to the
 * previous rate. */
static void store_rates(const struct model *model, struct fit *ret_fit)
{
    double last = 0;
    int count = 0;

    for (int class = 0; class < FIT_CLASSES; class++) {
        if (!has_samples(model->samples, class))
            continue;
        if (last == 0)
            ret_fit->bytes_per_s = last = model->rate[class];
        if (model->rate[class] < merged_below * last && last < merged_below * model->rate[class])
            continue;
        last = model->rate[class];
        ret_fit->beyond[count++] = (struct tutti_footprint_rate){class_ends[class - 1], last};
    }
}

double fit_seconds(const struct fit *fit, double bytes, double footprint)
{
    double rate = fit->bytes_per_s;

    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS && fit->beyond[i].bytes_per_s > 0; i++)
        if (footprint > fit->beyond[i].bytes)
            rate = fit->beyond[i].bytes_per_s;
    return fit->fixed_s + bytes / rate;
}

void fit(const struct samples *samples, bool has_fixed, struct fit *ret_fit)
{
    struct model model = {.samples = samples, .fixed_s = has_fixed ? samples->seconds[0] : 0};
    double sum = 0;

    assert(samples->count > 0);
    for (int class = 0; class < FIT_CLASSES; class++)
        model.rate[class] = 1e9; /* the search replaces this value if the class has samples */
    /* Without a fixed time, the rates do not depend on each other. */
    for (int round = 0; round < (has_fixed ? ROUNDS : 1); round++) {
        for (int class = 0; class < FIT_CLASSES; class++)
            if (has_samples(samples, class))
                improve_parameter(&model, &model.rate[class], class, LEAST_RATE, MOST_RATE);
        if (has_fixed)
            improve_parameter(&model, &model.fixed_s, -1, LEAST_FIXED_S, MOST_FIXED_S);
    }
    *ret_fit = (struct fit){.fixed_s = model.fixed_s};
    store_rates(&model, ret_fit);
    for (int i = 0; i < samples->count; i++) {
        double error = log(fit_seconds(ret_fit, samples->bytes[i], samples->footprint[i]) /
                           samples->seconds[i]);

        sum += error * error;
    }
    ret_fit->residual = sqrt(sum / samples->count);
}
