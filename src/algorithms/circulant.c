/* SPDX-License-Identifier: Apache-2.0
 * Circulant graphs with halving skips: fewest rounds and least volume for any number of ranks.
 *
 * Slot i of a rank is block rank + i (mod p). Reduce-scatter starts with s = p open slots; in each
 * round, with h = ceil(s / 2), a rank sends the partial sums of its slots h .. s-1 to the rank h
 * after it, where they are slots 0 .. s-h-1, and goes on with s = h. Slot 0 is complete in the end.
 *
 *   p = 5, rank r       slots 0 1 2 3 4
 *   s = 5, h = 3              + + . > >      > sent to r+3, + received from r-3 and added
 *   s = 3, h = 2              + . >          > sent to r+2, + received from r-2
 *   s = 2, h = 1              + >            > sent to r+1, + received from r-1
 *
 * All-gather runs the same rounds backwards: send slots 0 .. s-h-1 to the rank h before, receive
 * slots h .. s-1 from the rank h after. ceil(log2 p) rounds and p - 1 blocks, in and out, for each;
 * a run of slots is one or, where it wraps, two messages. All-reduce is one after the other.
 *
 * Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
 */
#include "algorithms/algorithm.h"
#include "algorithms/circulant.h"

/* Partial sums live in `partial`, block by block; slots not yet added to are still in INPUT. */
static int recv_reduce_slots(const struct tutti_shape *shape, struct tutti_build *build,
                             uint32_t from, uint32_t count, bool is_first,
                             enum tutti_buffer partial)
{
    enum tutti_buffer own = is_first ? TUTTI_BUF_INPUT : partial;
    struct wrapped src = wrapped_span(own, shape->rank, count, shape->nranks);
    struct wrapped dst = wrapped_span(partial, shape->rank, count, shape->nranks);

    TUTTI_TRY(tutti_build_recv_reduce(build, from, src.upper, dst.upper));
    return tutti_build_recv_reduce(build, from, src.lower, dst.lower);
}

static int reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build,
                          enum tutti_buffer partial, struct tutti_span result)
{
    uint32_t n = shape->nranks;
    uint32_t half = n - n / 2;

    for (uint32_t s = n; s > 1;) {
        uint32_t h = s - s / 2;
        bool is_first = s == n;
        enum tutti_buffer source = is_first ? TUTTI_BUF_INPUT : partial;
        uint32_t from = rank_before(shape->rank, h, n);

        TUTTI_TRY(send_wrapped(build, rank_after(shape->rank, h, n),
                               wrapped_span(source, rank_after(shape->rank, h, n), s - h, n)));
        if (h > 1)
            TUTTI_TRY(recv_reduce_slots(shape, build, from, s - h, is_first, partial));
        else
            TUTTI_TRY(tutti_build_recv_reduce(build, from, tutti_span(source, shape->rank, 1),
                                              result));

        /* An odd number leaves the middle slot out of the first round, to be sent in the second. */
        if (is_first && n % 2 == 1) {
            uint32_t middle = rank_after(shape->rank, half - 1, n);

            TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, middle, 1),
                                       tutti_span(partial, middle, 1)));
        }
        s = h;
    }
    return TUTTI_OK;
}

int tutti_circulant_gather(uint32_t nranks, uint32_t rank, uint32_t first_rank,
                           enum tutti_buffer source,
                           uint32_t (*held)(uint32_t rank, uint32_t nranks),
                           struct tutti_build *build)
{
    for (uint32_t round = rounds_of(nranks); round-- > 0;) {
        /* s and h of this round: p halved, rounding up, `round` times, and once more. */
        uint32_t s = (uint32_t)(((uint64_t)nranks + (1ull << round) - 1) >> round);
        uint32_t h = s - s / 2;
        uint32_t to = rank_before(rank, h, nranks);
        uint32_t from = rank_after(rank, h, nranks);
        uint32_t lacks = held(to, nranks) > h ? held(to, nranks) : h;
        uint32_t lack = held(rank, nranks) > h ? held(rank, nranks) : h;

        if (lacks < s)
            TUTTI_TRY(send_wrapped(build, rank_after(to, first_rank, nranks),
                                   wrapped_span(source, rank_after(to, lacks, nranks),
                                                s - lacks, nranks)));
        if (lack < s)
            TUTTI_TRY(recv_wrapped(build, rank_after(from, first_rank, nranks),
                                   wrapped_span(TUTTI_BUF_OUTPUT, rank_after(rank, lack, nranks),
                                                s - lack, nranks)));
    }
    return TUTTI_OK;
}

static uint32_t holds_its_own(uint32_t rank, uint32_t nranks)
{
    (void)rank;
    (void)nranks;
    return 1;
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_chunks(build, shape->nranks);
    TUTTI_TRY(reduce_scatter(shape, build, TUTTI_BUF_OUTPUT,
                             tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    return tutti_circulant_gather(shape->nranks, shape->rank, 0, TUTTI_BUF_OUTPUT,
                                  holds_its_own, build);
}

static int emit_reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, shape->nranks);
    return reduce_scatter(shape, build, TUTTI_BUF_SCRATCH, tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static int emit_allgather(const struct tutti_shape *shape, struct tutti_build *build)
{
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    return tutti_circulant_gather(shape->nranks, shape->rank, 0, TUTTI_BUF_OUTPUT,
                                  holds_its_own, build);
}

const struct tutti_algorithm tutti_circulant_allreduce = {
    .name = "circulant",
    .collective = TUTTI_ALLREDUCE,
    .emit = emit_allreduce,
};

const struct tutti_algorithm tutti_circulant_reduce_scatter = {
    .name = "circulant",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .emit = emit_reduce_scatter,
};

const struct tutti_algorithm tutti_circulant_allgather = {
    .name = "circulant",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .emit = emit_allgather,
};
