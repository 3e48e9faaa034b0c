/* SPDX-License-Identifier: Apache-2.0
 * The driver of Tutti in the comparison: tutti DIRECTORY RANK NRANKS. */
#include "driver.h"

#include "tutti.h"

#include <stdio.h>
#include <stdlib.h>

static tuttiComm_t comm;
static int rank, nranks;

static void must(const char *call, tuttiResult_t result)
{
    if (result != tuttiSuccess)
        bench_die("rank %d: %s: %s (%s)", rank, call, tuttiGetErrorString(result),
                  tuttiGetLastError(comm));
}

static bool has(enum bench_collective collective)
{
    (void)collective;
    return true;
}

static tuttiDataType_t type_of(const struct bench_operation *op)
{
    return op->type == BENCH_BFLOAT16 ? tuttiBfloat16 :
           op->type == BENCH_FLOAT16  ? tuttiFloat16 :
                                        tuttiFloat32;
}

static void exchange(const struct bench_operation *op)
{
    must("tuttiGroupStart", tuttiGroupStart());
    must("tuttiSend",
         tuttiSend(op->send, op->count, type_of(op), (rank + 1) % nranks, comm, NULL));
    must("tuttiRecv",
         tuttiRecv(op->recv, op->count, type_of(op), (rank + nranks - 1) % nranks, comm, NULL));
    must("tuttiGroupEnd", tuttiGroupEnd());
}

static void run(const struct bench_operation *op)
{
    const tuttiDataType_t type = type_of(op);

    switch (op->collective) {
    case BENCH_ALLREDUCE:
        must("tuttiAllReduce",
             tuttiAllReduce(op->send, op->recv, op->count, type, tuttiSum, comm, NULL));
        break;
    case BENCH_ALLGATHER:
        must("tuttiAllGather", tuttiAllGather(op->send, op->recv, op->part, type, comm, NULL));
        break;
    case BENCH_REDUCE_SCATTER:
        must("tuttiReduceScatter",
             tuttiReduceScatter(op->send, op->recv, op->part, type, tuttiSum, comm, NULL));
        break;
    case BENCH_BROADCAST:
        must("tuttiBroadcast",
             tuttiBroadcast(op->recv, op->recv, op->count, type, 0, comm, NULL));
        break;
    case BENCH_ALLTOALL:
        must("tuttiAlltoAll", tuttiAlltoAll(op->send, op->recv, op->part, type, comm, NULL));
        break;
    case BENCH_BARRIER: must("tuttiBarrier", tuttiBarrier(comm, NULL)); break;
    case BENCH_SENDRECV: exchange(op); break;
    case BENCH_REDUCE:
        must("tuttiReduce",
             tuttiReduce(op->send, op->recv, op->count, type, tuttiSum, 0, comm, NULL));
        break;
    case BENCH_GATHERV:
        must("tuttiGatherV", tuttiGatherV(op->send, op->part, op->recv, op->blocks.count, NULL,
                                          type, 0, comm, NULL));
        break;
    case BENCH_SCATTERV:
        must("tuttiScatterV", tuttiScatterV(op->send, op->blocks.count, NULL, op->recv, op->part,
                                            type, 0, comm, NULL));
        break;
    case BENCH_SCAN:
        must("tuttiScan", tuttiScan(op->send, op->recv, op->count, type, tuttiSum, comm, NULL));
        break;
    case BENCH_EXCLUSIVE_SCAN:
        must("tuttiExclusiveScan",
             tuttiExclusiveScan(op->send, op->recv, op->count, type, tuttiSum, comm, NULL));
        break;
    case BENCH_COLLECTIVES: break;
    }
}

static void *allocate(size_t size_bytes)
{
    void *memory = NULL;

    must("tuttiMemAlloc", tuttiMemAlloc(&memory, size_bytes));
    return memory;
}

int main(int argc, char **argv)
{
    struct bench_library library = {.has = has, .run = run, .allocate = allocate,
                                    .has_narrow_types = true};
    char store[512];
    int version = 0;

    if (argc != 4)
        bench_die("usage: tutti DIRECTORY RANK NRANKS");
    rank = library.rank = atoi(argv[2]);
    nranks = library.nranks = atoi(argv[3]);
    bench_pin(rank);
    must("tuttiGetVersion", tuttiGetVersion(&version));
    snprintf(library.version, sizeof(library.version), "%d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    snprintf(store, sizeof(store), "file:%s/store", argv[1]);
    must("tuttiCommInitStore", tuttiCommInitStore(&comm, nranks, rank, store, NULL, NULL));
    bench_serve(&library, argv[1]);
    must("tuttiCommFinalize", tuttiCommFinalize(comm));
    must("tuttiCommDestroy", tuttiCommDestroy(comm));
    return EXIT_SUCCESS;
}
