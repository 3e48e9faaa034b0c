/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiBroadcast to the perf driver. Every rank receives the root's buffer. */
#include "perf.h"

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){.count = c->count, .source = c->root};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiBroadcast(send, recv, c->count, c->type, c->root, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "broadcast",
    .tunes = "broadcast",
    .has_data = true,
    .has_root = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .plan = perf_plan_vector,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
