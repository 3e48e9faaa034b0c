/* SPDX-License-Identifier: Apache-2.0
 * Computes the bus factors and the uneven shares that several collectives use. */
#include "perf.h"

double perf_factor_one(int nranks)
{
    (void)nranks;
    return 1;
}

double perf_factor_share(int nranks)
{
    return (double)(nranks - 1) / nranks;
}

double perf_factor_twice(int nranks)
{
    return 2.0 * (nranks - 1) / nranks;
}

size_t perf_uneven_shares(size_t elements, int nranks, size_t *counts, size_t *displs)
{
    size_t parts = 0, at = 0;

    for (int i = 0; i < nranks; i++)
        parts += (size_t)(i + 1) % 3;
    for (int i = nranks - 1; i >= 0; i--) {
        counts[i] = elements / parts * ((size_t)(i + 1) % 3);
        displs[i] = at;
        at += counts[i];
    }
    return at;
}
