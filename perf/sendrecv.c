/* SPDX-License-Identifier: Apache-2.0
 * Describes tuttiSend and tuttiRecv to the perf driver. Every rank sends to the next rank and
 * receives from the previous rank, in one group. */
#include "perf.h"

static int previous_rank(const struct perf_case *c)
{
    return (c->rank + c->nranks - 1) % c->nranks;
}

static void plan(size_t elements, struct perf_case *c)
{
    c->count = elements;
    c->bytes = c->count * c->element_bytes;
    c->send_count = c->recv_count = c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    ret_segments[0] = (struct perf_segment){.count = c->count, .source = previous_rank(c)};
    return 1;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    tuttiResult_t result = tuttiGroupStart();
    tuttiResult_t ended;

    if (result != tuttiSuccess)
        return result;
    result = tuttiSend(send, c->count, c->type, (c->rank + 1) % c->nranks, comm, stream);
    if (result == tuttiSuccess)
        result = tuttiRecv(recv, c->count, c->type, previous_rank(c), comm, stream);
    ended = tuttiGroupEnd();
    return result == tuttiSuccess ? ended : result;
}

const struct perf_collective perf_collective = {
    .name = "sendrecv",
    .has_data = true,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
