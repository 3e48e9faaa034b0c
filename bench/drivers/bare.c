/* SPDX-License-Identifier: Apache-2.0
 * Measures the machine without a library: bare DIRECTORY RANK NRANKS. It does the same operations
 * in plain loops over memory that all ranks map, with one flag per rank. It has nothing that a
 * library must have: no checks of arguments, errors, deadlines, sleeping or choice. Its time is
 * not the least possible one, but a reference for each cell. */
#include "arena.h"
#include "driver.h"

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to LINE_FLOATS elements travel in the cache line of the flag. Up to STAGE_FLOATS elements are
 * copied to a stage first, which saves the second rendezvous. With more elements, peers read each
 * other's buffers. */
#define LINE_FLOATS 8
#define STAGE_FLOATS (16 * 1024)

/* Operation k uses line and stage k % 2, and may do so when all ranks have finished operation
 * k - 2. */
struct line {
    alignas(128) _Atomic uint64_t number; /* of the operation whose data is there */
    float payload[LINE_FLOATS];
};

/* What a rank shows the others. */
struct place {
    struct line lines[2];
    alignas(128) _Atomic uint64_t finished; /* the number of the last operation that it finished */
    alignas(4096) float stages[2][STAGE_FLOATS];
};

static struct place *places; /* one for each rank */
static int rank, nranks;
static bool is_crowded;
static struct bench_arena arena;
static size_t buffers_taken; /* by allocate(): 0 to 2 */
/* The number of this operation, and of the last one that all ranks are known to have finished. */
static uint64_t current, all_finished;

static void wait_for(const _Atomic uint64_t *number, uint64_t least)
{
    /* acquire: pairs with the release in publish and finish; the payload can be read after it */
    while (atomic_load_explicit(number, memory_order_acquire) < least)
        if (is_crowded)
            sched_yield();
        else
            bench_relax();
}

static struct line *line_of(int peer)
{
    return &places[peer].lines[current % 2];
}

/* Start the next operation when no rank still reads the memory that this rank will overwrite. A
 * wait is needed only after broadcasts, in which the root does not wait. */
static void begin(void)
{
    current++;
    if (all_finished + 2 >= current)
        return;
    for (int peer = 0; peer < nranks; peer++)
        wait_for(&places[peer].finished, current - 2);
    all_finished = current - 2;
}

static void publish(void)
{
    /* release: pairs with the acquire in wait_for, publishes payload, stage and buffers */
    atomic_store_explicit(&line_of(rank)->number, current, memory_order_release);
}

/* A rank that publishes operation k has finished operation k - 1. */
static void await_all(void)
{
    for (int peer = 0; peer < nranks; peer++)
        wait_for(&line_of(peer)->number, current);
    all_finished = current - 1;
}

static void finish(void)
{
    /* release: pairs with the acquire in wait_for; publishes results, and comes after all loads */
    atomic_store_explicit(&places[rank].finished, current, memory_order_release);
}

/* The second rendezvous of an operation that reads the peers' buffers or writes into them. */
static void await_all_finished(void)
{
    for (int peer = 0; peer < nranks; peer++)
        wait_for(&places[peer].finished, current);
    all_finished = current;
}

/* Returns the address at which the peer has the data that this rank has at `own`. */
static float *at_peer(const float *own, int peer)
{
    ptrdiff_t offset = (const char *)own - bench_arena_of(&arena, rank);

    return (float *)(void *)(bench_arena_of(&arena, peer) + offset);
}

/* out[i] = the sum of sources[r][i] over all ranks, in their order. */
static void sum(float *restrict out, const float *const *sources, size_t count)
{
    const float *restrict first = sources[0], *restrict second = sources[1 % nranks];

    for (size_t i = 0; i < count; i++)
        out[i] = first[i] + second[i];
    for (int peer = 2; peer < nranks; peer++)
        for (size_t i = 0; i < count; i++)
            out[i] += sources[peer][i];
}

