/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiAlltoAllV to the perf driver. Rank i sends (i + j) mod 3 parts to rank j. The
 * counts are symmetric, so that the exchange also works in place. */
#include "perf.h"

static size_t pair_count(const struct perf_case *c, int i, int j)
{
    return c->count * (size_t)((i + j) % 3);
}

/* Returns where rank i's block for rank j begins. The blocks lie one after the other, in order of
 * peers. */
static size_t pair_displacement(const struct perf_case *c, int i, int j)
{
    size_t displacement = 0;

    for (int peer = 0; peer < j; peer++)
        displacement += pair_count(c, i, peer);
    return displacement;
}

/* Sets `count` to one part. A rank sends at most two parts to each peer, so the budget is divided
 * by 2. The size column shows the bytes that the busiest rank sends. */
static void plan(size_t elements, struct perf_case *c)
{
    size_t most = 0;

    c->count = elements / (size_t)c->nranks / 2;
    for (int i = 0; i < c->nranks; i++) {
        size_t total = pair_displacement(c, i, c->nranks);

        most = total > most ? total : most;
    }
    c->bytes = most * c->element_bytes;
    c->send_count = pair_displacement(c, c->rank, c->nranks);
    c->recv_count = c->in_place_count = c->send_count;
    for (int peer = 0; peer < c->nranks; peer++) {
        c->send_counts[peer] = c->recv_counts[peer] = pair_count(c, c->rank, peer);
        c->send_displs[peer] = c->recv_displs[peer] = pair_displacement(c, c->rank, peer);
    }
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    for (int peer = 0; peer < c->nranks; peer++)
        ret_segments[peer] = (struct perf_segment){
            .at = c->recv_displs[peer], .count = c->recv_counts[peer], .source = peer,
            .from = pair_displacement(c, peer, c->rank)};
    return (size_t)c->nranks;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiAlltoAllV(send, c->send_counts, c->send_displs, recv, c->recv_counts,
                          c->recv_displs, c->type, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "alltoallv",
    .explains = "alltoallv",
    .has_data = true,
    .has_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
