/* SPDX-License-Identifier: Apache-2.0
 * The driver of an MPI library in the comparison: mpirun ... mpi DIRECTORY. */
#include "driver.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, nranks;

static bool has(enum bench_collective collective)
{
    (void)collective;
    return true;
}

/* Returns the blocks in MPI's form. They are made again if the size has changed. */
static const int *counts_of(const struct bench_operation *op, const int **ret_displs)
{
    static int counts[BENCH_RANKS_MAX], displs[BENCH_RANKS_MAX];
    static size_t made_for;

    for (int i = 0; made_for != op->count && i < nranks; i++) {
        counts[i] = (int)op->blocks.count[i];
        displs[i] = (int)op->blocks.first[i];
    }
    made_for = op->count;
    *ret_displs = displs;
    return counts;
}

/* MPI's default error handler ends the job with a message. */
static void run(const struct bench_operation *op)
{
    int count = (int)op->count, part = (int)op->part;
    const int *counts, *displs;

    switch (op->collective) {
    case BENCH_ALLREDUCE:
        MPI_Allreduce(op->send, op->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_ALLGATHER:
        MPI_Allgather(op->send, part, MPI_FLOAT, op->recv, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(op->send, op->recv, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_BROADCAST: MPI_Bcast(op->recv, count, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case BENCH_ALLTOALL:
        MPI_Alltoall(op->send, part, MPI_FLOAT, op->recv, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BENCH_BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case BENCH_SENDRECV:
        MPI_Sendrecv(op->send, count, MPI_FLOAT, (rank + 1) % nranks, 0, op->recv, count, MPI_FLOAT,
                     (rank + nranks - 1) % nranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case BENCH_REDUCE:
        MPI_Reduce(op->send, op->recv, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case BENCH_GATHERV:
        counts = counts_of(op, &displs);
        MPI_Gatherv(op->send, part, MPI_FLOAT, op->recv, counts, displs, MPI_FLOAT, 0,
                    MPI_COMM_WORLD);
        break;
    case BENCH_SCATTERV:
        counts = counts_of(op, &displs);
        MPI_Scatterv(op->send, counts, displs, MPI_FLOAT, op->recv, part, MPI_FLOAT, 0,
                     MPI_COMM_WORLD);
        break;
    case BENCH_SCAN:
        MPI_Scan(op->send, op->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_EXCLUSIVE_SCAN:
        MPI_Exscan(op->send, op->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_COLLECTIVES: break;
    }
}

/* Returns the rank from the launcher's variables. It is needed before MPI_Init, because the threads
 * that MPI_Init starts must run on the same CPU. */
static int rank_of_launcher(void)
{
    const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};

    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        if (getenv(variables[i]) != NULL)
            return atoi(getenv(variables[i]));
    bench_die("neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set; start this with mpirun");
}

int main(int argc, char **argv)
{
    struct bench_library library = {.has = has, .run = run};
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    if (argc != 2)
        bench_die("usage: mpirun ... mpi DIRECTORY");
    bench_pin(rank_of_launcher());
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    library.rank = rank;
    library.nranks = nranks;
    MPI_Get_library_version(text, &length);
    /* "Open MPI v4.1.4, package ..." and "MPICH Version:\t4.0.2\nMPICH Release ...". */
    text[strcspn(text, ",\n")] = '\0';
    length = (int)strcspn(text, "0123456789");
    strncpy(library.version, text + length, sizeof(library.version) - 1);
    bench_serve(&library, argv[1]);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
