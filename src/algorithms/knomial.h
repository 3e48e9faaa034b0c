/* SPDX-License-Identifier: Apache-2.0
 * The k-nomial tree over places 0 (the root) .. nranks - 1. Write a place in base k, the radix: its
 * parent is the same number with the lowest nonzero digit set to 0. Children are ordered from the
 * largest subtree to the smallest. A place sends to its children in this order, and collects from
 * them in reverse.
 */
#ifndef TUTTI_ALGORITHMS_KNOMIAL_H
#define TUTTI_ALGORITHMS_KNOMIAL_H

#include "algorithms/ranks.h"

/* The number of places that the subtree of `place` would have if the numbers did not end at nranks.
 * This is the weight k^i of the place's lowest nonzero digit i. For the root it is the smallest k^i
 * that is at least nranks. */
static inline uint64_t tutti_knomial_reach(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = 1;

    while (place == 0 ? reach < nranks : place / reach % radix == 0)
        reach *= radix;
    return reach;
}

/* The number of places in the subtree of `place`. They are consecutive, and `place` is the
 * first. */
static inline uint32_t tutti_knomial_size(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = tutti_knomial_reach(place, nranks, radix);

    return reach < nranks - place ? (uint32_t)reach : nranks - place;
}

/* The parent of `place`, which must not be the root. */
static inline uint32_t tutti_knomial_parent(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = tutti_knomial_reach(place, nranks, radix);

    return (uint32_t)(place - place / reach % radix * reach);
}

/* Number of children at the distances step, 2 step, ... from `place`; `step` is a power of the
 * radix. */
static inline uint32_t tutti_knomial_siblings(uint32_t place, uint32_t nranks, uint32_t radix,
                                              uint64_t step)
{
    uint64_t count = (nranks - 1 - place) / step;

    return count < radix - 1 ? (uint32_t)count : radix - 1;
}

static inline uint32_t tutti_knomial_children(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint32_t count = 0;

    for (uint64_t step = tutti_knomial_reach(place, nranks, radix) / radix; step > 0; step /= radix)
        count += tutti_knomial_siblings(place, nranks, radix, step);
    return count;
}

/* The child number `index`, counted from 0; `index` must be less than tutti_knomial_children(). */
static inline uint32_t tutti_knomial_child(uint32_t place, uint32_t nranks, uint32_t radix,
                                           uint32_t index)
{
    uint64_t step = tutti_knomial_reach(place, nranks, radix) / radix;

    while (index >= tutti_knomial_siblings(place, nranks, radix, step)) {
        index -= tutti_knomial_siblings(place, nranks, radix, step);
        step /= radix;
    }
    return (uint32_t)(place + (index + 1) * step);
}

#endif
