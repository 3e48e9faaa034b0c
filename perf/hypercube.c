/* SPDX-License-Identifier: Apache-2.0
 * Describes an all-gather made of sends and receives to the perf driver. In round i, two ranks
 * whose numbers differ only in bit i exchange all the blocks that they have so far. */
#include "perf.h"

static const char *refuse(int nranks)
{
    return (nranks & (nranks - 1)) == 0 ? NULL : "a hypercube needs a power of two of ranks";
}

static void plan(size_t elements, struct perf_case *c)
{
    c->count = elements / (size_t)c->nranks;
    c->bytes = c->count * (size_t)(c->nranks - 1) * c->element_bytes;
    c->send_count = c->count;
    c->recv_count = c->in_place_count = c->count * (size_t)c->nranks;
    c->in_place_send = (size_t)c->rank * c->count;
}

static size_t expect(const struct perf_case *c, struct perf_segment *ret_segments)
{
    for (int i = 0; i < c->nranks; i++)
        ret_segments[i] = (struct perf_segment){
            .at = (size_t)i * c->count, .count = c->count, .source = i};
    return (size_t)c->nranks;
}

static tuttiResult_t exchange(const struct perf_case *c, const void *give, void *take, size_t count,
                              int peer, tuttiComm_t comm, tuttiStream_t stream)
{
    tuttiResult_t result = tuttiGroupStart();
    tuttiResult_t ended;

    if (result != tuttiSuccess)
        return result;
    result = tuttiSend(give, count, c->type, peer, comm, stream);
    if (result == tuttiSuccess)
        result = tuttiRecv(take, count, c->type, peer, comm, stream);
    ended = tuttiGroupEnd();
    return result == tuttiSuccess ? ended : result;
}

static tuttiResult_t run(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream)
{
    void *own = perf_at(c, recv, (size_t)c->rank * c->count);
    tuttiResult_t result = tuttiSuccess;

    /* The rank copies its own block by a message to itself, so that the copy runs in stream
     * order. */
    if (send != own)
        result = exchange(c, send, own, c->count, c->rank, comm, stream);
    for (int bit = 1; bit < c->nranks && result == tuttiSuccess; bit <<= 1) {
        int mine = c->rank & ~(bit - 1), theirs = mine ^ bit;

        result = exchange(c, perf_at(c, recv, (size_t)mine * c->count),
                          perf_at(c, recv, (size_t)theirs * c->count), (size_t)bit * c->count,
                          c->rank ^ bit, comm, stream);
    }
    return result;
}

const struct perf_collective perf_collective = {
    .name = "hypercube",
    .has_data = true,
    .has_in_place = true,
    .repeats_in_place = true,
    .is_many_groups = true,
    .refuse = refuse,
    .plan = plan,
    .expect = expect,
    .bus_factor = perf_factor_one,
    .run = run,
};
