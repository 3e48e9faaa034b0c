/* SPDX-License-Identifier: Apache-2.0
 * Measures the time that no library can undercut over shared memory: limit DIRECTORY PROCESS
 * NPROCESSES NRANKS.
 *
 * There is one process on each CPU. All processes map the buffers of all ranks. They move the
 * bytes that an operation must read and write, without synchronization. Operations start by the
 * clock (sync.h), and a process that has moved its share is done. There are several ways to divide
 * the work and to store, and the fastest is the limit. Variant "line" moves only one cache line
 * each way. */
#include "arena.h"
#include "driver.h"
#include "mover.h"

#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SWITCHES 4000

/* How processes divide the work. With BY_OUTPUT each process fills the outputs of its ranks. With
 * BY_INPUT it reads the inputs of its ranks (for sums, its slice of all inputs) and stores into all
 * outputs. */
enum sharing { BY_OUTPUT, BY_INPUT, SHARINGS };

struct line {
    alignas(128) _Atomic uint64_t number; /* of the process's last exchange of lines */
};

static struct line *lines; /* one per process */
static struct bench_arena arena;
static size_t buffers_taken; /* by allocate(): 0 to 2 */
static int process, nprocesses, nranks;
static uint64_t current; /* the number of this exchange of lines */

/* The selected variant. */
static bool is_line;
static enum sharing sharing;
static enum mover_style style;

static void *at_rank(const void *own, int rank)
{
    ptrdiff_t offset = (const char *)own - bench_arena_of(&arena, process);

    return bench_arena_of(&arena, rank) + offset;
}

static bool select_variant(const char *name)
{
    static const char *const sharings[SHARINGS] = {"output", "input"};
    static const char *const styles[MOVER_STYLES] = {"plain", "streaming", "strings"};
    const char *second = strchr(name, '-');

    is_line = strcmp(name, "line") == 0;
    if (is_line)
        return true;
    if (second == NULL)
        return false;
    for (int i = 0; i < SHARINGS; i++)
        for (int k = 0; k < MOVER_STYLES; k++)
            if (strncmp(name, sharings[i], (size_t)(second - name)) == 0 &&
                strcmp(second + 1, styles[k]) == 0) {
                sharing = (enum sharing)i;
                style = (enum mover_style)k;
                return true;
            }
    return false;
}

/* ---- one line each way ---- */

static void await(int peer)
{
    /* acquire: pairs with the release in exchange_lines */
    while (atomic_load_explicit(&lines[peer].number, memory_order_acquire) < current)
        bench_relax();
}

/* Stores this process's line, and waits for the lines of the processes whose data the collective
 * gives to this one. */
static void exchange_lines(enum bench_collective collective)
{
    bool root_gives = collective == BENCH_BROADCAST || collective == BENCH_SCATTERV;
    bool root_takes = collective == BENCH_REDUCE || collective == BENCH_GATHERV;
    int end = bench_is_scan(collective) ? process : nprocesses;

    current++;
    /* release: pairs with the acquire in await */
    atomic_store_explicit(&lines[process].number, current, memory_order_release);
    if (root_gives ? process == 0 : root_takes && process != 0)
        return;
    if (root_gives) {
        await(0);
        return;
    }
    for (int peer = 0; peer < end; peer++)
        await(peer);
}

/* ---- moving ---- */

/* Sums `count` elements at offset `from` of the inputs of `nsources` ranks, from rank `source` on.
 * Stores the sum at offset `to` of the outputs of `ndests` ranks, from rank `dest` on. With one
 * source it copies. */
static void move(const struct bench_operation *op, int source, int nsources, size_t from, int dest,
                 int ndests, size_t to, size_t count)
{
    const float *own = op->collective == BENCH_BROADCAST ? op->recv : op->send;
    const float *sources[BENCH_RANKS_MAX];
    float *dests[BENCH_RANKS_MAX];

    for (int k = 0; k < nsources; k++)
        sources[k] = (const float *)at_rank(own, source + k) + from;
    for (int k = 0; k < ndests; k++)
        dests[k] = (float *)at_rank(op->recv, dest + k) + to;
    if (!mover_move(style, sources, nsources, dests, ndests, count))
        bench_die("style %d does not move %d sources", (int)style, nsources);
}

