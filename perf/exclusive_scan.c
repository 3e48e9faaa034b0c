/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiExclusiveScan to the perf driver. Every rank but rank 0 receives each
 * element reduced over the ranks before it. Rank 0 receives nothing. */
#include "perf.h"

static int summands(int rank)
{
    return rank;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){.count = c->count, .source = PERF_REDUCED};
    return c->rank > 0 ? 1 : 0;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    return tuttiExclusiveScan(send, recv, c->count, c->type, c->op_handle, comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "exclusive_scan",
    .tunes = "exclusive_scan",
    .has_data = true,
    .has_op = true,
    .has_in_place = true,
    .summands = summands,
    .plan = perf_plan_vector,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
