/* SPDX-License-Identifier: Apache-2.0
 * Implements commands, buffers and clocks in the same way for every library. */
#include "driver.h"

#include "check.h"
#include "sync.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Operations below COLD_BYTES use a few small buffers in turn, which stay in the caches, as buffers
 * in use do. Larger operations use so many buffers in turn that no cache holds more of a buffer
 * than the operation itself has loaded. For operations of up to FRESH_BYTES that start together, a
 * rank touches its buffers just before the start. */
#define COLD_BYTES 65536
#define FRESH_BYTES 65536
#define WARM_SLOTS 16
#define WARM_ROUND_BYTES (256 << 10) /* all buffers of one direction that are used in turn */
#define COLD_ROUND_BYTES (64 << 20)
#define BLOCKS_MAX 20000 /* samples of one command */
#define LINE_BYTES 256   /* of a command or an answer */

/* Memory of one kind, to send from and to receive in. Each half is divided into slots, which
 * operations use in turn. NULL pointers: this kind of memory is not used. */
struct arena {
    char *send, *recv;
    size_t size_bytes; /* of each half */
};

struct slots {
    size_t stride; /* bytes from one slot to the next */
    size_t count, next;
};

struct session {
    const struct bench_library *library;
    FILE *commands;
    int answers;            /* a file descriptor */
    struct arena heap, own; /* memory of malloc, and memory of the library */
    struct sync_line *line; /* the common start of all ranks */
    double *samples;        /* room for BLOCKS_MAX times, in ns */
};

static const char *const collective_names[BENCH_COLLECTIVES] = {
    "allreduce", "allgather", "reduce_scatter", "broadcast",
    "alltoall",  "barrier",   "sendrecv",       "reduce",
    "gatherv",   "scatterv",
    "scan",      "exclusive_scan",
};

static const char *const type_names[BENCH_TYPES] = {"float32", "bfloat16", "float16"};

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

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && strcmp(value, "1") == 0;
}

void bench_pin(int rank)
{
    cpu_set_t allowed, one;
    int nbefore; /* allowed CPUs before the one of this rank */

    if (!is_set("BENCH_PIN"))
        return;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        bench_die("cannot learn the CPUs of this process: %s", strerror(errno));
    nbefore = rank % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && nbefore-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (sched_setaffinity(0, sizeof(one), &one) != 0)
                bench_die("cannot stay on CPU %d: %s", cpu, strerror(errno));
            return;
        }
}

bool bench_is_crowded(void)
{
    return is_set("BENCH_CROWDED");
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
    /* The line is shorter than PIPE_BUF, so the pipe takes it as a whole. */
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

    if (is_set("BENCH_HEAP")) {
        if (posix_memalign(&send, 4096, size) != 0 || posix_memalign(&recv, 4096, size) != 0)
            bench_die("no memory for two buffers of %zu bytes", size);
        session->heap = (struct arena){send, recv, size};
    }
    if (is_set("BENCH_OWN") && allocate != NULL)
        session->own = (struct arena){allocate(size), allocate(size), size};
    /* Touch every page now, so that no measurement contains page faults. */
    for (int i = 0; i < 2; i++) {
        const struct arena *arena = i == 0 ? &session->heap : &session->own;

        if (arena->send != NULL) {
            memset(arena->send, BENCH_FILL, size);
            memset(arena->recv, BENCH_FILL, size);
        }
    }
}

/* Divides an arena into slots for operations of `bytes`. Cold slots are so many that they do not
 * fit the caches. */
static struct slots slots_of(const struct session *session, const struct arena *arena, size_t bytes,
                             bool is_cold)
{
    const size_t limit = session->library->slots_max;
    size_t unit = is_cold ? 4096 : 64, round = is_cold ? COLD_ROUND_BYTES : WARM_ROUND_BYTES;
    struct slots slots = {.stride = (bytes + unit - 1) / unit * unit + (is_cold ? 0 : 64)};

    if (slots.stride > arena->size_bytes)
        bench_die("a buffer of %zu bytes does not fit in BENCH_ARENA=%zu", bytes,
                  arena->size_bytes);
    round = round < arena->size_bytes ? round : arena->size_bytes;
    slots.count = round / slots.stride > 1 ? round / slots.stride : 1;
    if (!is_cold && slots.count > WARM_SLOTS)
        slots.count = WARM_SLOTS;
    if (limit != 0 && slots.count > limit)
        slots.count = limit;
    return slots;
}