/* Computes this rank's output from the inputs of all ranks. `inputs` may be changed. */
static void combine(const struct bench_operation *op, const float **inputs)
{
    size_t part = op->part, shift = (size_t)rank * part;

    switch (op->collective) {
    case BENCH_ALLREDUCE: sum(op->recv, inputs, op->count); break;
    case BENCH_REDUCE:
        if (rank == 0)
            sum(op->recv, inputs, op->count);
        break;
    case BENCH_REDUCE_SCATTER:
        for (int peer = 0; peer < nranks; peer++)
            inputs[peer] += shift;
        sum(op->recv, inputs, part);
        break;
    case BENCH_ALLGATHER:
        for (int peer = 0; peer < nranks; peer++)
            memcpy(op->recv + (size_t)peer * part, inputs[peer], part * sizeof(float));
        break;
    case BENCH_ALLTOALL:
        for (int peer = 0; peer < nranks; peer++)
            memcpy(op->recv + (size_t)peer * part, inputs[peer] + shift, part * sizeof(float));
        break;
    case BENCH_BROADCAST:
        if (rank != 0)
            memcpy(op->recv, inputs[0], op->count * sizeof(float));
        break;
    case BENCH_SENDRECV:
        memcpy(op->recv, inputs[(rank + nranks - 1) % nranks], op->count * sizeof(float));
        break;
    default: break;
    }
}

/* All-reduces a large vector: each rank sums its share and stores the sum at all ranks. */
static void sum_shares(const struct bench_operation *op)
{
    size_t share = (op->count / (size_t)nranks) & ~(size_t)15, start = share * (size_t)rank;
    size_t length = rank == nranks - 1 ? op->count - start : share, block = 4096;
    const float *inputs[64];

    for (size_t at = start; at < start + length; at += block) {
        size_t count = start + length - at < block ? start + length - at : block;

        for (int peer = 0; peer < nranks; peer++)
            inputs[peer] = at_peer(op->send, peer) + at;
        sum(op->recv + at, inputs, count);
        for (int peer = 0; peer < nranks; peer++)
            if (peer != rank)
                memcpy(at_peer(op->recv, peer) + at, op->recv + at, count * sizeof(float));
    }
}

static void run(const struct bench_operation *op)
{
    bool is_broadcast = op->collective == BENCH_BROADCAST;
    const float *inputs[64], *own = is_broadcast ? op->recv : op->send;
    size_t count = op->collective == BENCH_ALLGATHER ? op->part : op->count;
    bool is_staged = count <= STAGE_FLOATS, is_tiny = count <= LINE_FLOATS;

    begin();
    for (int peer = 0; peer < nranks; peer++)
        inputs[peer] = !is_staged ? at_peer(own, peer) :
                       is_tiny ? line_of(peer)->payload :
                       places[peer].stages[current % 2];
    if (is_staged && op->collective != BENCH_BARRIER && (!is_broadcast || rank == 0))
        memcpy(is_tiny ? line_of(rank)->payload : places[rank].stages[current % 2], own,
               count * sizeof(float));
    publish();
    if (is_staged && is_broadcast)
        wait_for(&line_of(0)->number, current);
    else
        await_all();
    if (!is_staged && op->collective == BENCH_ALLREDUCE)
        sum_shares(op);
    else
        combine(op, inputs);
    finish();
    if (!is_staged)
        await_all_finished();
}

static bool has(enum bench_collective collective)
{
    return !bench_is_uneven(collective) && !bench_is_scan(collective);
}

/* The first call returns this rank's send buffer, and the second its receive buffer. */
static void *allocate(size_t size_bytes)
{
    if (size_bytes != arena.buffer_bytes || buffers_taken == 2)
        bench_die("there are two buffers of %zu bytes, not of %zu", arena.buffer_bytes, size_bytes);
    return bench_arena_of(&arena, rank) + buffers_taken++ * arena.buffer_bytes;
}

int main(int argc, char **argv)
{
    struct bench_library library = {.version = "", .has = has, .run = run, .allocate = allocate};

    if (argc != 4)
        bench_die("usage: bare DIRECTORY RANK NRANKS");
    rank = library.rank = atoi(argv[2]);
    nranks = library.nranks = atoi(argv[3]);
    if (nranks < 2 || nranks > 64)
        bench_die("there must be 2 to 64 ranks, not %d", nranks);
    bench_pin(rank);
    is_crowded = bench_is_crowded();
    arena = bench_arena_join(argv[1], (size_t)nranks * sizeof(struct place), nranks, rank, nranks);
    places = arena.head;
    bench_serve(&library, argv[1]);
    return EXIT_SUCCESS;
}
