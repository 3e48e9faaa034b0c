/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiScatterV to the perf driver. The blocks have different sizes. They lie in the
 * root's input in reverse order of the ranks. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    size_t total = perf_uneven_shares(elements, c->nranks, c->send_counts, c->send_displs);

    c->count = total;
    c->bytes = total * c->element_bytes;
    c->send_count = c->in_place_count = total;
    c->recv_count = c->send_counts[c->rank];
    c->in_place_recv = c->send_displs[c->rank];
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){
        .count = c->recv_count, .source = c->root, .from = c->send_displs[c->rank]};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiScatterV(send, c->send_counts, c->send_displs, recv, c->recv_count, c->type,
                         c->root, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "scatterv",
    .explains = "scatterv",
    .has_data = true,
    .has_root = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
