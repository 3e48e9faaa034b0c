/* SPDX-License-Identifier: Apache-2.0
 * nccl_peer LIBRARY RANKS MAX-BYTES FACTOR [JSON-FILE] measures all-reduces of NCCL by threads
 * that share one GPU. It times them as all_reduce_perf does: back to back on each rank's stream,
 * and with a wait for each.
 *
 * The library is loaded at run time. NCCL lets ranks share a GPU only since 2.30, and only if
 * NCCL_MULTI_RANK_GPU_ENABLE=1 is set. If it refuses, its reason is the last line. */
#include "machine.h"
#include "values.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A figure is the median of BLOCKS blocks. A block has MANY calls of up to SMALL_BYTES, or FEW
 * larger ones. */
enum { BLOCKS = 10, MANY = 20, FEW = 3, SMALL_BYTES = 64 << 10 };
/* Values of ncclDataType_t and ncclRedOp_t. */
enum { NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

struct nccl_id {
    char bytes[128];
};
struct nccl_comm;

static struct {
    int (*version)(int *ret_version);
    int (*unique_id)(struct nccl_id *ret_id);
    int (*init_rank)(struct nccl_comm **ret_comm, int nranks, struct nccl_id id, int rank);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op,
                      struct nccl_comm *comm, struct tutti_cu_stream *stream);
    int (*destroy)(struct nccl_comm *comm);
    const char *(*last_error)(struct nccl_comm *comm);
} nccl;

/* All ranks. The three arrays have an entry for each rank, about the size that is measured now. */
struct crew {
    struct bench_gpu gpu;
    struct nccl_id id;
    uint32_t nranks;
    size_t max_bytes, factor;
    pthread_barrier_t meeting;
    double *stream_us, *sync_us; /* back to back, and with a wait for each call */
    int *is_right;
    FILE *json; /* may be NULL */
};

struct member {
    struct crew *crew;
    pthread_t thread;
    uint32_t rank;
    struct bench_gpu gpu;
    struct nccl_comm *comm;
    void *input, *output;
};

static void must(const char *what, int code)
{
    if (code != 0)
        bench_end("nccl_peer: %s: %s", what, nccl.last_error(NULL));
}

static void load(const char *file)
{
    static const char *const names[] = {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank",
                                        "ncclAllReduce", "ncclCommDestroy", "ncclGetLastError"};
    void *functions[sizeof(names) / sizeof(names[0])];
    void *library = dlopen(file, RTLD_NOW);

    if (library == NULL)
        bench_end("nccl_peer: %s", dlerror());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        functions[i] = dlsym(library, names[i]);
        if (functions[i] == NULL)
            bench_end("nccl_peer: %s has no %s", file, names[i]);
    }
    memcpy(&nccl, functions, sizeof(functions));
}

static void call(const struct member *member, size_t bytes)
{
    must("ncclAllReduce", nccl.all_reduce(member->input, member->output, bytes / sizeof(float),
                                          NCCL_FLOAT32, NCCL_SUM, member->comm,
                                          member->gpu.stream));
}

/* Returns the time of a call in microseconds: the median over blocks, which all ranks begin
 * together. */
static double measure(const struct member *member, size_t bytes, int waits_for_each)
{
    int calls = bytes <= SMALL_BYTES ? MANY : FEW;
    double blocks[BLOCKS];

    for (int block = 0; block < BLOCKS; block++) {
        uint64_t begun;

        pthread_barrier_wait(&member->crew->meeting);
        begun = tutti_now_ns();
        for (int i = 0; i < calls; i++) {
            call(member, bytes);
            if (waits_for_each)
                bench_gpu_synchronize(&member->gpu);
        }
        bench_gpu_synchronize(&member->gpu);
        blocks[block] = (double)(tutti_now_ns() - begun) * 1e-3 / calls;
    }
    return bench_median(blocks, BLOCKS);
}

