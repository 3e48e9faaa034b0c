/* SPDX-License-Identifier: Apache-2.0
 * Ranks as threads of one process: each joins the communicator and takes part in an all-reduce.
 *
 *     01_threads [NUMBER OF RANKS, default 4]
 */
#include <tutti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000

struct rank {
    tuttiUniqueId id;
    int number, nranks;
    int is_right;
    pthread_t thread;
};

/* Returns when `result` is a success; else says what went wrong and ends the process. */
static void must(tuttiResult_t result, const char *call)
{
    if (result == tuttiSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
    exit(1);
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    float input[COUNT], output[COUNT];
    tuttiComm_t comm;

    must(tuttiCommInitRank(&comm, rank->nranks, rank->id, rank->number), "tuttiCommInitRank");

    for (int i = 0; i < COUNT; i++)
        input[i] = (float)(rank->number + i);
    must(tuttiAllReduce(input, output, COUNT, tuttiFloat32, tuttiSum, comm, NULL),
         "tuttiAllReduce");

    /* The sum over ranks r of r + i is nranks * i + (0 + 1 + ... + nranks - 1). */
    rank->is_right = 1;
    for (int i = 0; i < COUNT; i++)
        if (output[i] != (float)(rank->nranks * i + rank->nranks * (rank->nranks - 1) / 2))
            rank->is_right = 0;

    must(tuttiCommFinalize(comm), "tuttiCommFinalize");
    must(tuttiCommDestroy(comm), "tuttiCommDestroy");
    return NULL;
}

int main(int argc, char **argv)
{
    int nranks = argc > 1 ? atoi(argv[1]) : 4, wrong = 0;
    struct rank *ranks;
    tuttiUniqueId id;

    if (nranks < 1) {
        fprintf(stderr, "usage: %s [number of ranks]\n", argv[0]);
        return 2;
    }
    ranks = calloc((size_t)nranks, sizeof(*ranks));
    if (ranks == NULL)
        return 1;

    must(tuttiGetUniqueId(&id), "tuttiGetUniqueId");
    for (int i = 0; i < nranks; i++) {
        ranks[i] = (struct rank){.id = id, .number = i, .nranks = nranks};
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0)
            return 1;
    }
    for (int i = 0; i < nranks; i++) {
        pthread_join(ranks[i].thread, NULL);
        wrong += !ranks[i].is_right;
    }
    free(ranks);
    printf("%d ranks, %d of them with a wrong sum\n", nranks, wrong);
    return wrong != 0;
}
