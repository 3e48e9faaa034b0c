/* SPDX-License-Identifier: Apache-2.0
 * Chain: the ranks in a row from the root on, data passed on chunk by chunk.
 *
 *   broadcast    root -> root+1 -> ... -> root-1      reduce: the same row, backwards
 *
 *   time   0    1    2    3           letters are chunks: while one is on its way to the third
 *   0->1   a    b    c    d           rank, the next is on its way to the second
 *   1->2        a    b    c
 *   2->3             a    b
 *
 * Every rank sends and receives each byte at most once: best for large vectors and few ranks.
 * Fused, the steps pass on slices of a chunk, and a reducing one needs no memory.
 *
 * Source: Worringen, "Pipelining and overlapping for MPI collective operations", 2003.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Enough to keep a chain of a handful of ranks busy where nothing is fused; slices do the rest. */
#define CHAIN_CHUNKS 8

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = from_root(shape, shape->rank);
    uint32_t next = rank_after(shape->rank, 1, shape->nranks);
    uint32_t prev = rank_before(shape->rank, 1, shape->nranks);
    enum tutti_buffer source = place == 0 ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT;

    tutti_build_chunks(build, CHAIN_CHUNKS);
    for (uint32_t i = 0; i < CHAIN_CHUNKS; i++) {
        if (place > 0)
            TUTTI_TRY(tutti_build_recv(build, prev, tutti_span(TUTTI_BUF_OUTPUT, i, 1)));
        if (place + 1 < shape->nranks)
            TUTTI_TRY(tutti_build_send(build, next, tutti_span(source, i, 1)));
    }
    if (place > 0)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, CHAIN_CHUNKS),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, CHAIN_CHUNKS));
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = from_root(shape, shape->rank);
    uint32_t next = rank_after(shape->rank, 1, shape->nranks);
    uint32_t prev = rank_before(shape->rank, 1, shape->nranks);
    bool is_last = place + 1 == shape->nranks;
    enum tutti_buffer sum = place == 0 ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH;

    tutti_build_chunks(build, CHAIN_CHUNKS);
    if (place > 0 && !is_last)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, CHAIN_CHUNKS);
    for (uint32_t i = 0; i < CHAIN_CHUNKS; i++) {
        if (!is_last)
            TUTTI_TRY(tutti_build_recv_reduce(build, next, tutti_span(TUTTI_BUF_INPUT, i, 1),
                                              tutti_span(sum, i, 1)));
        if (place > 0)
            TUTTI_TRY(tutti_build_send(build, prev,
                                       tutti_span(is_last ? TUTTI_BUF_INPUT : sum, i, 1)));
    }
    return TUTTI_OK;
}

const struct tutti_algorithm tutti_chain_broadcast = {
    .name = "chain",
    .collective = TUTTI_BROADCAST,
    .emit = emit_broadcast,
};

const struct tutti_algorithm tutti_chain_reduce = {
    .name = "chain",
    .collective = TUTTI_REDUCE,
    .emit = emit_reduce,
};
