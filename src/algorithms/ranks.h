/* SPDX-License-Identifier: Apache-2.0
 * Arithmetic modulo the number of ranks, for algorithms in which the ranks form a circle. Also
 * spans of chunks that run past the end of a buffer and continue at its beginning.
 */
#ifndef TUTTI_ALGORITHMS_RANKS_H
#define TUTTI_ALGORITHMS_RANKS_H

#include "base/result.h"
#include "schedule/build.h"

/* The rank `by` places after `rank`, and the rank `by` places before it; by <= nranks. */
static inline uint32_t tutti_rank_after(uint32_t rank, uint32_t by, uint32_t nranks)
{
    return (uint32_t)(((uint64_t)rank + by) % nranks);
}

static inline uint32_t tutti_rank_before(uint32_t rank, uint32_t by, uint32_t nranks)
{
    return tutti_rank_after(rank, nranks - by, nranks);
}

/* Rounds of an algorithm that doubles in each: the smallest q with 2^q >= nranks. */
static inline uint32_t tutti_rounds_of(uint32_t nranks)
{
    uint32_t rounds = 0;

    while (((uint64_t)1 << rounds) < nranks)
        rounds++;
    return rounds;
}

/* Folding leaves out `nextra` ranks, for algorithms that need, for example, a power of two. Of the
 * first 2 * nextra ranks each even one passes its work to the odd one after it and is out. The
 * remaining ranks are numbered from 0. */
static inline bool tutti_folded_is_out(uint32_t nextra, uint32_t rank)
{
    return rank < 2 * nextra && rank % 2 == 0;
}

static inline uint32_t tutti_folded_number(uint32_t nextra, uint32_t rank)
{
    return rank < 2 * nextra ? rank / 2 : rank - nextra;
}

static inline uint32_t tutti_folded_rank(uint32_t nextra, uint32_t number)
{
    return number < nextra ? 2 * number + 1 : number + nextra;
}

/* Ranks spanned by a run of `run` folded numbers: `run` without folding; 2 * run if the folded
 * pairs fill whole runs (the runs after them are shorter); else nranks. */
static inline uint32_t tutti_folded_run(uint32_t nextra, uint32_t run, uint32_t nranks)
{
    if (nextra == 0)
        return run;
    return nextra % run == 0 && run < nranks ? 2 * run : nranks;
}

/* The largest q with 2^q <= nranks. */
static inline uint32_t tutti_rounds_whole(uint32_t nranks)
{
    return 31 - (uint32_t)__builtin_clz(nranks);
}

/* `count` chunks of a circle of `size` chunks: `upper` up to its end, and `lower` from its
 * beginning on. `lower` is often empty; the builder emits nothing for an empty span. Sender and
 * receiver cut the same circle at the same place, so their messages match. */
struct tutti_wrapped {
    struct tutti_span upper, lower;
};

static inline struct tutti_wrapped tutti_wrapped_span(enum tutti_buffer buffer, uint32_t first,
                                                      uint32_t count, uint32_t size)
{
    uint32_t start = first % size;
    uint32_t upper = count < size - start ? count : size - start;

    return (struct tutti_wrapped){
        .upper = tutti_span(buffer, start, upper),
        .lower = tutti_span(buffer, 0, count - upper),
    };
}

static inline int tutti_wrapped_send(struct tutti_build *build, uint32_t to,
                                     struct tutti_wrapped src)
{
    TUTTI_TRY(tutti_build_send(build, to, src.upper));
    return tutti_build_send(build, to, src.lower);
}

static inline int tutti_wrapped_recv(struct tutti_build *build, uint32_t from,
                                     struct tutti_wrapped dst)
{
    TUTTI_TRY(tutti_build_recv(build, from, dst.upper));
    return tutti_build_recv(build, from, dst.lower);
}

/* The place of a rank in the circle that begins at the root, and the rank at a place. */
static inline uint32_t tutti_rank_relative(const struct tutti_shape *shape, uint32_t rank)
{
    return tutti_rank_before(rank, shape->root, shape->nranks);
}

static inline uint32_t tutti_rank_absolute(const struct tutti_shape *shape, uint32_t place)
{
    return tutti_rank_after(place, shape->root, shape->nranks);
}

#endif
