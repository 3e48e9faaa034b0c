/* SPDX-License-Identifier: Apache-2.0
 * Measures the time that no library can undercut over shared memory: limit DIRECTORY PROCESS
 * NPROCESSES NRANKS.
 *
 * There is one process on each CPU. Process p serves each rank r with r % NPROCESSES == p. All
 * processes map the buffers of all ranks. They move the bytes that an operation must read and
 * write, without synchronization. Operations start by the clock (sync.h), and a process that has
 * moved its share is done. There are several ways to divide the work and to store, and the fastest
 * is the limit. A variant combines one of each, and is named like "output-plain" or
 * "input-streaming". Variant "line" moves only one cache line each way between two processes, which
 * is the limit for the smallest operations. A barrier does the same in every variant. */
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

enum {
    SWITCHES = 4000,  /* switches between two processes that measure_switch times; an even number */
    LINE_FLOATS = 16, /* floats in a cache line */
    PAGE_BYTES = 4096,
};

/* How processes divide the work. With BY_OUTPUT each process fills the outputs of its ranks. With
 * BY_INPUT it reads the inputs of its ranks and stores into all outputs. For all-reduce, reduce and
 * broadcast, BY_INPUT means that each process moves one slice of the vector (share_slice). */
enum sharing { BY_OUTPUT, BY_INPUT, SHARINGS /* their number */ };

/* The line that a process stores and the other processes load. Two cache lines, because some
 * processors load them in pairs. */
struct line {
    alignas(128) _Atomic uint64_t number; /* of the process's last exchange of lines */
};

static struct line *lines; /* [nprocesses] in shared memory */
static struct bench_arena arena;
static size_t buffers_taken; /* by allocate(): 0 to 2 */
static int process, nprocesses, nranks;
static uint64_t current; /* the number of this process's last exchange of lines */

/* The selected variant. `sharing` and `style` have no meaning if `is_line` is true. */
static bool is_line;
static enum sharing sharing;
static enum mover_style style;

/* Returns the address at which `rank` has the data that this process's own rank has at `own`. */
static void *at_rank(const void *own, int rank)
{
    ptrdiff_t offset = (const char *)own - bench_arena_of(&arena, process);

    return bench_arena_of(&arena, rank) + offset;
}

/* Selects the variant "line" or "SHARING-STYLE". Returns false if there is none of that name. */
static bool select_variant(const char *name)
{
    static const char *const sharings[SHARINGS] = {"output", "input"};
    static const char *const styles[MOVER_STYLES] = {"plain", "streaming", "strings"};
    const char *dash = strchr(name, '-');

    is_line = strcmp(name, "line") == 0;
    if (is_line)
        return true;
    if (dash == NULL)
        return false;
    for (int i = 0; i < SHARINGS; i++)
        for (int k = 0; k < MOVER_STYLES; k++)
            if (strncmp(name, sharings[i], (size_t)(dash - name)) == 0 &&
                strcmp(dash + 1, styles[k]) == 0) {
                sharing = (enum sharing)i;
                style = (enum mover_style)k;
                return true;
            }
    return false;
}

/* ---- one line each way ---- */

/* Waits until process `peer` has stored its line of the current exchange. */
static void await(int peer)
{
    /* acquire: pairs with the release in exchange_lines */
    while (atomic_load_explicit(&lines[peer].number, memory_order_acquire) < current)
        bench_relax();
}

/* Stores this process's line, and waits for the lines of the processes whose data the collective
 * gives to this process. Process 0 serves the root. */
static void exchange_lines(enum bench_collective collective)
{
    bool root_gives = collective == BENCH_BROADCAST || collective == BENCH_SCATTERV;
    bool root_takes = collective == BENCH_REDUCE || collective == BENCH_GATHERV;
    bool is_root = process == 0;
    /* In a scan a process needs only the data of those before it. */
    int ngivers = bench_is_scan(collective) ? process : nprocesses;

    current++;
    /* release: pairs with the acquire in await */
    atomic_store_explicit(&lines[process].number, current, memory_order_release);
    if (root_gives) {
        if (!is_root)
            await(0);
        return;
    }
    if (root_takes && !is_root)
        return;
    for (int peer = 0; peer < ngivers; peer++)
        await(peer);
}

/* ---- moving ---- */

/* The elements from `start` on in the buffers of `count` ranks, which are numbered from `first`. */
struct place {
    int first, count;
    size_t start;
};

