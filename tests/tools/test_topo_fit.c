/* SPDX-License-Identifier: Apache-2.0
 * The fit of tutti-topo finds the parameters from which times were computed. */
#include "topo/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_near(double found, double expected)
{
    if (!(fabs(found / expected - 1) < 1e-3))
        fail_msg("found %g, expected %g", found, expected);
}

/* Fixed time plus bytes at 8 GB/s, or at 2 GB/s from 4 MiB on. */
static struct samples make(double fixed_s, double noise)
{
    struct samples samples = {.count = 0};

    for (double bytes = 8; bytes <= 16 << 20; bytes *= 8) {
        double error = samples.count % 2 ? noise : 1 / noise;

        samples_add(&samples, bytes, bytes,
                    (fixed_s + bytes / (bytes < 4 << 20 ? 8e9 : 2e9)) * error);
    }
    return samples;
}

static void times_without_noise_are_explained(void **state)
{
    struct samples samples = make(2e-6, 1);
    struct fit found;

    (void)state;
    fit(&samples, true, &found);
    assert_near(found.fixed_s, 2e-6);
    assert_near(found.bytes_per_s, 8e9);
    assert_near(found.beyond[0].bytes_per_s, 2e9);
    assert_true(found.beyond[0].bytes > 2 << 20 && found.beyond[0].bytes < 16 << 20);
    assert_true(found.beyond[1].bytes_per_s == 0);
    assert_true(found.residual < 1e-3);
    for (int i = 0; i < samples.count; i++)
        assert_near(fit_seconds(&found, samples.bytes[i], samples.footprint[i]),
                    samples.seconds[i]);
}

static void rates_alone_have_no_fixed_time(void **state)
{
    struct samples samples = make(0, 1);
    struct fit found;

    (void)state;
    fit(&samples, false, &found);
    assert_true(found.fixed_s == 0);
    assert_near(found.bytes_per_s, 8e9);
    assert_near(found.beyond[0].bytes_per_s, 2e9);
}

static void the_residual_is_the_noise(void **state)
{
    struct samples samples = make(2e-6, 1.2);
    struct fit found;

    (void)state;
    fit(&samples, true, &found);
    assert_true(found.residual > 0.05 && found.residual < log(1.2) + 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_without_noise_are_explained),
        cmocka_unit_test(rates_alone_have_no_fixed_time),
        cmocka_unit_test(the_residual_is_the_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