static void report(const struct crew *crew, size_t bytes, int version)
{
    double stream_us = 0, sync_us = 0;
    int is_right = 1;

    for (uint32_t i = 0; i < crew->nranks; i++) {
        stream_us += crew->stream_us[i] / crew->nranks;
        sync_us += crew->sync_us[i] / crew->nranks;
        is_right &= crew->is_right[i];
    }
    printf("%12zu %10.2f %10.2f%s\n", bytes, stream_us, sync_us, is_right ? "" : " WRONG");
    fflush(stdout);
    if (crew->json == NULL)
        return;
    fprintf(crew->json, "{\"what\": \"nccl\", \"version\": %d, \"ranks\": %u, \"bytes\": %zu, "
            "\"stream_us\": %.3f, \"sync_us\": %.3f, \"right\": %s}\n", version, crew->nranks,
            bytes, stream_us, sync_us, is_right ? "true" : "false");
    fflush(crew->json);
}

static void *run_member(void *argument)
{
    struct member *member = argument;
    struct crew *crew = member->crew;
    int version = 0;

    bench_gpu_join(&crew->gpu, &member->gpu);
    member->input = bench_gpu_alloc(&member->gpu, crew->max_bytes);
    member->output = bench_gpu_alloc(&member->gpu, crew->max_bytes);
    bench_values_fill(&member->gpu, TUTTI_FLOAT32, member->rank, member->input, crew->max_bytes);
    must("ncclGetVersion", nccl.version(&version));
    must("ncclCommInitRank",
         nccl.init_rank(&member->comm, (int)crew->nranks, crew->id, (int)member->rank));
    for (size_t bytes = 8; bytes <= crew->max_bytes; bytes *= crew->factor) {
        call(member, bytes);
        bench_gpu_synchronize(&member->gpu);
        crew->is_right[member->rank] = bench_values_are_sum(
            &member->gpu, TUTTI_FLOAT32, crew->nranks, member->output, bytes);
        crew->stream_us[member->rank] = measure(member, bytes, 0);
        crew->sync_us[member->rank] = measure(member, bytes, 1);
        if (pthread_barrier_wait(&crew->meeting) == PTHREAD_BARRIER_SERIAL_THREAD)
            report(crew, bytes, version);
        pthread_barrier_wait(&crew->meeting);
    }
    must("ncclCommDestroy", nccl.destroy(member->comm));
    bench_gpu_free(&member->gpu, member->input);
    bench_gpu_free(&member->gpu, member->output);
    bench_gpu_leave(&member->gpu);
    return NULL;
}

static void run(struct crew *crew)
{
    struct member *members = calloc(crew->nranks, sizeof(*members));

    crew->stream_us = calloc(crew->nranks, sizeof(double));
    crew->sync_us = calloc(crew->nranks, sizeof(double));
    crew->is_right = calloc(crew->nranks, sizeof(int));
    if (members == NULL || crew->stream_us == NULL || crew->sync_us == NULL ||
        crew->is_right == NULL)
        bench_end("nccl_peer: no memory for %u ranks", crew->nranks);
    pthread_barrier_init(&crew->meeting, NULL, crew->nranks);
    printf("#      bytes  stream/us    sync/us\n");
    for (uint32_t i = 0; i < crew->nranks; i++) {
        members[i].crew = crew;
        members[i].rank = i;
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
            bench_end("nccl_peer: cannot start thread %u", i);
    }
    for (uint32_t i = 0; i < crew->nranks; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&crew->meeting);
    free(crew->stream_us);
    free(crew->sync_us);
    free(crew->is_right);
    free(members);
}

int main(int argc, char **argv)
{
    struct crew crew = {.nranks = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
                        .max_bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
                        .factor = argc > 4 ? strtoull(argv[4], NULL, 10) : 0};

    if (argc < 5 || argc > 6 || crew.nranks < 1 || crew.nranks > 64 || crew.max_bytes < 8 ||
        crew.factor < 2 || (crew.factor & (crew.factor - 1)) != 0)
        bench_end("usage: nccl_peer LIBRARY RANKS MAX-BYTES FACTOR [JSON-FILE]; the factor is a "
                  "power of two");
    load(argv[1]);
    if (argc == 6 && (crew.json = fopen(argv[5], "a")) == NULL)
        bench_end("nccl_peer: cannot write %s", argv[5]);
    bench_gpu_open(0, &crew.gpu);
    must("ncclGetUniqueId", nccl.unique_id(&crew.id));
    run(&crew);
    bench_gpu_close(&crew.gpu);
    if (crew.json != NULL && fclose(crew.json) != 0)
        bench_end("nccl_peer: cannot finish %s", argv[5]);
    return 0;
}
