/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiReduce to the perf driver. The root receives each element reduced over all ranks.
 * The outputs of the other ranks must stay unchanged. */
#include "perf.h"

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){.count = c->count, .source = PERF_REDUCED};
    return c->rank == c->root ? 1 : 0;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiReduce(send, recv, c->count, c->type, c->op_handle, c->root, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "reduce",
    .tunes = "reduce",
    .has_data = true,
    .has_op = true,
    .has_root = true,
    .has_in_place = true,
    .plan = perf_plan_vector,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
