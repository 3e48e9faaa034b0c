/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiReduceScatter to the perf driver. The inputs are reduced over all ranks, and rank
 * i receives block i of the result. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    c->count = elements / (size_t)c->nranks;
    c->send_count = c->in_place_count = c->count * (size_t)c->nranks;
    c->bytes = c->send_count * c->element_bytes;
    c->recv_count = c->count;
    c->in_place_recv = (size_t)c->rank * c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){
        .count = c->count, .source = PERF_REDUCED, .from = (size_t)c->rank * c->count};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiReduceScatter(send, recv, c->count, c->type, c->op_handle, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "reduce_scatter",
    .tunes = "reduce_scatter",
    .has_data = true,
    .has_op = true,
    .has_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
