/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiBarrier to the perf driver. A barrier moves no bytes, so it has no bandwidth. */
#include "perf.h"

static void plan(size_t elements, struct perf_case *c)
{
    (void)elements;
    (void)c;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    (void)c;
    (void)ret_segments;
    return 0;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    (void)c;
    (void)send;
    (void)recv;
    return tuttiBarrier(comm, stream);
}

const struct perf_collective perf_collective = {
    .name = "barrier",
    .tunes = "barrier",
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
