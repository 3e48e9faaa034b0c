/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiAlltoAll to the perf driver. Block i of rank j's input becomes block j of rank i's
 * output. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    c->count = elements / (size_t)c->nranks;
    c->send_count = c->recv_count = c->in_place_count = c->count * (size_t)c->nranks;
    c->bytes = c->send_count * c->element_bytes;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    for (int i = 0; i < c->nranks; i++)
        ret_segments[i] = (struct perf_segment){.at = (size_t)i * c->count, .count = c->count,
                                                .source = i, .from = (size_t)c->rank * c->count};
    return (size_t)c->nranks;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiAlltoAll(send, recv, c->count, c->type, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "alltoall",
    .tunes = "alltoall",
    .has_data = true,
    .has_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
