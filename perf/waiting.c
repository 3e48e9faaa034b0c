/* SPDX-License-Identifier: Apache-2.0
 * Measures the CPU time of ranks that have nothing to do, and of ranks that wait for another
 * rank. */
#include "waiting.h"

#include "timing.h"

#include <stdlib.h>
#include <time.h>

static void barrier(const struct perf_rank *rank, tuttiStream_t stream)
{
    perf_must(rank, "tuttiBarrier", tuttiBarrier(rank->comm, stream));
    if (stream != NULL)
        perf_must(rank, "tuttiStreamSynchronize", tuttiStreamSynchronize(stream));
}

/* Sleeps for the time of --waiting. */
static void rest(const struct perf_rank *rank)
{
    int ms = rank->options->waiting_ms;

    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Returns the CPU use of the rank that uses most, in percent of a core. `all` is scratch with one
 * entry per rank. Rank 0 arrives late at a
 * barrier on `stream`, and the time lasts until the barrier is complete. With `all_rest`, there is
 * no barrier, and all ranks sleep for the same time instead. */
static double watch(struct perf_rank *rank, tuttiStream_t stream, bool all_rest, double *all)
{
    double elapsed, used, share, largest = 0;

    barrier(rank, NULL);
    elapsed = perf_now_us(false);
    used = perf_now_us(true);
    if (all_rest || rank->rank == 0)
        rest(rank);
    if (!all_rest)
        barrier(rank, stream);
    used = perf_now_us(true) - used;
    elapsed = perf_now_us(false) - elapsed;
    share = used / elapsed / rank->options->threads * 100;
    perf_exchange(rank, &share, sizeof(share), all);
    for (int i = 0; i < rank->nranks; i++)
        largest = all[i] > largest ? all[i] : largest;
    return largest;
}

void perf_waiting_measure(struct perf_rank *rank, struct perf_waiting *ret_waiting)
{
    double *all = malloc((size_t)rank->nranks * sizeof(*all));
    tuttiStream_t stream;

    if (all == NULL)
        perf_die(rank, "no memory for the times of %d ranks", rank->nranks);
    perf_must(rank, "tuttiHostStreamCreate", tuttiHostStreamCreate(&stream));
    barrier(rank, stream); /* warms up: the first use of a stream creates connections and threads */
    ret_waiting->idle = watch(rank, stream, true, all);
    ret_waiting->blocked = watch(rank, NULL, false, all);
    ret_waiting->on_stream = watch(rank, stream, false, all);
    perf_must(rank, "tuttiHostStreamDestroy", tuttiHostStreamDestroy(stream));
    free(all);
}
