/* SPDX-License-Identifier: Apache-2.0
 * In each cell (type, sources, size) the contenders take turns, so that all use the same GPU. They
 * are the driver's copy, the library's copy and the library's reduction. The latter two run on
 * grids of several sizes, and the fastest counts. Times are the GPU's own, between events. A
 * figure is the median of a contender's samples. Bandwidth counts each byte that is read and each
 * that is written. */
#include "local.h"

#include "values.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 8, GRIDS = 3, CONTENDERS = 1 + 2 * GRIDS, MOST_LAUNCHES = 1000 };

/* Numbers of contenders: the driver's copy, the first of GRIDS of the library's copy, and the first
 * of GRIDS of the reduction. */
enum { DRIVER = 0, OWN = 1, REDUCE = 1 + GRIDS };

static const struct {
    enum tutti_type type;
    const char *name;
} types[] = {
    {TUTTI_FLOAT32, "float32"},     {TUTTI_BFLOAT16, "bfloat16"}, {TUTTI_FLOAT16, "float16"},
    {TUTTI_FLOAT8E4M3, "f8e4m3"},   {TUTTI_FLOAT8E5M2, "f8e5m2"}, {TUTTI_INT32, "int32"},
};
static const uint32_t sources_of[] = {2, 4, 8};

struct cell {
    const struct bench_gpu *gpu;
    const struct bench_local *what;
    enum tutti_type type;
    const char *type_name;
    uint32_t nsrcs; /* 0: only copies */
    size_t bytes;
    void *sources[MOST_SOURCES], *sum;
    uint32_t grids[GRIDS];  /* in blocks */
    double us[CONTENDERS];  /* medians; 0: did not take part */
};

static void enqueue(const struct cell *cell, uint32_t contender)
{
    const struct bench_gpu *gpu = cell->gpu;

    if (contender == DRIVER) {
        bench_must(gpu, "cuMemcpyAsync",
                   gpu->cuda->copy_async((tutti_cu_address)(uintptr_t)cell->sum,
                                         (tutti_cu_address)(uintptr_t)cell->sources[0],
                                         cell->bytes, gpu->stream));
    } else if (contender < REDUCE) {
        struct tutti_kernel_copy_argument copy = {
            .src = cell->sources[0], .dst = cell->sum, .size_bytes = cell->bytes};

        bench_gpu_launch(gpu, TUTTI_KERNEL_COPY, cell->grids[contender - OWN], gpu->threads, &copy);
    } else {
        struct tutti_kernel_reduce_argument reduce = {
            .job = {.type = cell->type, .op = TUTTI_SUM, .nsrcs = cell->nsrcs, .ndsts = 1,
                    .count = cell->bytes / tutti_type_size(cell->type),
                    .scale = {.multiply = 1.0, .divide = 1},
                    .premultiplied = TUTTI_KERNEL_NO_SOURCE}};

        memcpy(reduce.pointers, cell->sources, cell->nsrcs * sizeof(cell->sources[0]));
        reduce.pointers[cell->nsrcs] = cell->sum;
        bench_gpu_launch(gpu, TUTTI_KERNEL_REDUCE, cell->grids[contender - REDUCE], gpu->threads,
                         &reduce);
    }
}

/* Returns the mean time of `launches`, in microseconds. */
static double sample(const struct cell *cell, uint32_t contender, int launches)
{
    const struct bench_gpu *gpu = cell->gpu;
    float ms = 0;

    bench_must(gpu, "cuEventRecord", gpu->cuda->event_record(gpu->from, gpu->stream));
    for (int i = 0; i < launches; i++)
        enqueue(cell, contender);
    bench_must(gpu, "cuEventRecord", gpu->cuda->event_record(gpu->to, gpu->stream));
    bench_gpu_synchronize(gpu);
    bench_must(gpu, "cuEventElapsedTime", gpu->cuda->event_elapsed(&ms, gpu->from, gpu->to));
    return (double)ms * 1e3 / launches;
}

/* Chooses grids of 1, 2 and 4 blocks for each multiprocessor, but with no more threads than have
 * something to do: one for each 16 bytes. */
static void choose_grids(struct cell *cell)
{
    const struct bench_gpu *gpu = cell->gpu;
    size_t useful = (cell->bytes + 16 * (size_t)gpu->threads - 1) / (16 * (size_t)gpu->threads);

    for (uint32_t i = 0; i < GRIDS; i++) {
        size_t blocks = (size_t)gpu->multiprocessors << i;

        cell->grids[i] = (uint32_t)(blocks < useful ? blocks : useful);
    }
}

/* False for a contender with the same grid as the one before, and for a sum without sources. */
static bool takes_part(const struct cell *cell, uint32_t contender)
{
    uint32_t grid = contender == DRIVER ? 0 : (contender - OWN) % GRIDS;

    if (contender >= REDUCE && cell->nsrcs == 0)
        return false;
    return grid == 0 || cell->grids[grid] != cell->grids[grid - 1];
}

static void measure(struct cell *cell)
{
    uint32_t rounds = cell->what->rounds;
    double *samples = malloc(CONTENDERS * rounds * sizeof(*samples));
    int launches[CONTENDERS] = {0};

    if (samples == NULL)
        bench_end("no memory for %u samples", rounds);
    for (uint32_t i = 0; i < CONTENDERS; i++)
        if (takes_part(cell, i)) {
            sample(cell, i, 1);
            launches[i] = (int)(cell->what->sample_us / (sample(cell, i, 1) + 0.01)) + 1;
            launches[i] = launches[i] < MOST_LAUNCHES ? launches[i] : MOST_LAUNCHES;
        }
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < CONTENDERS; i++)
            if (launches[i] > 0)
                samples[i * rounds + round] = sample(cell, i, launches[i]);
    for (uint32_t i = 0; i < CONTENDERS; i++)
        cell->us[i] = launches[i] > 0 ? bench_median(samples + i * rounds, rounds) : 0;
    free(samples);
}