static struct place of_rank(int rank, size_t start)
{
    return (struct place){.first = rank, .count = 1, .start = start};
}

static struct place of_all_ranks(size_t start)
{
    return (struct place){.first = 0, .count = nranks, .start = start};
}

/* Sums `count` elements of the inputs at `from`, and stores the sum in the outputs at `to`. With
 * one input this copies. */
static void move(const struct bench_operation *op, struct place from, struct place to, size_t count)
{
    /* A broadcast has only one buffer. */
    const float *own_input = op->collective == BENCH_BROADCAST ? op->recv : op->send;
    const float *sources[BENCH_RANKS_MAX];
    float *dests[BENCH_RANKS_MAX];

    for (int k = 0; k < from.count; k++)
        sources[k] = (const float *)at_rank(own_input, from.first + k) + from.start;
    for (int k = 0; k < to.count; k++)
        dests[k] = (float *)at_rank(op->recv, to.first + k) + to.start;
    if (!mover_move(style, sources, from.count, dests, to.count, count))
        bench_die("store style %d of mover.h cannot move the sum of %d inputs", (int)style,
                  from.count);
}

/* Moves all data that `rank` must get. */
static void fill_output(const struct bench_operation *op, int rank)
{
    size_t part = op->part, own_start = (size_t)rank * part;
    int previous = (rank + nranks - 1) % nranks;

    switch (op->collective) {
    case BENCH_ALLREDUCE: move(op, of_all_ranks(0), of_rank(rank, 0), op->count); break;
    case BENCH_REDUCE_SCATTER: move(op, of_all_ranks(own_start), of_rank(rank, 0), part); break;
    case BENCH_ALLGATHER:
        for (int peer = 0; peer < nranks; peer++)
            move(op, of_rank(peer, 0), of_rank(rank, (size_t)peer * part), part);
        break;
    case BENCH_ALLTOALL:
        for (int peer = 0; peer < nranks; peer++)
            move(op, of_rank(peer, own_start), of_rank(rank, (size_t)peer * part), part);
        break;
    case BENCH_SENDRECV: move(op, of_rank(previous, 0), of_rank(rank, 0), op->count); break;
    case BENCH_BROADCAST:
        if (rank != 0)
            move(op, of_rank(0, 0), of_rank(rank, 0), op->count);
        break;
    case BENCH_REDUCE:
        if (rank == 0)
            move(op, of_all_ranks(0), of_rank(0, 0), op->count);
        break;
    case BENCH_GATHERV:
        for (int peer = 0; peer < nranks && rank == 0; peer++)
            move(op, of_rank(peer, 0), of_rank(0, op->blocks.first[peer]), op->blocks.count[peer]);
        break;
    case BENCH_SCATTERV:
        move(op, of_rank(0, op->blocks.first[rank]), of_rank(rank, 0), op->blocks.count[rank]);
        break;
    default: break;
    }
}

/* Moves all data that `rank` gives. The collectives of share_slice are not here. */
static void spread_input(const struct bench_operation *op, int rank)
{
    size_t part = op->part, own_start = (size_t)rank * part;
    int next = (rank + 1) % nranks;

    switch (op->collective) {
    case BENCH_ALLGATHER: move(op, of_rank(rank, 0), of_all_ranks(own_start), part); break;
    case BENCH_ALLTOALL:
        for (int peer = 0; peer < nranks; peer++)
            move(op, of_rank(rank, (size_t)peer * part), of_rank(peer, own_start), part);
        break;
    case BENCH_SENDRECV: move(op, of_rank(rank, 0), of_rank(next, 0), op->count); break;
    case BENCH_GATHERV:
        move(op, of_rank(rank, 0), of_rank(0, op->blocks.first[rank]), op->blocks.count[rank]);
        break;
    case BENCH_SCATTERV:
        for (int peer = 0; peer < nranks && rank == 0; peer++)
            move(op, of_rank(0, op->blocks.first[peer]), of_rank(peer, 0), op->blocks.count[peer]);
        break;
    default: break;
    }
}

/* True for the collectives whose vector comes from or goes to all ranks, so that each process can
 * move a slice of it. */
static bool is_sliced(enum bench_collective collective)
{
    return collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE ||
           collective == BENCH_BROADCAST;
}

/* Moves this process's slice of the vector, which is whole cache lines. The last process also moves
 * the elements that are left. */
