/* SPDX-License-Identifier: Apache-2.0
 * Ranks as processes that one program forks. Rank 0 makes the unique id, because a process that
 * makes an id must hold a rank. It passes the id to the others through a pipe. The fork comes
 * before the first call of the library.
 *
 *     02_processes [NUMBER OF RANKS, default 4]
 */
#include <tutti.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(tuttiResult_t result, const char *call)
{
    if (result == tuttiSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
    exit(1);
}

/* Returns the id of the communicator. Rank 0 makes it, and writes it once for every other rank to
 * the pipe `ends`. Each of the others reads one copy. */
static tuttiUniqueId share_id(int rank, int nranks, const int ends[2])
{
    tuttiUniqueId id;

    if (rank == 0) {
        must(tuttiGetUniqueId(&id), "tuttiGetUniqueId");
        for (int i = 1; i < nranks; i++)
            if (write(ends[1], &id, sizeof(id)) != (ssize_t)sizeof(id))
                exit(1);
    }
    close(ends[1]); /* then a read returns, even if rank 0 has died before it wrote */
    if (rank != 0 && read(ends[0], &id, sizeof(id)) != (ssize_t)sizeof(id)) {
        fprintf(stderr, "rank %d: rank 0 ended before it made an id\n", rank);
        exit(1);
    }
    close(ends[0]);
    return id;
}

/* Rank r contributes the numbers 10r, 10r + 1 and 10r + 2. All ranks get all numbers in order.
 * Returns the exit code of the rank. */
static int run(int rank, int nranks, const int ends[2])
{
    tuttiUniqueId id = share_id(rank, nranks, ends);
    int *all = calloc((size_t)nranks, 3 * sizeof(int));
    int mine[3], wrong = 0;
    tuttiComm_t comm;

    if (all == NULL)
        return 1;
    must(tuttiCommInitRank(&comm, nranks, id, rank), "tuttiCommInitRank");
    for (int i = 0; i < 3; i++)
        mine[i] = 10 * rank + i;
    must(tuttiAllGather(mine, all, 3, tuttiInt32, comm, NULL), "tuttiAllGather");
    for (int i = 0; i < 3 * nranks; i++)
        wrong += all[i] != 10 * (i / 3) + i % 3;
    must(tuttiCommFinalize(comm), "tuttiCommFinalize");
    must(tuttiCommDestroy(comm), "tuttiCommDestroy");
    free(all);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    int nranks = argc > 1 ? atoi(argv[1]) : 4, failed = 0, ends[2];

    if (nranks < 1 || pipe(ends) != 0) {
        fprintf(stderr, "usage: %s [number of ranks]\n", argv[0]);
        return 2;
    }
    for (int rank = 0; rank < nranks; rank++) {
        pid_t pid = fork();

        if (pid < 0)
            return 1;
        if (pid == 0)
            exit(run(rank, nranks, ends));
    }
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < nranks; i++) {
        int status;

        if (wait(&status) < 0 || status != 0)
            failed++;
    }
    printf("%d ranks, %d of them failed\n", nranks, failed);
    return failed != 0;
}
