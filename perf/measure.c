/* SPDX-License-Identifier: Apache-2.0
 * Measures the time of one case on one rank, and checks the results of the timed calls.
 *
 * Time is taken over blocks of iterations. A rank's time is the median of its blocks, which a
 * single disturbance cannot move. Messages up to SMALL_BYTES get the full `-n` iterations in each
 * block, because a short block would mostly measure how ranks leave the barrier. For larger
 * messages the blocks share the `-n` iterations.
 *
 * Some operations give the same result when they run again on that result. Their timed calls can
 * share a region, and one check at the end is enough. In-place sums and exchanges are different, so
 * each of their calls gets its own region. A batch has at most as many regions as fit into
 * POOL_BYTES. They are filled before the clock starts, and checked after the clock stops. The time
 * of a block is then the sum of the times of its batches.
 *
 * With --graph, one iteration is one replay of a graph of many operations. If each operation needs
 * its own region, a batch is one replay. */
#include "measure.h"

#include <stdlib.h>

#define BLOCKS      10          /* the most blocks of a case */
#define SMALL_BYTES (64u << 10) /* cases up to this size get all iterations in each block */
#define POOL_BYTES  (1u << 20)  /* memory for the regions of a batch */

/* The state of one call of perf_measure. */
struct run {
    struct perf_rank *rank;
    struct perf_field *field;
    void *graph;  /* of --graph (perf_gpu_capture_end); NULL: none */
    size_t batch; /* iterations between fillings; 0: fill only once */
    double *samples; /* times of single iterations, per operation, in microseconds */
    size_t nsamples, capacity;
    struct perf_result result;
};

/* True if the result stays the same when the call runs again on the same region. In place, that is
 * so for a maximum or minimum if each rank combines its own input, too. */
static bool repeats(const struct perf_field *field)
{
    int (*summands)(int rank) = field->collective->summands;
    int rank = field->call->rank;

    return !field->is_in_place || field->collective->repeats_in_place ||
           ((field->call->op == PERF_MAX || field->call->op == PERF_MIN) &&
            (summands == NULL || summands(rank) > rank));
}

/* Returns the number of iterations of block number `block` of a case of `bytes` bytes. */
static int block_iterations(const struct perf_options *options, size_t bytes, int block)
{
    if (bytes <= SMALL_BYTES)
        return options->iterations;
    return options->iterations / BLOCKS + (block < options->iterations % BLOCKS ? 1 : 0);
}

static int block_count(const struct perf_options *options, size_t bytes)
{
    return bytes <= SMALL_BYTES || options->iterations > BLOCKS ? BLOCKS : options->iterations;
}

/* Returns the number of operations in one iteration: a group, a graph, or a graph of groups. */
static size_t per_iteration(const struct perf_options *options)
{
    return (size_t)options->aggregate * (options->graph > 0 ? (size_t)options->graph : 1);
}

void perf_measure_plan(const struct perf_options *options, struct perf_field *field)
{
    size_t most = (size_t)block_iterations(options, field->call->bytes, 0);
    size_t batch; /* number of iterations whose regions fit into POOL_BYTES, at most `most` */

    field->nregions = (size_t)options->aggregate;
    if (repeats(field))
        return;
    batch = POOL_BYTES / perf_field_output_need(field);
    batch = batch > most ? most : batch;
    field->nregions = options->graph > 0 ? per_iteration(options)
                                         : field->nregions * (batch == 0 ? 1 : batch);
}

/* Makes the number of calls that `-m` gives. If there are several, they form a group. Each
 * iteration uses the regions after those of the iteration before, and starts over after the last
 * region. */
static void call(struct run *run, size_t iteration)
{
    const struct perf_rank *rank = run->rank;
    const struct perf_field *field = run->field;
    size_t aggregate = (size_t)rank->options->aggregate;

    if (aggregate > 1)
        perf_must(rank, "tuttiGroupStart", tuttiGroupStart());
    for (size_t i = 0; i < aggregate; i++) {
        size_t region = (iteration * aggregate + i) % field->nregions;

        perf_must(rank, field->collective->name,
                  field->collective->run(field->call, perf_field_send(field, region),
                                         perf_field_recv(field, region), rank->comm, rank->stream));
    }
    if (aggregate > 1)
        perf_must(rank, "tuttiGroupEnd", tuttiGroupEnd());
}

static void call_times(struct run *run, int times)
{
    for (int i = 0; i < times; i++)
        call(run, (size_t)i);
}

/* Starts one iteration. It may not be complete when this returns. */
static void launch(struct run *run, size_t iteration)
{
    if (run->graph != NULL)
        perf_gpu_replay(&run->rank->gpu, run->graph);
    else
        call(run, iteration);
}

/* Captures the graph of `--graph`. The operations run once before the capture, so that everything
 * that they create at their first use exists. */
static void capture(struct run *run)
{
    const struct perf_gpu *gpu = &run->rank->gpu;
    int times = run->rank->options->graph;

    call_times(run, times);
    perf_synchronize(run->rank);
    perf_gpu_capture_begin(gpu);
    call_times(run, times);
    run->graph = perf_gpu_capture_end(gpu);
}

static void barrier(const struct perf_rank *rank)
{
    perf_must(rank, "tuttiBarrier", tuttiBarrier(rank->comm, NULL));
}

/* Runs `iterations` iterations. All ranks start together, after a barrier. Returns the elapsed time
 * or the CPU time in microseconds, without the barriers of PERF_SYNC_OUTER. */