static size_t element_bytes(enum bench_type type)
{
    return type == BENCH_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

static size_t operation_bytes(const struct bench_operation *operation)
{
    return operation->count * element_bytes(operation->type);
}

/* Divides `count` elements into blocks of one, two and three parts in turn. Rounding may make some
 * blocks of a small buffer empty. */
static void divide(size_t count, size_t nranks, struct bench_blocks *ret_blocks)
{
    size_t parts = 0, before = 0;

    for (size_t rank = 0; rank < nranks; rank++)
        parts += 1 + rank % 3;
    for (size_t rank = 0; rank < nranks; rank++) {
        ret_blocks->first[rank] = count * before / parts;
        before += 1 + rank % 3;
        ret_blocks->count[rank] = count * before / parts - ret_blocks->first[rank];
    }
}

/* Returns the operation as its library will get it, on the first slots. `bytes` is the size of the
 * whole vector. */
static struct bench_operation operation_of(const struct session *session, const struct arena *arena,
                                           enum bench_collective collective, enum bench_type type,
                                           size_t bytes)
{
    size_t nranks = (size_t)session->library->nranks, count = bytes / element_bytes(type);
    bool is_divided = collective == BENCH_ALLGATHER || collective == BENCH_REDUCE_SCATTER ||
                      collective == BENCH_ALLTOALL;
    struct bench_operation operation = {
        .collective = collective, .type = type, .count = count > 0 ? count : 1};

    if (is_divided) {
        operation.part = (operation.count + nranks - 1) / nranks;
        operation.count = operation.part * nranks;
    }
    if (bench_is_uneven(collective)) {
        divide(operation.count, nranks, &operation.blocks);
        operation.part = operation.blocks.count[session->library->rank];
    }
    operation.send = (float *)(void *)arena->send;
    operation.recv = (float *)(void *)arena->recv;
    return operation;
}

/* Go on to the next buffers. */
static inline void turn(const struct arena *arena, struct slots *slots,
                        struct bench_operation *operation)
{
    size_t at = slots->next * slots->stride;

    operation->send = (float *)(void *)(arena->send + at);
    operation->recv = (float *)(void *)(arena->recv + at);
    slots->next = slots->next + 1 < slots->count ? slots->next + 1 : 0;
}

/* ---- verification ---- */

/* Verifies the operation in the first and in the last slot, and answers the command. */
static void check(struct session *session, const struct arena *arena,
                  struct bench_operation *operation, size_t bytes)
{
    const struct bench_library *library = session->library;
    struct slots slots = slots_of(session, arena, operation_bytes(operation), bytes >= COLD_BYTES);
    size_t last = (slots.count - 1) * slots.stride, wrong = SIZE_MAX;

    for (size_t at = 0;; at = last) {
        if (wrong == SIZE_MAX && !library->is_unchecked)
            wrong = check_operation(library, operation, (float *)(void *)(arena->send + at),
                                    (float *)(void *)(arena->recv + at));
        if (at == last)
            break;
    }
    if (wrong == SIZE_MAX)
        answer(session, "right");
    else
        answer(session, "wrong %s of %zu bytes: rank %d, element %zu",
               collective_names[operation->collective], bytes, library->rank, wrong);
}

/* ---- measuring ---- */

static int by_value(const void *left, const void *right)
{
    double a, b;

    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return (a > b) - (a < b);
}

static void answer_times(struct session *session, size_t nsamples)
{
    double sum = 0, *samples = session->samples;

    for (size_t i = 0; i < nsamples; i++)
        sum += samples[i];
    qsort(samples, nsamples, sizeof(*samples), by_value);
    answer(session, "time %.1f %.1f %.1f %.1f", samples[nsamples / 2], samples[0],
           samples[nsamples * 9 / 10], sum / (double)nsamples);
}

/* Takes `nblocks` samples, each of which is the mean of `nops` operations back to back. A barrier
 * and a tenth of the operations come first, untimed, because ranks wake at different times, and
 * another library has just used the caches. */
static void measure_stream(struct session *session, const struct arena *arena,
                           struct bench_operation *operation, size_t nblocks, size_t nops)
{
    const struct bench_library *library = session->library;
    struct bench_operation barrier = {.collective = BENCH_BARRIER};
    size_t bytes = operation_bytes(operation), nwarm = nblocks * nops / 10;
    struct slots slots = slots_of(session, arena, bytes, bytes >= COLD_BYTES);
    uint64_t start_ns;

    if (library->has(BENCH_BARRIER))
        library->run(&barrier);
    for (size_t i = 0; i < nwarm + 1; i++) {
        turn(arena, &slots, operation);
        library->run(operation);
    }
    start_ns = bench_now_ns();
    for (size_t i = 0; i < nblocks; i++) {
        uint64_t end_ns;

        for (size_t k = 0; k < nops; k++) {
            turn(arena, &slots, operation);
            library->run(operation);
        }
        end_ns = bench_now_ns();
        session->samples[i] = (double)(end_ns - start_ns) / (double)nops;
        start_ns = end_ns;
    }
    answer_times(session, nblocks);
}

/* Reads every cache line, so that it is in this CPU's caches. */
static void load_into_cache(const char *bytes, size_t size)
{
    static volatile char sink __attribute__((unused));

    for (size_t i = 0; i < size; i += 64)
        sink = bytes[i];
}

/* Touches the buffers as a caller does that has used the last result and computed the next input.
 * Otherwise a library that writes into a peer's output, or keeps a copy of its input, would have an
 * advantage that it does not have in programs. */
static void freshen(const struct bench_library *library, const struct bench_operation *operation,
                    size_t bytes)
{
    int step = library->nprocesses != 0 ? library->nprocesses : library->nranks;
    bool from_recv = library->in_place || operation->collective == BENCH_BROADCAST;

    for (int rank = library->rank; rank < library->nranks; rank += step) {
        bool is_own = rank == library->rank;
        char *send = (char *)(uintptr_t)operation->send, *recv = (char *)operation->recv;

        send = is_own ? send : library->at_rank(send, rank);
        recv = is_own ? recv : library->at_rank(recv, rank);
        load_into_cache(recv, bytes);
        if (operation->collective != BENCH_BROADCAST || rank == 0)
            memset(from_recv ? recv : send, BENCH_FILL, bytes);
    }
}

/* Takes `nops` samples. All ranks start an operation at one instant, and its sample is the time
 * from then until the slowest rank is done. */
static void measure_sync(struct session *session, const struct arena *arena,
                         struct bench_operation *operation, size_t nops)
{
    const struct bench_library *library = session->library;
    const size_t nwarm = nops >= 20 ? 4 : 1;
    size_t bytes = operation_bytes(operation);
    struct slots slots = slots_of(session, arena, bytes, bytes > FRESH_BYTES);

    for (size_t i = 0; i < nwarm + nops; i++) {
        uint64_t start_ns;

        turn(arena, &slots, operation);
        if (bytes <= FRESH_BYTES && operation->collective != BENCH_BARRIER)
            freshen(library, operation, bytes);
        start_ns = sync_line_start(session->line);
        library->run(operation);
        if (i >= nwarm)
            sync_line_tell(session->line, i - nwarm, bench_now_ns() - start_ns);
    }
    sync_line_slowest(session->line, nops, session->samples);
    answer_times(session, nops);
}

/* ---- commands ---- */

static int index_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    bench_die("\"%s\" is neither a collective nor a type", name);
}

