/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiGatherV to the perf driver. The blocks have different sizes. They lie in the
 * root's output in reverse order of the ranks. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    size_t total = perf_uneven_shares(elements, c->nranks, c->recv_counts, c->recv_displs);

    c->count = total;
    c->bytes = total * c->element_bytes;
    c->send_count = c->recv_counts[c->rank];
    c->recv_count = c->in_place_count = total;
    c->in_place_send = c->recv_displs[c->rank];
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    if (c->rank != c->root)
        return 0;
    for (int i = 0; i < c->nranks; i++)
        ret_segments[i] = (struct perf_segment){
            .at = c->recv_displs[i], .count = c->recv_counts[i], .source = i};
    return (size_t)c->nranks;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiGatherV(send, c->send_count, recv, c->recv_counts, c->recv_displs, c->type, c->root,
                        comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "gatherv",
    .explains = "gatherv",
    .has_data = true,
    .has_root = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_share,
    .run = run,
};
