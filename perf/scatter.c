/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiScatter to the perf driver. Rank i receives block i of the root's buffer. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    size_t total;

    c->count = elements / (size_t)c->nranks;
    total = c->count * (size_t)c->nranks;
    c->bytes = total * c->element_bytes;
    c->send_count = c->in_place_count = total;
    c->recv_count = c->count;
    c->in_place_recv = (size_t)c->rank * c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){
        .count = c->count, .source = c->root, .from = (size_t)c->rank * c->count};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiScatter(send, recv, c->count, c->type, c->root, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "scatter",
    .tunes = "scatter",
    .has_data = true,
    .has_root = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