/* Returns the arena that a command names by "heap", "own", or "own:VARIANT" with a variant of the
 * library, which is selected. Returns NULL if the library has no such memory or variant. */
static const struct arena *select_memory(struct session *session, const char *memory)
{
    const char *variant = strchr(memory, ':');
    const struct arena *arena = memory[0] == 'o' ? &session->own : &session->heap;

    if (variant != NULL && !session->library->select(variant + 1))
        return NULL;
    return arena->send != NULL ? arena : NULL;
}

/* Carries out one of these commands and answers it:
 *
 *     check COLLECTIVE TYPE BYTES MEMORY                      right, wrong ... or none
 *     stream COLLECTIVE TYPE BYTES MEMORY SAMPLES OPERATIONS  time MEDIAN MIN P90 MEAN, in ns
 *     sync COLLECTIVE TYPE BYTES MEMORY SAMPLES               the same
 *     switch                                                  switch NS
 *
 * The answer "none" means that the library does not have the operation, type or memory. */
static void obey(struct session *session, const char *line)
{
    const struct bench_library *library = session->library;
    char verb[16], collective_name[32], type_name[16], memory[32];
    size_t bytes = 0, nblocks = 0, nops = 0;
    int nfields = sscanf(line, "%15s %31s %15s %zu %31s %zu %zu", verb, collective_name, type_name,
                         &bytes, memory, &nblocks, &nops);
    enum bench_collective collective;
    struct bench_operation operation;
    const struct arena *arena;
    enum bench_type type;

    if (nfields == 1 && strcmp(verb, "switch") == 0 && library->measure_switch != NULL) {
        answer(session, "switch %.1f", library->measure_switch());
        return;
    }
    if (nfields < 5)
        bench_die("cannot obey \"%s\"", line);
    collective = (enum bench_collective)index_of(collective_name, collective_names,
                                                 BENCH_COLLECTIVES);
    type = (enum bench_type)index_of(type_name, type_names, BENCH_TYPES);
    arena = select_memory(session, memory);
    if (arena == NULL || !library->has(collective) ||
        (type != BENCH_FLOAT32 && !library->has_narrow_types)) {
        answer(session, "none");
        return;
    }
    operation = operation_of(session, arena, collective, type, bytes);
    if (strcmp(verb, "check") == 0)
        check(session, arena, &operation, bytes);
    else if (strcmp(verb, "stream") == 0 && nblocks > 0 && nblocks <= BLOCKS_MAX && nops > 0)
        measure_stream(session, arena, &operation, nblocks, nops);
    else if (strcmp(verb, "sync") == 0 && nblocks > 0 && nblocks <= SYNC_OPS_MAX)
        measure_sync(session, arena, &operation, nblocks);
    else
        bench_die("cannot obey \"%s\"", line);
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
    int nprocesses = library->nprocesses != 0 ? library->nprocesses : library->nranks;
    char line[LINE_BYTES];

    open_pipes(&session, directory);
    open_arenas(&session);
    session.line = sync_line_open(directory, library->rank, nprocesses, bench_is_crowded());
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
