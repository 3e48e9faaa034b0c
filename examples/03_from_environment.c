/* SPDX-License-Identifier: Apache-2.0
 * Ranks that a launcher started: the communicator comes from the environment.
 *
 *     tutti-run -n 4 ./03_from_environment
 *     mpirun -n 4 ./03_from_environment           (also srun, torchrun --no-python)
 *
 * Without a launcher it is a communicator of one rank, and everything works in the same way. */
#include <tutti.h>

#include <stdio.h>
#include <stdlib.h>

static void must(tuttiResult_t result, const char *call)
{
    if (result == tuttiSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
    exit(1);
}

int main(void)
{
    tuttiComm_t comm;
    int rank, nranks, wrong = 0;
    double settings[2] = {0, 0};
    int64_t square, *squares = NULL;

    must(tuttiCommInitFromEnv(&comm, NULL), "tuttiCommInitFromEnv");
    must(tuttiCommUserRank(comm, &rank), "tuttiCommUserRank");
    must(tuttiCommCount(comm, &nranks), "tuttiCommCount");

    /* Rank 0 knows the settings, and all ranks get them. The same buffer twice is a call in
     * place. */
    if (rank == 0) {
        settings[0] = 0.5;
        settings[1] = 42;
    }
    must(tuttiBroadcast(settings, settings, 2, tuttiFloat64, 0, comm, NULL), "tuttiBroadcast");
    wrong += settings[0] != 0.5 || settings[1] != 42;

    /* Each rank has a result. Rank 0 collects them, and only rank 0 needs room for all. */
    square = (int64_t)rank * rank;
    if (rank == 0) {
        squares = calloc((size_t)nranks, sizeof(*squares));
        if (squares == NULL)
            return 1;
    }
    must(tuttiGather(&square, squares, 1, tuttiInt64, 0, comm, NULL), "tuttiGather");
    for (int i = 0; rank == 0 && i < nranks; i++)
        wrong += squares[i] != (int64_t)i * i;
    free(squares);

    must(tuttiCommFinalize(comm), "tuttiCommFinalize");
    must(tuttiCommDestroy(comm), "tuttiCommDestroy");
    if (rank == 0)
        printf("%d ranks, %d wrong values on rank 0\n", nranks, wrong);
    return wrong != 0;
}