static void share_slice(const struct bench_operation *op)
{
    size_t slice = op->count / (size_t)nprocesses / LINE_FLOATS * LINE_FLOATS;
    size_t start = slice * (size_t)process;
    size_t count = process == nprocesses - 1 ? op->count - start : slice;
    struct place all_but_root = {.first = 1, .count = nranks - 1, .start = start};

    if (op->collective == BENCH_ALLREDUCE)
        move(op, of_all_ranks(start), of_all_ranks(start), count);
    else if (op->collective == BENCH_REDUCE)
        move(op, of_all_ranks(start), of_rank(0, start), count);
    else
        move(op, of_rank(0, start), all_but_root, count);
}

/* Moves this process's share of the operation's bytes. */
static void run(const struct bench_operation *op)
{
    if (is_line || op->collective == BENCH_BARRIER) {
        exchange_lines(op->collective);
        return;
    }
    if (sharing == BY_INPUT && is_sliced(op->collective))
        share_slice(op);
    else
        for (int rank = process; rank < nranks; rank += nprocesses) {
            if (sharing == BY_OUTPUT)
                fill_output(op, rank);
            else
                spread_input(op, rank);
        }
    /* seq_cst: pairs with nothing. The operation is over only when other cores see its stores, so
     * the time that these take must count. */
    atomic_thread_fence(memory_order_seq_cst);
}

/* True if the selected variant measures the operation. It leaves out operations that it cannot do,
 * or that another variant does in the same way. Scans are measured by "line" only. */
static bool has(enum bench_collective collective)
{
    bool is_sum = collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE ||
                  collective == BENCH_REDUCE_SCATTER;

    if (is_line || collective == BENCH_BARRIER)
        return true;
    if (bench_is_scan(collective))
        return false;
    if (collective == BENCH_REDUCE_SCATTER && sharing == BY_INPUT)
        return false; /* each output is a slice of the sum, as with BY_OUTPUT */
    return !(is_sum && style == MOVER_STRINGS);
}

/* ---- switching ---- */

/* Half of the switches: waits, by yielding, until *turn is `me`, and then passes the turn to the
 * other process. `me` is 0 or 1. */
static void take_turns(_Atomic int *turn, int me)
{
    for (int i = 0; i < SWITCHES / 2; i++) {
        /* relaxed: both processes run on one CPU, and only the turn is passed */
        while (atomic_load_explicit(turn, memory_order_relaxed) != me)
            sched_yield();
        atomic_store_explicit(turn, 1 - me, memory_order_relaxed);
    }
}

/* Returns the time of a switch between two processes on this CPU, in ns. The processes take turns,
 * and each waits for the other. */
static double measure_switch(void)
{
    _Atomic int *turn =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t start_ns;
    double elapsed_ns;
    pid_t child;

    if (turn == MAP_FAILED || (child = fork()) < 0)
        bench_die("process %d cannot start a second process to measure switches: %s", process,
                  strerror(errno));
    if (child == 0) {
        take_turns(turn, 1);
        _exit(EXIT_SUCCESS);
    }
    start_ns = bench_now_ns();
    take_turns(turn, 0);
    elapsed_ns = (double)(bench_now_ns() - start_ns);
    waitpid(child, NULL, 0);
    munmap(turn, PAGE_BYTES);
    return elapsed_ns / SWITCHES;
}

/* ---- memory ---- */

/* The driver calls this function twice: for the send buffers and for the receive buffers. Returns
 * the buffer of this process's own rank, which the driver fills. This function fills the buffers of
 * the other ranks that this process serves. */
static void *allocate(size_t size_bytes)
{
    char *own = bench_arena_of(&arena, process) + buffers_taken++ * arena.buffer_bytes;

    if (size_bytes > arena.buffer_bytes || buffers_taken > 2)
        bench_die("process %d cannot have buffer %zu with %zu bytes: each rank has two buffers of "
                  "%zu bytes, a size that BENCH_ARENA sets", process, buffers_taken, size_bytes,
                  arena.buffer_bytes);
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
        bench_die("there must be 2 to %d ranks and 1 to NRANKS processes, not %d ranks and %d "
                  "processes", BENCH_RANKS_MAX, nranks, nprocesses);
    bench_pin(process);
    arena = bench_arena_join(argv[1], (size_t)nprocesses * sizeof(struct line), nranks, process,
                             nprocesses);
    lines = arena.head;
    bench_serve(&library, argv[1]);
    return EXIT_SUCCESS;
}