/* Moves all data that `rank` must get. */
static void fill_output(const struct bench_operation *op, int rank)
{
    size_t part = op->part, own = (size_t)rank * part;

    switch (op->collective) {
    case BENCH_ALLREDUCE: move(op, 0, nranks, 0, rank, 1, 0, op->count); break;
    case BENCH_REDUCE_SCATTER: move(op, 0, nranks, own, rank, 1, 0, part); break;
    case BENCH_ALLGATHER:
        for (int peer = 0; peer < nranks; peer++)
            move(op, peer, 1, 0, rank, 1, (size_t)peer * part, part);
        break;
    case BENCH_ALLTOALL:
        for (int peer = 0; peer < nranks; peer++)
            move(op, peer, 1, own, rank, 1, (size_t)peer * part, part);
        break;
    case BENCH_SENDRECV: move(op, (rank + nranks - 1) % nranks, 1, 0, rank, 1, 0, op->count); break;
    case BENCH_BROADCAST:
        if (rank != 0)
            move(op, 0, 1, 0, rank, 1, 0, op->count);
        break;
    case BENCH_REDUCE:
        if (rank == 0)
            move(op, 0, nranks, 0, 0, 1, 0, op->count);
        break;
    case BENCH_GATHERV:
        for (int peer = 0; peer < nranks && rank == 0; peer++)
            move(op, peer, 1, 0, 0, 1, op->blocks.first[peer], op->blocks.count[peer]);
        break;
    case BENCH_SCATTERV:
        move(op, 0, 1, op->blocks.first[rank], rank, 1, 0, op->blocks.count[rank]);
        break;
    default: break;
    }
}

/* Moves all data that `rank` gives. */
static void spread_input(const struct bench_operation *op, int rank)
{
    size_t part = op->part, own = (size_t)rank * part;

    switch (op->collective) {
    case BENCH_ALLGATHER: move(op, rank, 1, 0, 0, nranks, own, part); break;
    case BENCH_ALLTOALL:
        for (int peer = 0; peer < nranks; peer++)
            move(op, rank, 1, (size_t)peer * part, peer, 1, own, part);
        break;
    case BENCH_SENDRECV: move(op, rank, 1, 0, (rank + 1) % nranks, 1, 0, op->count); break;
    case BENCH_GATHERV:
        move(op, rank, 1, 0, 0, 1, op->blocks.first[rank], op->blocks.count[rank]);
        break;
    case BENCH_SCATTERV:
        for (int peer = 0; peer < nranks && rank == 0; peer++)
            move(op, 0, 1, op->blocks.first[peer], peer, 1, 0, op->blocks.count[peer]);
        break;
    default: break;
    }
}

/* Moves this process's slice, in whole cache lines, of a vector that comes from or goes to all
 * ranks. */
static void share_slice(const struct bench_operation *op)
{
    size_t share = op->count / (size_t)nprocesses / 16 * 16, start = share * (size_t)process;
    size_t count = process == nprocesses - 1 ? op->count - start : share;

    if (op->collective == BENCH_ALLREDUCE)
        move(op, 0, nranks, start, 0, nranks, start, count);
    else if (op->collective == BENCH_REDUCE)
        move(op, 0, nranks, start, 0, 1, start, count);
    else
        move(op, 0, 1, start, 1, nranks - 1, start, count);
}

