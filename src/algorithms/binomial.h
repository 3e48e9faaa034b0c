/* SPDX-License-Identifier: Apache-2.0
 * The binomial tree over places 0 (the root) .. nranks - 1.
 */
#ifndef TUTTI_ALGORITHMS_BINOMIAL_H
#define TUTTI_ALGORITHMS_BINOMIAL_H

#include "algorithms/ranks.h"

/* Children of a place are place + 2^i for each i below this. */
static inline uint32_t binomial_levels(uint32_t place, uint32_t nranks)
{
    return place == 0 ? rounds_of(nranks) : (uint32_t)__builtin_ctz(place);
}

/* Not for the root. */
static inline uint32_t binomial_parent(uint32_t place)
{
    return place & (place - 1);
}

/* A subtree is the places from its top on, as many as this. */
static inline uint32_t binomial_size(uint32_t place, uint32_t nranks)
{
    uint64_t full = (uint64_t)1 << binomial_levels(place, nranks);

    return full < nranks - place ? (uint32_t)full : nranks - place;
}

#endif