/* Returns the fastest contender from `first` on, of which there is one per grid. */
static uint32_t best_of(const struct cell *cell, uint32_t first)
{
    uint32_t best = first;

    for (uint32_t i = first; i < first + GRIDS; i++)
        if (cell->us[i] > 0 && cell->us[i] < cell->us[best])
            best = i;
    return best;
}

/* GB/s of something that moves `bytes` in `us`. */
static double rate(double bytes, double us)
{
    return us > 0 ? bytes / us * 1e-3 : 0;
}

static void report(const struct cell *cell, bool is_right, FILE *json)
{
    uint32_t own = best_of(cell, OWN), reduce = best_of(cell, REDUCE);
    double bytes = (double)cell->bytes, driver = rate(2 * bytes, cell->us[DRIVER]);
    double ours = rate(2 * bytes, cell->us[own]);
    double sum = rate((cell->nsrcs + 1) * bytes, cell->us[reduce]);

    printf("%10s %3u %12zu %10.2f %8.1f %5u %10.2f %8.1f %10.2f %8.1f %5u %7.3f%s\n",
           cell->type_name, cell->nsrcs, cell->bytes, cell->us[reduce], sum,
           cell->grids[reduce - REDUCE], cell->us[DRIVER], driver, cell->us[own], ours,
           cell->grids[own - OWN], driver > 0 ? sum / driver : 0, is_right ? "" : " WRONG");
    fflush(stdout);
    if (json == NULL)
        return;
    fprintf(json, "{\"what\": \"%s\", \"type\": \"%s\", \"sources\": %u, \"bytes\": %zu, ",
            cell->nsrcs > 0 ? "reduce" : "copy", cell->type_name, cell->nsrcs, cell->bytes);
    if (cell->nsrcs > 0)
        fprintf(json, "\"us\": %.3f, \"gbps\": %.2f, \"blocks\": %u, \"of_copy\": %.4f, "
                "\"right\": %s, ", cell->us[reduce], sum, cell->grids[reduce - REDUCE],
                driver > 0 ? sum / driver : 0, is_right ? "true" : "false");
    fprintf(json, "\"copy_us\": %.3f, \"copy_gbps\": %.2f, \"own_copy_us\": %.3f, "
            "\"own_copy_gbps\": %.2f, \"own_copy_blocks\": %u}\n", cell->us[DRIVER], driver,
            cell->us[own], ours, cell->grids[own - OWN]);
    fflush(json);
}

/* Measures all sizes of one type and number of sources. Returns the number of wrong results. */
static int sweep(struct cell *cell, FILE *json)
{
    const struct bench_local *what = cell->what;
    int wrong = 0;

    for (size_t bytes = what->min_bytes; bytes <= what->max_bytes; bytes *= what->factor) {
        bool is_right;

        cell->bytes = bytes;
        choose_grids(cell);
        measure(cell);
        if (cell->nsrcs > 0)
            enqueue(cell, REDUCE);
        is_right = cell->nsrcs == 0 ||
                   bench_values_are_sum(cell->gpu, cell->type, cell->nsrcs, cell->sum, bytes);
        wrong += !is_right;
        report(cell, is_right, json);
    }
    return wrong;
}

static void print_columns(void)
{
    printf("#     type src        bytes  reduce/us     GB/s  grid  driver's copy/us, GB/s   our "
           "copy/us     GB/s  grid  reduce/driver's copy\n");
}

int bench_local(struct bench_gpu *gpu, const struct bench_local *what, FILE *json)
{
    uint32_t nsources = what->is_copy_only ? 1 : MOST_SOURCES;
    struct cell cell = {.gpu = gpu, .what = what, .type = TUTTI_FLOAT32, .type_name = "float32"};
    int wrong = 0;

    if (gpu->free_bytes / (nsources + 1) < what->max_bytes)
        bench_end("%u buffers of %zu bytes do not fit in the %zu that are free", nsources + 1,
                  what->max_bytes, gpu->free_bytes);
    for (uint32_t i = 0; i < nsources; i++)
        cell.sources[i] = bench_gpu_alloc(gpu, what->max_bytes);
    cell.sum = bench_gpu_alloc(gpu, what->max_bytes);
    print_columns();
    if (what->is_copy_only) {
        bench_values_fill(gpu, cell.type, 0, cell.sources[0], what->max_bytes);
        wrong = sweep(&cell, json);
    }
    for (size_t t = 0; !what->is_copy_only && t < sizeof(types) / sizeof(types[0]); t++) {
        cell.type = types[t].type;
        cell.type_name = types[t].name;
        for (uint32_t i = 0; i < nsources; i++)
            bench_values_fill(gpu, cell.type, i, cell.sources[i], what->max_bytes);
        for (size_t s = 0; s < sizeof(sources_of) / sizeof(sources_of[0]); s++) {
            cell.nsrcs = sources_of[s];
            wrong += sweep(&cell, json);
        }
    }
    for (uint32_t i = 0; i < nsources; i++)
        bench_gpu_free(gpu, cell.sources[i]);
    bench_gpu_free(gpu, cell.sum);
    return wrong;
}
