/* SPDX-License-Identifier: Apache-2.0
 * Communication during computation, as in training. Gradients are computed layer by layer. A host
 * stream averages the gradients of one layer over the ranks while those of the next layer are
 * computed. Calls on a stream return at once, and the stream runs them in order. */
#include <tutti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NRANKS 2
#define NLAYERS 8
#define COUNT 20000

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

/* Stands for the backward pass of one layer. */
static void compute(float *gradient, int layer, int rank)
{
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)(layer + i % 100 + 1000 * rank);
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    float *gradients = NULL;
    void *memory;
    tuttiStream_t stream;

    /* Memory of the library is the fastest to communicate from; any other works as well. */
    must(tuttiMemAlloc(&memory, NLAYERS * COUNT * sizeof(float)), "tuttiMemAlloc");
    must(tuttiHostStreamCreate(&stream), "tuttiHostStreamCreate");
    gradients = memory;

    for (int layer = 0; layer < NLAYERS; layer++) {
        float *gradient = gradients + layer * COUNT;

        compute(gradient, layer, rank->number);
        /* From here until the stream is synchronized, this gradient belongs to the library. */
        must(tuttiAllReduce(gradient, gradient, COUNT, tuttiFloat32, tuttiAvg, rank->comm, stream),
             "tuttiAllReduce");
    }
    must(tuttiStreamSynchronize(stream), "tuttiStreamSynchronize");

    /* The average over ranks 0 and 1 of 1000 * rank is 500. */
    for (int layer = 0; layer < NLAYERS; layer++)
        for (int i = 0; i < COUNT; i++)
            rank->wrong += gradients[layer * COUNT + i] != (float)(layer + i % 100 + 500);

    must(tuttiHostStreamDestroy(stream), "tuttiHostStreamDestroy");
    must(tuttiMemFree(memory), "tuttiMemFree");
    must(tuttiCommFinalize(rank->comm), "tuttiCommFinalize");
    must(tuttiCommDestroy(rank->comm), "tuttiCommDestroy");
    return NULL;
}

int main(void)
{
    struct rank ranks[NRANKS];
    tuttiComm_t comms[NRANKS];
    int wrong = 0;

    must(tuttiCommInitAll(comms, NRANKS, NULL), "tuttiCommInitAll");
    for (int i = 0; i < NRANKS; i++) {
        ranks[i] = (struct rank){.comm = comms[i], .number = i};
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0)
            return 1;
    }
    for (int i = 0; i < NRANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        wrong += ranks[i].wrong;
    }
    printf("%d layers on %d ranks, %d wrong values\n", NLAYERS, NRANKS, wrong);
    return wrong != 0;
}
