/* SPDX-License-Identifier: Apache-2.0
 * The k-nomial tree over places 0 (the root) .. nranks - 1: a place's parent is the place with the
 * lowest nonzero digit to base k, the radix, cleared. Children are counted from the largest subtree
 * on: in this order a place passes on, and collects backwards.
 */
#ifndef TUTTI_ALGORITHMS_KNOMIAL_H
#define TUTTI_ALGORITHMS_KNOMIAL_H

#include "algorithms/ranks.h"

/* Places of a subtree that is not cut short: the value of the lowest nonzero digit's position, or,
 * for the root, of the first beyond all places. */
static inline uint64_t knomial_reach(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = 1;

    while (place == 0 ? reach < nranks : place / reach % radix == 0)
        reach *= radix;
    return reach;
}

/* A subtree is the places from its top on, as many as this. */
static inline uint32_t knomial_size(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = knomial_reach(place, nranks, radix);

    return reach < nranks - place ? (uint32_t)reach : nranks - place;
}

/* Not for the root. */
static inline uint32_t knomial_parent(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint64_t reach = knomial_reach(place, nranks, radix);

    return (uint32_t)(place - place / reach % radix * reach);
}

/* Children at the distances step, 2 step, ... of a place. */
static inline uint32_t knomial_siblings(uint32_t place, uint32_t nranks, uint32_t radix,
                                        uint64_t step)
{
    uint64_t count = (nranks - 1 - place) / step;

    return count < radix - 1 ? (uint32_t)count : radix - 1;
}

static inline uint32_t knomial_children(uint32_t place, uint32_t nranks, uint32_t radix)
{
    uint32_t count = 0;

    for (uint64_t step = knomial_reach(place, nranks, radix) / radix; step > 0; step /= radix)
        count += knomial_siblings(place, nranks, radix, step);
    return count;
}

/* index < knomial_children(). */
static inline uint32_t knomial_child(uint32_t place, uint32_t nranks, uint32_t radix,
                                     uint32_t index)
{
    uint64_t step = knomial_reach(place, nranks, radix) / radix;

    while (index >= knomial_siblings(place, nranks, radix, step)) {
        index -= knomial_siblings(place, nranks, radix, step);
        step /= radix;
    }
    return (uint32_t)(place + (index + 1) * step);
}

#endif
