/* SPDX-License-Identifier: Apache-2.0
 * Measures the overlap of a call with computation, in rounds.
 *
 * Each round takes three measurements: the computation alone, the call alone, and the call while
 * the caller computes. They follow each other directly, so that all see the same machine state. The
 * computation is a chain of integer operations in registers, so it needs only cycles of its core.
 * It is made as long as the call. If one were much shorter than the other, a little overlap would
 * already hide it. */
#include "overlap.h"

#include "cpus.h"
#include "timing.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* The times of one round, as in struct perf_overlap. */
enum sample { COMPUTE, CALL, BOTH, BESIDE, ENQUEUE, SAMPLES };

/* Calibration measures the time of TRIAL_STEPS steps of computation, TRIALS times. */
enum { TRIAL_STEPS = 1 << 20, TRIALS = 9 };

struct run {
    struct perf_rank *rank;
    struct perf_field *field;
    int event_fd;   /* signaled when the stream has finished its calls */
    uint64_t steps; /* length of the computation; 0: this rank only makes the call */
};

/* Computes `steps` steps of a xorshift generator, whose result nobody needs. */
static void compute(uint64_t steps)
{
    uint64_t value = 88172645463325252u; /* any number but 0 */

    for (uint64_t i = 0; i < steps; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    __asm__ volatile("" : : "r"(value)); /* keeps the compiler from removing the loop */
}

static void enqueue(const struct run *run)
{
    const struct perf_rank *rank = run->rank;
    const struct perf_field *field = run->field;

    perf_must(rank, field->collective->name,
              field->collective->run(field->call, perf_field_send(field, 0),
                                     perf_field_recv(field, 0), rank->comm, rank->stream));
}

static void synchronize(const struct run *run)
{
    perf_must(run->rank, "tuttiStreamSynchronize", tuttiStreamSynchronize(run->rank->stream));
}

/* Waits for all ranks, and returns the time. */
static double start(const struct run *run)
{
    perf_must(run->rank, "tuttiBarrier", tuttiBarrier(run->rank->comm, NULL));
    return perf_now_us(false);
}

static double time_compute(const struct run *run)
{
    double begun = start(run);

    compute(run->steps);
    return perf_now_us(false) - begun;
}

/* Waits for the event, so that only the stream's thread runs the call. If the caller synchronized
 * at once, it could run the call itself, on the core that is meant to compute. */
static double time_call(const struct run *run)
{
    struct pollfd idle = {.fd = run->event_fd, .events = POLLIN};
    uint64_t count;
    double begun, time;

    while (poll(&idle, 1, 0) == 1 && read(idle.fd, &count, sizeof(count)) > 0)
        ; /* drains the events of earlier calls */
    begun = start(run);
    enqueue(run);
    while (poll(&idle, 1, -1) != 1)
        ; /* a signal interrupted the wait */
    time = perf_now_us(false) - begun;
    synchronize(run);
    return time;
}

/* Takes the measurements of one round. */
static void time_round(const struct run *run, double times[SAMPLES])
{
    double begun, enqueued, computed;

    times[COMPUTE] = time_compute(run);
    times[CALL] = time_call(run);
    begun = start(run);
    enqueue(run);
    enqueued = perf_now_us(false);
    compute(run->steps);
    computed = perf_now_us(false);
    synchronize(run);
    times[BOTH] = perf_now_us(false) - begun;
    /* Ranks that only call share CPUs with streams, so their times say nothing about computing. */
    times[BESIDE] = run->steps > 0 ? computed - enqueued : 0;
    times[ENQUEUE] = run->steps > 0 ? enqueued - begun : 0;
}

/* `all` holds `rounds` records of `width` times for each rank. Takes time `at` of the slowest rank
 * in each round, and returns the median of these over the rounds. `scratch` has room for `rounds`
 * times. */
static double combine(const double *all, size_t nranks, size_t rounds, size_t width, size_t at,
                      double *scratch)
{
    for (size_t round = 0; round < rounds; round++) {
        scratch[round] = 0;
        for (size_t rank = 0; rank < nranks; rank++) {
            double time = all[(rank * rounds + round) * width + at];

            scratch[round] = time > scratch[round] ? time : scratch[round];
        }
    }
    return perf_stats_of(scratch, rounds).median;
}

/* Sets run->steps so that the computation takes as long as the call. All ranks that compute are
 * measured at the same time, because they slow each other down. */
static void calibrate(struct run *run, double *all)
{
    bool computes = perf_cpus_computes(&run->rank->options->cpus, run->rank->rank);
    double times[TRIALS], call_us, steps_us;

    for (int i = 0; i < TRIALS; i++)
        times[i] = time_call(run);
    perf_exchange(run->rank, times, sizeof(times), all);
    call_us = combine(all, (size_t)run->rank->nranks, TRIALS, 1, 0, times);
    run->steps = computes ? TRIAL_STEPS : 0;
    for (int i = 0; i < TRIALS; i++)
        times[i] = time_compute(run);
    steps_us = perf_stats_of(times, TRIALS).median;
    run->steps = computes ? (uint64_t)(call_us / steps_us * TRIAL_STEPS) + 1 : 0;
}

void perf_overlap_measure(struct perf_rank *rank, struct perf_field *field,
                          struct perf_overlap *ret_overlap, uint64_t *wrong, uint64_t *overruns)
{
    size_t nranks = (size_t)rank->nranks, rounds = (size_t)rank->options->iterations;
    size_t most = rounds * SAMPLES > TRIALS ? rounds * SAMPLES : TRIALS;
    double *mine = malloc(most * (nranks + 1) * sizeof(double)), *all = mine + most;
    struct run run = {.rank = rank, .field = field};
    struct perf_overlap overlap;
    double shorter;

    if (mine == NULL)
        perf_die(rank, "no memory for %zu rounds of %zu ranks", rounds, nranks);
    perf_must(rank, "tuttiStreamEventFd", tuttiStreamEventFd(rank->stream, &run.event_fd));
    perf_field_fill(field, rank->phase++);
    calibrate(&run, all);
    for (size_t round = 0; round < rounds; round++)
        time_round(&run, mine + round * SAMPLES);
    perf_exchange(rank, mine, rounds * SAMPLES * sizeof(double), all);
    overlap = (struct perf_overlap){
        .compute_us = combine(all, nranks, rounds, SAMPLES, COMPUTE, mine),
        .call_us = combine(all, nranks, rounds, SAMPLES, CALL, mine),
        .both_us = combine(all, nranks, rounds, SAMPLES, BOTH, mine),
        .beside_us = combine(all, nranks, rounds, SAMPLES, BESIDE, mine),
        .enqueue_us = combine(all, nranks, rounds, SAMPLES, ENQUEUE, mine),
    };
    shorter = overlap.compute_us < overlap.call_us ? overlap.compute_us : overlap.call_us;
    overlap.percent =
        (overlap.compute_us + overlap.call_us - overlap.both_us) / shorter * 100;
    free(mine);
    if (rank->options->checks > 0) {
        perf_field_fetch(field);
        *wrong += perf_field_wrong(field, 0, 1);
        *overruns += perf_field_overruns(field);
    }
    *ret_overlap = overlap;
}
