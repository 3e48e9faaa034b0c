/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiAllReduce to the perf driver. Every rank receives each element reduced over all
 * ranks. */
#include "perf.h"

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){.count = c->count, .source = PERF_REDUCED};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiAllReduce(send, recv, c->count, c->type, c->op_handle, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "all_reduce",
    .tunes = "allreduce",
    .has_data = true,
    .has_op = true,
    .has_in_place = true,
    .plan = perf_plan_vector,
    .expect = expect,
    .bus_factor = perf_factor_twice,
    .run = run,
};