static void run(const struct bench_operation *op)
{
    bool is_sliced = op->collective == BENCH_ALLREDUCE || op->collective == BENCH_REDUCE ||
                     op->collective == BENCH_BROADCAST;

    if (is_line || op->collective == BENCH_BARRIER) {
        exchange_lines(op->collective);
        return;
    }
    if (sharing == BY_INPUT && is_sliced)
        share_slice(op);
    else
        for (int rank = process; rank < nranks; rank += nprocesses) {
            if (sharing == BY_OUTPUT)
                fill_output(op, rank);
            else
                spread_input(op, rank);
        }
    /* seq_cst: pairs with nothing; the operation is over only when other cores see its stores */
    atomic_thread_fence(memory_order_seq_cst);
}

/* True if this variant measures the operation. It leaves out operations that it cannot do, or that
 * another variant does in the same way. */
static bool has(enum bench_collective collective)
{
    bool is_sum = collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE ||
                  collective == BENCH_REDUCE_SCATTER;

    if (is_line || collective == BENCH_BARRIER)
        return true;
    if (bench_is_scan(collective))
        return false;
    if (collective == BENCH_REDUCE_SCATTER && sharing == BY_INPUT)
        return false;
    return !(is_sum && style == MOVER_STRINGS);
}

/* ---- switching ---- */

/* Repeats: yields until *turn is `me`, and passes the turn to the other process. */
static void take_turns(_Atomic int *turn, int me)
{
    for (int i = 0; i < SWITCHES / 2; i++) {
        /* relaxed: both processes run on one CPU, and only the turn is passed */
        while (atomic_load_explicit(turn, memory_order_relaxed) != me)
            sched_yield();
        atomic_store_explicit(turn, 1 - me, memory_order_relaxed);
    }
}

/* Measures two processes on this CPU, each of which waits for the other. */
static double measure_switch(void)
{
    _Atomic int *turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t start_ns;
    double elapsed_ns;
    pid_t child;

    if (turn == MAP_FAILED || (child = fork()) < 0)
        bench_die("cannot start a second process: %s", strerror(errno));
    if (child == 0) {
        take_turns(turn, 1);
        _exit(EXIT_SUCCESS);
    }
    start_ns = bench_now_ns();
    take_turns(turn, 0);
    elapsed_ns = (double)(bench_now_ns() - start_ns);
    waitpid(child, NULL, 0);
    munmap(turn, 4096);
    return elapsed_ns / SWITCHES;
}

/* ---- memory ---- */

/* The first call returns the send buffer of this process's own rank, and fills those of its other
 * ranks. The second call does the same for the receive buffers. */
static void *allocate(size_t size_bytes)
{
    char *own = bench_arena_of(&arena, process) + buffers_taken++ * arena.buffer_bytes;

    if (size_bytes > arena.buffer_bytes || buffers_taken > 2)
        bench_die("there are two buffers of %zu bytes, not of %zu", arena.buffer_bytes, size_bytes);
    for (int rank = process + nprocesses; rank < nranks; rank += nprocesses)
        memset(at_rank(own, rank), BENCH_FILL, size_bytes);
    return own;
}

int main(int argc, char **argv)
{
    struct bench_library library = {.has = has, .run = run, .allocate = allocate,
                                    .select = select_variant, .at_rank = at_rank,
                                    .waits_for_nobody = true, .measure_switch = measure_switch};

    if (argc != 5)
        bench_die("usage: limit DIRECTORY PROCESS NPROCESSES NRANKS");
    process = library.rank = atoi(argv[2]);
    nprocesses = library.nprocesses = atoi(argv[3]);
    nranks = library.nranks = atoi(argv[4]);
    if (nranks < 2 || nranks > BENCH_RANKS_MAX || nprocesses < 1 || nprocesses > nranks)
        bench_die("there must be 2 to %d ranks and as many processes at most, not %d and %d",
                  BENCH_RANKS_MAX, nranks, nprocesses);
    bench_pin(process);
    arena = bench_arena_join(argv[1], (size_t)nprocesses * sizeof(struct line), nranks, process,
                             nprocesses);
    lines = arena.head;
    bench_serve(&library, argv[1]);
    return EXIT_SUCCESS;
}
