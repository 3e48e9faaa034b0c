/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiGather to the perf driver. The root receives the blocks of all ranks. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    size_t total;

    c->count = elements / (size_t)c->nranks;
    total = c->count * (size_t)c->nranks;
    c->bytes = total * c->element_bytes;
    c->send_count = c->count;
    c->recv_count = c->in_place_count = total;
    c->in_place_send = (size_t)c->rank * c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    if (c->rank != c->root)
        return 0;
    for (int i = 0; i < c->nranks; i++)
        ret_segments[i] = (struct perf_segment){
            .at = (size_t)i * c->count, .count = c->count, .source = i};
    return (size_t)c->nranks;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiGather(send, recv, c->count, c->type, c->root, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "gather",
    .tunes = "gather",
    .has_data = true,
    .has_root = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
