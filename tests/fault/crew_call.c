/* SPDX-License-Identifier: Apache-2.0
 * Describes every communication call in one way, and the transports that it may use. */
#include "crew.h"

#include <stdlib.h>

const char *const crew_names[CREW_KINDS] = {
    "allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "gather",
    "scatter", "barrier", "allgatherv", "reduce_scatterv", "alltoallv", "gatherv", "scatterv",
    "scan", "exclusive_scan",
    "send/recv"};

/* Algorithms of messages alone, so that the FIFOs of a host are used as well as its windows. */
#define BY_MESSAGES \
    "allreduce:ring,reduce:chain,broadcast:knomial,allgather:ring,reduce_scatter:ring," \
    "alltoall:spread_out,gather:knomial,scatter:knomial,barrier:dissemination"

const struct crew_way crew_ways[] = {
    {"windows", {"TUTTI_TRANSPORTS", "shm", NULL}},
    {"windows and reads", {"TUTTI_TRANSPORTS", "shm,cma", NULL}},
    {"shm", {"TUTTI_TRANSPORTS", "shm", "TUTTI_ALGORITHM", BY_MESSAGES, NULL}},
    {"cma", {"TUTTI_TRANSPORTS", "shm,cma", "TUTTI_ALGORITHM", BY_MESSAGES, "TUTTI_CMA_THRESHOLD",
             "1024", NULL}},
    {"tcp", {"TUTTI_TRANSPORTS", "tcp", NULL}},
};
const int crew_way_count = sizeof crew_ways / sizeof *crew_ways;

static tuttiResult_t pass_round(struct crew_seat *seat, const struct crew_call *call,
                                const void *input, void *output)
{
    int next = (seat->rank + 1) % seat->nranks;
    int last = (seat->rank + seat->nranks - 1) % seat->nranks;

    tuttiGroupStart();
    tuttiSend(input, call->count, call->type, next, seat->comm, NULL);
    tuttiRecv(output, call->count, call->type, last, seat->comm, NULL);
    return tuttiGroupEnd();
}

static tuttiResult_t make(struct crew_seat *seat, const struct crew_call *call, const void *input,
                          void *output, const size_t *counts)
{
    size_t count = call->count;
    tuttiDataType_t type = call->type;
    tuttiComm_t comm = seat->comm;

    switch (call->kind) {
    case CREW_ALLREDUCE: return tuttiAllReduce(input, output, count, type, call->op, comm, NULL);
    case CREW_REDUCE:
        return tuttiReduce(input, output, count, type, call->op, call->root, comm, NULL);
    case CREW_BROADCAST: return tuttiBroadcast(input, output, count, type, call->root, comm, NULL);
    case CREW_ALLGATHER: return tuttiAllGather(input, output, count, type, comm, NULL);
    case CREW_REDUCE_SCATTER:
        return tuttiReduceScatter(input, output, count, type, call->op, comm, NULL);
    case CREW_ALLTOALL: return tuttiAlltoAll(input, output, count, type, comm, NULL);
    case CREW_GATHER: return tuttiGather(input, output, count, type, call->root, comm, NULL);
    case CREW_SCATTER: return tuttiScatter(input, output, count, type, call->root, comm, NULL);
    case CREW_BARRIER: return tuttiBarrier(comm, NULL);
    case CREW_ALLGATHERV: return tuttiAllGatherV(input, output, counts, NULL, type, comm, NULL);
    case CREW_REDUCE_SCATTERV:
        return tuttiReduceScatterV(input, output, counts, NULL, type, call->op, comm, NULL);
    case CREW_ALLTOALLV:
        return tuttiAlltoAllV(input, counts, NULL, output, counts, NULL, type, comm, NULL);
    case CREW_GATHERV:
        return tuttiGatherV(input, count, output, counts, NULL, type, call->root, comm, NULL);
    case CREW_SCATTERV:
        return tuttiScatterV(input, counts, NULL, output, count, type, call->root, comm, NULL);
    case CREW_SCAN: return tuttiScan(input, output, count, type, call->op, comm, NULL);
    case CREW_EXCLUSIVE_SCAN:
        return tuttiExclusiveScan(input, output, count, type, call->op, comm, NULL);
    default: return pass_round(seat, call, input, output);
    }
}

tuttiResult_t crew_call(struct crew_seat *seat, const struct crew_call *call)
{
    size_t bytes = (call->count + 1) * 8 * (size_t)seat->nranks;
    void *input = calloc(1, bytes), *output = calloc(1, bytes);
    tuttiResult_t result = tuttiSystemError;
    size_t counts[CREW_MOST];

    for (int rank = 0; rank < seat->nranks; rank++)
        counts[rank] = call->count;
    if (input != NULL && output != NULL)
        result = make(seat, call, input, output, counts);
    free(input);
    free(output);
    return result;
}
