/* SPDX-License-Identifier: Apache-2.0
 * A rank for scripts/check-cut. Ranks 0 and 1 are on one host, 2 and 3 on another. It is called as
 * one of these:
 *
 *     cut_rank busy    all ranks call all-reduces until one fails
 *     cut_rank idle    each waits for the other rank of its host, which does not send: no rank
 *                      waits for the network
 *     cut_rank late    rank 2 computes for some seconds, while rank 0 sends it more than fits
 *                      between them; then it receives all
 *
 * It says "running" when all ranks have met, and at the end the result and the reason. */
#include "tutti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1 << 18, LATE_COUNT = 8 << 20, LATE_S = 6 };

static float input[COUNT], output[COUNT];

static tuttiResult_t be_busy(tuttiComm_t comm)
{
    tuttiResult_t result;

    do
        result = tuttiAllReduce(input, output, COUNT, tuttiFloat32, tuttiSum, comm, NULL);
    while (result == tuttiSuccess);
    return result;
}

/* From rank 0 to rank 2. */
static tuttiResult_t pass(tuttiComm_t comm, int rank, float *bytes, size_t count)
{
    if (rank == 0)
        return tuttiSend(bytes, count, tuttiFloat32, 2, comm, NULL);
    return rank == 2 ? tuttiRecv(bytes, count, tuttiFloat32, 0, comm, NULL) : tuttiSuccess;
}

static tuttiResult_t be_late(tuttiComm_t comm, int rank)
{
    float *bytes = malloc((size_t)LATE_COUNT * sizeof *bytes);
    tuttiResult_t result = tuttiSystemError;

    if (bytes == NULL)
        return result;
    memset(bytes, 0, (size_t)LATE_COUNT * sizeof *bytes);
    result = pass(comm, rank, bytes, 1); /* so that they are connected */
    if (rank == 2)
        nanosleep(&(struct timespec){.tv_sec = LATE_S}, NULL);
    if (result == tuttiSuccess)
        result = pass(comm, rank, bytes, LATE_COUNT);
    free(bytes);
    return result == tuttiSuccess ? tuttiBarrier(comm, NULL) : result;
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    tuttiResult_t result;
    tuttiComm_t comm = NULL;
    int rank = -1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    result = tuttiCommInitFromEnv(&comm, NULL);
    /* Every pair that an all-reduce or a message joins, so that there is something to cut. */
    if (result == tuttiSuccess)
        result = tuttiAllReduce(input, output, COUNT, tuttiFloat32, tuttiSum, comm, NULL);
    if (result == tuttiSuccess)
        result = tuttiCommUserRank(comm, &rank);
    if (result == tuttiSuccess) {
        printf("running\n");
        if (strcmp(mode, "busy") == 0)
            result = be_busy(comm);
        else if (strcmp(mode, "idle") == 0)
            result = tuttiRecv(output, COUNT, tuttiFloat32, rank ^ 1, comm, NULL);
        else
            result = be_late(comm, rank);
    }
    printf("result %d: %s\n", (int)result, result == tuttiSuccess ? "" : tuttiGetLastError(NULL));
    tuttiCommDestroy(comm);
    return 0;
}
