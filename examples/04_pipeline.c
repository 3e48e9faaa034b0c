/* SPDX-License-Identifier: Apache-2.0
 * A pipeline: blocks of data pass through all ranks, and each rank works on them. While a rank
 * works on one block, it receives the next one and sends the one before. Send and receive in one
 * group progress at the same time and never deadlock.
 *
 *         blocks ->  rank 0  ->  rank 1  ->  rank 2  ->  rank 3  -> checked
 *                     x + 1       x + 1       x + 1       x + 1 */
#include <tutti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS 4
#define NBLOCKS 16
#define COUNT 4096

struct rank {
    tuttiComm_t comm;
    int number, wrong;
    pthread_t thread;
};

static void must(tuttiResult_t result, const char *call)
{
    if (result == tuttiSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
    exit(1);
}

/* Returns element `index` of block `block` after `stages` ranks have worked on it. */
static int32_t value_of(int block, int index, int stages)
{
    return block * COUNT + index + stages;
}

/* One step of the pipeline: receives the next block while the last one is sent. At the ends of the
 * pipeline, and in the first and last step, one of them is missing (NULL). */
static void shift(struct rank *rank, int32_t *in, const int32_t *out)
{
    must(tuttiGroupStart(), "tuttiGroupStart");
    if (in != NULL)
        must(tuttiRecv(in, COUNT, tuttiInt32, rank->number - 1, rank->comm, NULL), "tuttiRecv");
    if (out != NULL)
        must(tuttiSend(out, COUNT, tuttiInt32, rank->number + 1, rank->comm, NULL), "tuttiSend");
    must(tuttiGroupEnd(), "tuttiGroupEnd");
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    int is_first = rank->number == 0, is_last = rank->number == NRANKS - 1;
    static _Thread_local int32_t blocks[2][COUNT];

    /* In step s block s comes in, and block s - 1 goes out. The two buffers change roles each
     * step. */
    for (int step = 0; step <= NBLOCKS; step++) {
        int32_t *next = blocks[step % 2];
        const int32_t *done = blocks[(step + 1) % 2];
        int takes = step < NBLOCKS && !is_first, gives = step > 0 && !is_last;

        shift(rank, takes ? next : NULL, gives ? done : NULL);
        if (step == NBLOCKS)
            break;
        for (int i = 0; i < COUNT; i++) {
            if (is_first)
                next[i] = value_of(step, i, 0);
            next[i] += 1;
            if (is_last)
                rank->wrong += next[i] != value_of(step, i, NRANKS);
        }
    }
    must(tuttiCommFinalize(rank->comm), "tuttiCommFinalize");
    must(tuttiCommDestroy(rank->comm), "tuttiCommDestroy");
    return NULL;
}

int main(void)
{
    struct rank ranks[NRANKS];
    tuttiComm_t comms[NRANKS];

    /* One call makes the communicators of all ranks. Each thread then uses its own. */
    must(tuttiCommInitAll(comms, NRANKS, NULL), "tuttiCommInitAll");
    for (int i = 0; i < NRANKS; i++) {
        ranks[i] = (struct rank){.comm = comms[i], .number = i};
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0)
            return 1;
    }
    for (int i = 0; i < NRANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    printf("%d blocks through %d ranks, %d wrong values\n", NBLOCKS, NRANKS,
           ranks[NRANKS - 1].wrong);
    return ranks[NRANKS - 1].wrong != 0;
}
