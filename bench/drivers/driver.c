/* SPDX-License-Identifier: Apache-2.0
 * Commands, buffers, clocks and verification: the same for every library. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Small buffers are few, so that they stay in the caches as buffers in use do; large ones go round
 * the whole arena, so that no cache holds more of them than the operation itself brought in. */
#define SMALL_BYTES 65536
#define SMALL_SLOTS 16
#define BLOCKS_MAX 20000
#define LINE_BYTES 256

/* Send and receive memory; each is cut into slots which the operations take in turn. */
struct arena {
    char *send, *recv;
    size_t size_bytes;
};

struct slots {
    size_t stride, count, next;
};

struct session {
    const struct bench_library *library;
    FILE *commands;
    int answers;
    struct arena heap, own;
    double *samples;
};

static const char *const names[BENCH_COLLECTIVES] = {
    "allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "barrier", "sendrecv",
};

void bench_die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("bench driver: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void bench_pin(int rank)
{
    const char *wish = getenv("BENCH_PIN");
    cpu_set_t allowed, one;
    int turn;

    if (wish == NULL || strcmp(wish, "1") != 0)
        return;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        bench_die("cannot learn the CPUs of this process: %s", strerror(errno));
    turn = rank % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && turn-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (sched_setaffinity(0, sizeof(one), &one) != 0)
                bench_die("cannot stay on CPU %d: %s", cpu, strerror(errno));
            return;
        }
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void answer(struct session *session, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    length = length < (int)sizeof(line) - 2 ? length : (int)sizeof(line) - 2;
    line[length++] = '\n';
    /* Shorter than PIPE_BUF, so written as a whole. */
    if (write(session->answers, line, (size_t)length) != length)
        bench_die("cannot answer: %s", strerror(errno));
}

/* ---- buffers ---- */

static size_t arena_bytes(void)
{
    const char *text = getenv("BENCH_ARENA");
    unsigned long long size = text == NULL ? 0 : strtoull(text, NULL, 10);

    if (size == 0)
        bench_die("BENCH_ARENA must be the size of the buffers in bytes");
    return (size_t)size;
}

static void open_arenas(struct session *session)
{
    size_t size = arena_bytes();
    void *(*allocate)(size_t) = session->library->allocate;
    void *send = NULL, *recv = NULL;

    if (posix_memalign(&send, 4096, size) != 0 || posix_memalign(&recv, 4096, size) != 0)
        bench_die("no memory for two buffers of %zu bytes", size);
    session->heap = (struct arena){send, recv, size};
    if (allocate != NULL)
        session->own = (struct arena){allocate(size), allocate(size), size};
    /* Touch every page now, with numbers that stay ordinary when they are summed over and over. */
    for (struct arena *arena = &session->heap; arena != NULL;
         arena = arena == &session->heap && allocate != NULL ? &session->own : NULL) {
        memset(arena->send, 0, size);
        memset(arena->recv, 0, size);
    }
}

static struct slots slots_of(const struct session *session, const struct arena *arena, size_t bytes)
{
    const size_t limit = session->library->slots_max;
    bool is_small = bytes < SMALL_BYTES;
    size_t unit = is_small ? 64 : 4096;
    struct slots slots = {.stride = (bytes + unit - 1) / unit * unit + (is_small ? 64 : 0)};

    if (slots.stride > arena->size_bytes)
        bench_die("a buffer of %zu bytes does not fit in BENCH_ARENA=%zu", bytes,
                  arena->size_bytes);
    slots.count = arena->size_bytes / slots.stride;
    if (is_small && slots.count > SMALL_SLOTS)
        slots.count = SMALL_SLOTS;
    if (limit != 0 && slots.count > limit)
        slots.count = limit;
    return slots;
}

/* The operation as its library will see it, on slot number `slot`. */
static struct bench_operation operation_of(const struct session *session, const struct arena *arena,
                                           enum bench_collective collective, size_t bytes)
{
    size_t nranks = (size_t)session->library->nranks, count = bytes / sizeof(float);
    bool is_divided = collective == BENCH_ALLGATHER || collective == BENCH_REDUCE_SCATTER ||
                      collective == BENCH_ALLTOALL;
    struct bench_operation operation = {.collective = collective, .count = count > 0 ? count : 1};

    if (is_divided) {
        operation.part = (operation.count + nranks - 1) / nranks;
        operation.count = operation.part * nranks;
    }
    operation.send = (float *)(void *)arena->send;
    operation.recv = (float *)(void *)arena->recv;
    return operation;
}

static inline void run_next(const struct session *session, const struct arena *arena,
                            struct slots *slots, struct bench_operation *operation)
{
    size_t at = slots->next * slots->stride;

    operation->send = (float *)(void *)(arena->send + at);
    operation->recv = (float *)(void *)(arena->recv + at);
    slots->next = slots->next + 1 < slots->count ? slots->next + 1 : 0;
    session->library->run(operation);
}

/* ---- verification ---- */

/* Small whole numbers: their sums are exact in any order. */
static float input_of(int rank, size_t index)
{
    return (float)((index * 3 + (size_t)rank * 17 + 1) & 127);
}

static float expected(const struct bench_library *library, const struct bench_operation *operation,
                      size_t index)
{
    size_t part = operation->part, shift = (size_t)library->rank * part;
    float sum = 0;

    switch (operation->collective) {
    case BENCH_ALLGATHER: return input_of((int)(index / part), index % part);
    case BENCH_ALLTOALL: return input_of((int)(index / part), shift + index % part);
    case BENCH_BROADCAST: return input_of(0, index);
    case BENCH_SENDRECV:
        return input_of((library->rank + library->nranks - 1) % library->nranks, index);
    case BENCH_REDUCE_SCATTER: index += shift; break;
    default: break;
    }
    for (int rank = 0; rank < library->nranks; rank++)
        sum += input_of(rank, index);
    return sum;
}

/* Returns the index of the first wrong element, or SIZE_MAX. */
static size_t check_once(const struct bench_library *library, struct bench_operation *operation,
                         float *send, float *recv)
{
    enum bench_collective collective = operation->collective;
    size_t nresults = collective == BENCH_BARRIER ? 0 :
                      collective == BENCH_REDUCE_SCATTER ? operation->part : operation->count;
    bool from_recv = (collective == BENCH_BROADCAST && library->rank == 0) ||
                     (library->in_place &&
                      (collective == BENCH_ALLREDUCE || collective == BENCH_REDUCE_SCATTER));

    for (size_t i = 0; i < operation->count; i++) {
        send[i] = input_of(library->rank, i);
        recv[i] = from_recv ? send[i] : -1.0f;
    }
    operation->send = send;
    operation->recv = recv;
    library->run(operation);
    for (size_t i = 0; i < nresults; i++)
        if (recv[i] != expected(library, operation, i))
            return i;
    return SIZE_MAX;
}

static void check(struct session *session, const struct arena *arena,
                  enum bench_collective collective, size_t bytes)
{
    const struct bench_library *library = session->library;
    struct bench_operation operation = operation_of(session, arena, collective, bytes);
    struct slots slots = slots_of(session, arena, operation.count * sizeof(float));
    size_t last = (slots.count - 1) * slots.stride, wrong[2] = {SIZE_MAX, SIZE_MAX};

    wrong[0] = check_once(library, &operation, (float *)(void *)arena->send,
                          (float *)(void *)arena->recv);
    wrong[1] = check_once(library, &operation, (float *)(void *)(arena->send + last),
                          (float *)(void *)(arena->recv + last));
    for (int i = 0; i < 2; i++)
        if (wrong[i] != SIZE_MAX) {
            answer(session, "wrong %s of %zu bytes: rank %d, element %zu", names[collective], bytes,
                   library->rank, wrong[i]);
            return;
        }
    answer(session, "right");
}

/* ---- measuring ---- */

static int by_value(const void *left, const void *right)
{
    double a, b;

    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return (a > b) - (a < b);
}

/* `nblocks` samples, each the mean of `nops` operations back to back. A barrier and an untimed
 * start take up that ranks wake at different times and that another library has just had the
 * caches. */
static void measure(struct session *session, const struct arena *arena,
                    enum bench_collective collective, size_t bytes, size_t nblocks, size_t nops)
{
    struct bench_operation barrier = {.collective = BENCH_BARRIER};
    struct bench_operation operation = operation_of(session, arena, collective, bytes);
    struct slots slots = slots_of(session, arena, operation.count * sizeof(float));
    size_t nwarm = nblocks * nops / 10;
    double start, sum = 0, *samples = session->samples;

    nwarm = nwarm < 2 ? 2 : nwarm;
    if (session->library->has(BENCH_BARRIER))
        session->library->run(&barrier);
    for (size_t i = 0; i < nwarm; i++)
        run_next(session, arena, &slots, &operation);
    start = now_ns();
    for (size_t i = 0; i < nblocks; i++) {
        double end;

        for (size_t k = 0; k < nops; k++)
            run_next(session, arena, &slots, &operation);
        end = now_ns();
        samples[i] = (end - start) / (double)nops;
        sum += samples[i];
        start = end;
    }
    qsort(samples, nblocks, sizeof(*samples), by_value);
    answer(session, "time %.1f %.1f %.1f %.1f", samples[nblocks / 2], samples[0],
           samples[nblocks * 9 / 10], sum / (double)nblocks);
}

/* ---- commands ---- */

/* "check COLLECTIVE BYTES MEMORY" or "run COLLECTIVE BYTES MEMORY BLOCKS OPERATIONS", where MEMORY
 * is "heap" or "own". */
static void obey(struct session *session, const char *line)
{
    char verb[16], collective_name[32], memory[16];
    size_t bytes = 0, nblocks = 0, nops = 0;
    int nfields = sscanf(line, "%15s %31s %zu %15s %zu %zu", verb, collective_name, &bytes, memory,
                         &nblocks, &nops);
    const struct arena *arena;
    int collective = 0;

    if (nfields != 4 && nfields != 6)
        bench_die("cannot obey \"%s\"", line);
    while (collective < BENCH_COLLECTIVES && strcmp(collective_name, names[collective]) != 0)
        collective++;
    if (collective == BENCH_COLLECTIVES)
        bench_die("\"%s\" is no collective", collective_name);
    arena = strcmp(memory, "own") == 0 ? &session->own : &session->heap;
    if (!session->library->has((enum bench_collective)collective) || arena->send == NULL)
        answer(session, "none");
    else if (nfields == 4)
        check(session, arena, (enum bench_collective)collective, bytes);
    else if (nblocks == 0 || nblocks > BLOCKS_MAX || nops == 0)
        bench_die("%zu blocks of %zu operations cannot be run", nblocks, nops);
    else
        measure(session, arena, (enum bench_collective)collective, bytes, nblocks, nops);
}

static void open_pipes(struct session *session, const char *directory)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/command.%d", directory, session->library->rank);
    session->commands = fopen(path, "r");
    if (session->commands == NULL)
        bench_die("cannot open %s: %s", path, strerror(errno));
    snprintf(path, sizeof(path), "%s/answer.%d", directory, session->library->rank);
    session->answers = open(path, O_WRONLY | O_CLOEXEC);
    if (session->answers < 0)
        bench_die("cannot open %s: %s", path, strerror(errno));
}

void bench_serve(const struct bench_library *library, const char *directory)
{
    struct session session = {.library = library};
    char line[LINE_BYTES];

    open_pipes(&session, directory);
    open_arenas(&session);
    session.samples = calloc(BLOCKS_MAX, sizeof(*session.samples));
    if (session.samples == NULL)
        bench_die("no memory for %d samples", BLOCKS_MAX);
    answer(&session, "ready %s", library->version);
    while (fgets(line, sizeof(line), session.commands) != NULL && strcmp(line, "quit\n") != 0)
        obey(&session, line);
    fclose(session.commands);
    close(session.answers);
    free(session.samples);
    free(session.heap.send);
    free(session.heap.recv);
}
