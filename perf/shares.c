/* SPDX-License-Identifier: Apache-2.0
 * Computes the bus factors, sizes and uneven shares that several collectives use. */
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

void perf_plan_vector(size_t elements, struct perf_case *c)
{
    c->count = elements;
    c->bytes = c->count * c->element_bytes;
    c->send_count = c->recv_count = c->in_place_count = c->count;
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