static double time_batch(struct run *run, size_t iterations)
{
    const struct perf_options *options = run->rank->options;
    bool is_cpu_time = options->show_cpu_time;
    double elapsed = 0, start, before;

    barrier(run->rank);
    start = before = perf_now_us(is_cpu_time);
    for (size_t i = 0; i < iterations; i++) {
        launch(run, i);
        if (options->sync != PERF_SYNC_END || options->show_samples)
            perf_synchronize(run->rank);
        if (options->sync == PERF_SYNC_BARRIER)
            barrier(run->rank);
        if (options->show_samples || options->sync == PERF_SYNC_OUTER) {
            double now = perf_now_us(is_cpu_time);

            if (options->show_samples && run->nsamples < run->capacity)
                run->samples[run->nsamples++] = (now - before) / (double)per_iteration(options);
            if (options->sync == PERF_SYNC_OUTER) {
                elapsed += now - start;
                barrier(run->rank);
                now = start = perf_now_us(is_cpu_time);
            }
            before = now;
        }
    }
    perf_synchronize(run->rank);
    if (options->sync == PERF_SYNC_OUTER)
        return elapsed;
    return perf_now_us(is_cpu_time) - start;
}

/* Fills all buffers with fresh data. */
static void fill(struct run *run)
{
    perf_field_fill(run->field, run->rank->phase++);
}

/* Checks the regions that the last `iterations` iterations have used. Does nothing if the user has
 * turned checks off. */
static void verify(struct run *run, size_t iterations)
{
    size_t used = iterations * per_iteration(run->rank->options);

    if (run->rank->options->checks == 0)
        return;
    used = used > run->field->nregions ? run->field->nregions : used;
    perf_field_fetch(run->field);
    run->result.wrong += perf_field_wrong(run->field, 0, used);
    run->result.overruns += perf_field_overruns(run->field);
}

/* Returns the time of a block of iterations in microseconds, without the times of filling and
 * checking. */
static double time_block(struct run *run, size_t iterations)
{
    double elapsed = 0;

    if (run->batch == 0)
        return time_batch(run, iterations);
    for (size_t done = 0; done < iterations; done += run->batch) {
        size_t now = iterations - done < run->batch ? iterations - done : run->batch;

        fill(run);
        elapsed += time_batch(run, now);
        verify(run, now);
    }
    return elapsed;
}

/* Captures the graph of `--graph`, if there is one. Then runs the `-c` iterations that are checked,
 * each on fresh data, and after these the `-w` iterations that warm up. */
static void check_and_warm(struct run *run)
{
    const struct perf_options *options = run->rank->options;

    if (options->graph > 0) {
        fill(run);
        capture(run);
    }
    for (int i = 0; i < options->checks; i++) {
        fill(run);
        launch(run, 0);
        perf_synchronize(run->rank);
        verify(run, 1);
    }
    fill(run);
    for (int i = 0; i < options->warmups; i++) {
        if (run->batch != 0 && i > 0)
            fill(run);
        launch(run, 0);
        perf_synchronize(run->rank);
    }
    fill(run);
}

/* Ranks with smaller outputs have room for more regions, but batches end with a barrier. So all
 * ranks use the batch of the rank with the largest output. */
static size_t least_of_all_ranks(struct perf_rank *rank, size_t own)
{
    size_t *all = calloc((size_t)rank->nranks, sizeof *all);
    size_t least = own;

    if (all == NULL)
        perf_die(rank, "no memory for the batches of %d ranks", rank->nranks);
    perf_exchange(rank, &own, sizeof own, all);
    for (int peer = 0; peer < rank->nranks; peer++)
        least = all[peer] < least ? all[peer] : least;
    free(all);
    return least;
}

void perf_measure(struct perf_rank *rank, struct perf_field *field,
                  void (*progress)(const struct perf_rank *rank, const struct perf_field *field,
                                   int block, int nblocks),
                  struct perf_result *ret_result)
{
    const struct perf_options *options = rank->options;
    int nblocks = block_count(options, field->call->bytes);
    /* CPU time is that of the process, so it is divided among the process's ranks. */
    int sharers = options->show_cpu_time ? options->threads : 1;
    size_t skip = (size_t)options->skip_samples;
    struct run run = {.rank = rank, .field = field};
    double blocks[BLOCKS];

    if (!repeats(field))
        run.batch = least_of_all_ranks(rank, field->nregions / per_iteration(options));
    run.capacity = options->show_samples ? (size_t)options->iterations * BLOCKS : 0;
    run.samples = malloc((run.capacity + 1) * sizeof(double));
    if (run.samples == NULL)
        perf_die(rank, "no memory for %zu samples", run.capacity);

    check_and_warm(&run);
    for (int block = 0; block < nblocks; block++) {
        int iterations = block_iterations(options, field->call->bytes, block);

        progress(rank, field, block, nblocks);
        blocks[block] = time_block(&run, (size_t)iterations) /
                        ((double)iterations * (double)per_iteration(options) * sharers);
    }
    if (run.batch == 0)
        verify(&run, (size_t)options->iterations);

    run.result.blocks = perf_stats_of(blocks, (size_t)nblocks);
    skip = skip < run.nsamples ? skip : run.nsamples;
    run.result.samples = perf_stats_of(run.samples + skip, run.nsamples - skip);
    if (run.graph != NULL)
        perf_gpu_graph_free(&rank->gpu, run.graph);
    free(run.samples);
    *ret_result = run.result;
}
