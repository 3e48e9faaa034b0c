/* SPDX-License-Identifier: Apache-2.0
 * Ring: every rank only ever sends to the next one and receives from the one before.
 *
 * Reduce-scatter, round i: send on the partial sum of block rank - 1 - i, add our own to the
 * block before it, which arrives. After p - 1 rounds block `rank` is complete here.
 *
 *          rank 0       rank 1       rank 2        p = 3, letters are blocks a, b, c
 *   i = 0  c ->         a ->         b ->          0 sends its c to 1, which adds its own
 *   i = 1  b ->         c ->         a ->          1 sends 0+1's c on to 2, which completes it
 *   ends   a            b            c
 *
 * All-gather, round i: send block rank - i, receive the one before it. All-reduce is one after
 * the other, with a block for each rank. Volume is optimal, latency is not: p - 1 rounds each.
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Partial sums accumulate in chunk c of `partial`; the complete one goes to `result`. */
static int reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build,
                          enum tutti_buffer partial, struct tutti_span result)
{
    uint32_t n = shape->nranks;
    uint32_t next = rank_after(shape->rank, 1, n);
    uint32_t prev = rank_before(shape->rank, 1, n);

    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t give = rank_before(shape->rank, i + 1, n);
        uint32_t take = rank_before(shape->rank, i + 2, n);
        enum tutti_buffer source = i == 0 ? TUTTI_BUF_INPUT : partial;
        struct tutti_span sum = i + 2 == n ? result : tutti_span(partial, take, 1);

        TUTTI_TRY(tutti_build_send(build, next, tutti_span(source, give, 1)));
        TUTTI_TRY(tutti_build_recv_reduce(build, prev, tutti_span(TUTTI_BUF_INPUT, take, 1), sum));
    }
    return TUTTI_OK;
}

/* Chunk `rank` of OUTPUT is there, and in `own`. */
static int all_gather(const struct tutti_shape *shape, struct tutti_build *build,
                      struct tutti_span own)
{
    uint32_t n = shape->nranks;
    uint32_t next = rank_after(shape->rank, 1, n);
    uint32_t prev = rank_before(shape->rank, 1, n);

    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t give = rank_before(shape->rank, i, n);
        uint32_t take = rank_before(shape->rank, i + 1, n);

        TUTTI_TRY(tutti_build_send(build, next,
                                   i == 0 ? own : tutti_span(TUTTI_BUF_OUTPUT, give, 1)));
        TUTTI_TRY(tutti_build_recv(build, prev, tutti_span(TUTTI_BUF_OUTPUT, take, 1)));
    }
    return TUTTI_OK;
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1);

    tutti_build_chunks(build, shape->nranks);
    TUTTI_TRY(reduce_scatter(shape, build, TUTTI_BUF_OUTPUT, own));
    return all_gather(shape, build, own);
}

static int emit_reduce_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, shape->nranks);
    return reduce_scatter(shape, build, TUTTI_BUF_SCRATCH, tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

static int emit_allgather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    return all_gather(shape, build, own);
}

const struct tutti_algorithm tutti_ring_allreduce = {
    .name = "ring",
    .collective = TUTTI_ALLREDUCE,
    .emit = emit_allreduce,
};

const struct tutti_algorithm tutti_ring_reduce_scatter = {
    .name = "ring",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .emit = emit_reduce_scatter,
};

const struct tutti_algorithm tutti_ring_allgather = {
    .name = "ring",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .emit = emit_allgather,
};
