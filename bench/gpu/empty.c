/* SPDX-License-Identifier: Apache-2.0
 * Measures empty kernels. A sample is the mean over some launches. A thread's figure is the median
 * of its samples, and that of several threads the mean of theirs, as in the perf programs. */
#include "empty.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

/* LAUNCHES and REPLAYS are those of one sample. A graph has NODES empty kernels. */
enum { LAUNCHES = 50, NODES = 20, REPLAYS = 10 };

/* Threads that measure at the same time. */
struct crew {
    const struct bench_gpu *gpu;
    uint32_t rounds; /* samples of each kind */
    pthread_barrier_t start;
};

struct member {
    struct crew *crew;
    pthread_t thread;
    double launch_us, node_us; /* results */
};

static void launch_empty(const struct bench_gpu *gpu)
{
    struct tutti_kernel_empty_argument nothing = {0};

    bench_gpu_launch(gpu, TUTTI_KERNEL_EMPTY, 1, gpu->threads, &nothing);
}

static double time_launches(const struct bench_gpu *gpu)
{
    uint64_t begun = tutti_now_ns();

    for (int i = 0; i < LAUNCHES; i++) {
        launch_empty(gpu);
        bench_gpu_synchronize(gpu);
    }
    return (double)(tutti_now_ns() - begun) * 1e-3 / LAUNCHES;
}

/* Replays the graph back to back, as a program does that replays it in every iteration. */
static double time_replays(const struct bench_gpu *gpu, struct bench_graph *graph)
{
    uint64_t begun = tutti_now_ns();

    for (int i = 0; i < REPLAYS; i++)
        bench_graph_replay(gpu, graph);
    bench_gpu_synchronize(gpu);
    return (double)(tutti_now_ns() - begun) * 1e-3 / (REPLAYS * NODES);
}

static void *measure(void *argument)
{
    struct member *member = argument;
    struct crew *crew = member->crew;
    double *samples = malloc(crew->rounds * sizeof(*samples));
    struct bench_graph *graph;
    struct bench_gpu gpu;

    if (samples == NULL)
        bench_end("no memory for %u samples", crew->rounds);
    bench_gpu_join(crew->gpu, &gpu);
    launch_empty(&gpu);
    bench_gpu_synchronize(&gpu);
    bench_graph_begin(&gpu);
    for (int i = 0; i < NODES; i++)
        launch_empty(&gpu);
    graph = bench_graph_end(&gpu);

    for (uint32_t i = 0; i < crew->rounds; i++) {
        pthread_barrier_wait(&crew->start);
        samples[i] = time_launches(&gpu);
    }
    member->launch_us = bench_median(samples, crew->rounds);
    for (uint32_t i = 0; i < crew->rounds; i++) {
        pthread_barrier_wait(&crew->start);
        samples[i] = time_replays(&gpu, graph);
    }
    member->node_us = bench_median(samples, crew->rounds);
    bench_graph_free(&gpu, graph);
    bench_gpu_leave(&gpu);
    free(samples);
    return NULL;
}

static void run(struct bench_gpu *gpu, uint32_t nthreads, uint32_t rounds, FILE *json)
{
    struct crew crew = {.gpu = gpu, .rounds = rounds};
    struct member *members = calloc(nthreads, sizeof(*members));
    double launch_us = 0, node_us = 0;

    if (members == NULL)
        bench_end("no memory for %u threads", nthreads);
    pthread_barrier_init(&crew.start, NULL, nthreads);
    for (uint32_t i = 0; i < nthreads; i++) {
        members[i].crew = &crew;
        if (pthread_create(&members[i].thread, NULL, measure, &members[i]) != 0)
            bench_end("cannot start thread %u of %u", i, nthreads);
    }
    for (uint32_t i = 0; i < nthreads; i++) {
        pthread_join(members[i].thread, NULL);
        launch_us += members[i].launch_us / nthreads;
        node_us += members[i].node_us / nthreads;
    }
    pthread_barrier_destroy(&crew.start);
    free(members);
    printf("# empty kernel, %u thread%s: launch and synchronize %.2f us, node of a graph %.2f us\n",
           nthreads, nthreads == 1 ? "" : "s", launch_us, node_us);
    if (json != NULL)
        fprintf(json, "{\"what\": \"empty\", \"threads\": %u, \"launch_us\": %.3f, "
                "\"node_us\": %.3f}\n", nthreads, launch_us, node_us);
}

void bench_empty(struct bench_gpu *gpu, uint32_t nthreads, uint32_t rounds, FILE *json)
{
    run(gpu, 1, rounds, json);
    if (nthreads > 1)
        run(gpu, nthreads, rounds, json);
}
