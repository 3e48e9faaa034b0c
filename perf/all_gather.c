/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiAllGather to the perf driver. Every rank receives the blocks of all ranks. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    c->count = elements / (size_t)c->nranks;
    c->recv_count = c->in_place_count = c->count * (size_t)c->nranks;
    c->bytes = c->recv_count * c->element_bytes;
    c->send_count = c->count;
    c->in_place_send = (size_t)c->rank * c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    for (int i = 0; i < c->nranks; i++)
        ret_segments[i] = (struct perf_segment){
            .at = (size_t)i * c->count, .count = c->count, .source = i};
    return (size_t)c->nranks;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiAllGather(send, recv, c->count, c->type, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "all_gather",
    .tunes = "allgather",
    .has_data = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
